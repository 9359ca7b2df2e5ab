"""The outbox for an operator: its lag, which rows wait and why, and retries."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from planetwire.audit.audit_postgres import note_in
from planetwire.database.postgres import Connection, translated
from planetwire.database.sql import queries_beside
from planetwire.model import Actor, Json
from planetwire.model.acts import Act
from planetwire.outbox.changelog_postgres import read_lag

Q = queries_beside(__file__)

IDS_LOGGED = 20  # ids of retried rows in the audit log


class Which(StrEnum):
    """Which rows to show. `unmapped` ones are consumed, newest first."""

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

    async def retry(self, by: Actor, ids: Sequence[int] | None) -> list[int]:
        """Make deferred rows due now; None: all, refresh hints too. Returns the ids of the change rows."""
        async with translated(), self._connection.transaction():
            rows = await self._connection.fetch(Q.retry, ids)
            if ids is None:
                await self._connection.execute(Q.retry_hints)
            done = sorted(row["id"] for row in rows)
            await note_in(self._connection, Act(by, "outbox.retried", details=_details(done, everything=ids is None)))
        return done


def _details(done: Sequence[int], *, everything: bool) -> Json:
    return {"rows": len(done), "all": everything, "first": list(done[:IDS_LOGGED])}
