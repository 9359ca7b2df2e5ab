"""The outbox as an operator handles it: how far behind, what waits and why, and once more from the start."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from planetwire.model import Json
from planetwire.outbox.changelog_postgres import read_lag
from planetwire.postgres import Connection, translated
from planetwire.sql import queries_beside

Q = queries_beside(__file__)


class Which(StrEnum):
    """Rows to look at. `unmapped` ones are consumed, newest first."""

    PENDING = "pending"
    QUARANTINED = "quarantined"
    UNMAPPED = "unmapped"


class OutboxDesk:
    """Over one connection. Everything raises BackendError when the server fails."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def lag(self) -> Json:
        """`pending` (counted up to 100,000), `oldest_age_s`, `quarantined`, `unmapped` pairs, `leader`."""
        async with translated():
            return await read_lag(self._connection)

    async def peek(self, which: Which, limit: int) -> list[Json]:
        """id, table, operation, source, records, attempts, state, age_s, error."""
        query = {Which.PENDING: Q.pending, Which.QUARANTINED: Q.quarantined, Which.UNMAPPED: Q.skipped}[which]
        async with translated():
            return [dict(row) for row in await self._connection.fetch(query, limit)]

    async def retry(self, ids: Sequence[int] | None) -> list[int]:
        """Make rows that were put off due at once; None: all of them, refresh hints too. Ids of the change rows."""
        async with translated(), self._connection.transaction():
            rows = await self._connection.fetch(Q.retry, ids)
            if ids is None:
                await self._connection.execute(Q.retry_hints)
        return sorted(row["id"] for row in rows)
