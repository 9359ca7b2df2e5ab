"""Notes of facts to derive, in PostgreSQL: backend of `by_hand.ByHandFacts`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager

import asyncpg

from planetwire.database.postgres import CONNECTION_ERRORS, SERVER_BUSY, Connection, Pool, translated
from planetwire.database.sql import queries_beside
from planetwire.facts.derived_postgres import Projection, fact_of
from planetwire.log import get_logger

log = get_logger()
Q = queries_beside(__file__)

PAGE = 500
TRANSIENT = (*CONNECTION_ERRORS, *SERVER_BUSY, asyncpg.TransactionRollbackError)  # no fact is at fault


class PostgresByHandFacts:
    """A fact that cannot be derived is logged and skipped; the others of its page are derived."""

    def __init__(self, pool: Pool, projection: Projection, *, page: int = PAGE) -> None:
        self._pool = pool
        self._projection = projection
        self._page = page

    async def any(self) -> bool:
        """See the port."""
        async with translated():
            return bool(await self._pool.fetchval(Q.any_waits))

    async def keys(self, after: int) -> int | None:
        """See the port."""
        async with self._transaction() as connection:
            rows = await connection.fetch(Q.take_keys, after, self._page)
            for source in sorted({row["source"] for row in rows}):  # sorted, so that two processes cannot deadlock
                ids = {row["id"]: row["fact_key"] for row in rows if row["source"] == source}
                held = await self._derive(connection, source, set(ids.values()))
                await connection.execute(Q.done, [number for number, key in ids.items() if key not in held])
        return rows[-1]["id"] if rows else None

    async def source(self) -> bool:
        """See the port."""
        async with self._transaction() as connection:
            row = await connection.fetchrow(Q.take_source)
            if row is None:
                return False
            number, source, through_key = row
            if through_key is None:
                await connection.execute(Q.drop_other_notes, source, number)
            keys = [found[0] for found in await connection.fetch(Q.next_keys, source, through_key, self._page)]
            if keys:
                await connection.execute(Q.note_singly, source, list(await self._derive(connection, source, keys)))
                await connection.execute(Q.advance, number, keys[-1])
            else:
                await connection.execute(Q.done, [number])
        return True

    async def _derive(self, connection: Connection, source: str, keys: Collection[str]) -> Collection[str]:
        """Returns the keys of locked facts. If the page is refused, its facts are derived one by one."""
        try:
            async with connection.transaction():
                return await self._derive_page(connection, source, list(keys))
        except TRANSIENT:
            raise
        except Exception as error:
            if len(keys) == 1:
                log.warning("facts.by_hand.refused", source=source, key=next(iter(keys)), error=repr(error))
                return ()
        return [held for key in keys for held in await self._derive(connection, source, [key])]

    async def _derive_page(self, connection: Connection, source: str, keys: Sequence[str]) -> Collection[str]:
        facts = [fact_of(row) for row in await connection.fetch(Q.facts, source, keys)]
        if facts:
            await self._projection.project(connection, source, facts)
        left = set(keys).difference(fact.external_key for fact in facts)
        return {row[0] for row in await connection.fetch(Q.existing, source, list(left))} if left else ()

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Connection]:
        async with translated(), self._pool.acquire() as connection, connection.transaction():
            yield connection
