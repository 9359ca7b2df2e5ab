"""The station facts in PostgreSQL, with their cursor in the log: backend of `stations.Stations`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import asyncpg

from planetwire.database.postgres import Pool, translated
from planetwire.database.sql import queries_beside
from planetwire.facts.facts_postgres import PostgresFactStore
from planetwire.model import Batch, Cursor, Fact

Q = queries_beside(__file__)


@dataclass(slots=True)
class _Tx:
    """An open transaction without a job, so progress is not recorded."""

    connection: Any

    def progress(
        self,
        records: int,
        *,
        total: int | None = None,
        message: str | None = None,
        phase: str | None = None,
        rejects: int = 0,
        sample: str | None = None,
    ) -> None:
        """Ignored."""


class PostgresStations:
    """Writes through the store of facts, so that derived rows and the outbox follow as for any other source.

    `source`: of the facts; also the name of this consumer of the log.
    """

    def __init__(self, pool: Pool, facts: PostgresFactStore, source: str) -> None:
        self._pool = pool
        self._facts = facts
        self._source = source

    async def cursor(self) -> Cursor | None:
        """See the port."""
        async with translated():
            row = await self._pool.fetchrow(Q.cursor, self._source)
        return Cursor(row["epoch"], row["revision"]) if row else None

    async def ages(self) -> Mapping[str, float]:
        """See the port."""
        async with translated():
            rows = await self._pool.fetch(Q.written_ago, self._source)
        return {row["external_key"]: row["ago_s"] for row in rows}

    async def put(self, facts: Sequence[Fact], cursor: Cursor) -> bool:
        """See the port."""
        try:
            async with translated(), self._pool.acquire() as connection, connection.transaction():
                await connection.execute(Q.hold, self._source, [fact.external_key for fact in facts])
                if facts:
                    await self._facts.upsert(_Tx(connection), self._source, Batch(facts, complete=True), None)
                await connection.execute(Q.move_cursor, self._source, cursor.epoch, cursor.revision)
        except asyncpg.LockNotAvailableError:
            return False
        return True

    async def age(self, spared: Collection[str]) -> Sequence[str]:
        """See the port."""
        async with translated():
            rows = await self._pool.fetch(Q.age, self._source, list(spared))
        return [row["external_key"] for row in rows]
