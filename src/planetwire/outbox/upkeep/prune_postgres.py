"""Deletes consumed outbox rows and old layer events, a small batch a call."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from planetwire.database.postgres import Pool, translated
from planetwire.database.sql import queries_beside
from planetwire.errors import BackendError

Q = queries_beside(__file__)

BATCH_ROWS = 2_000
CHANGES_KEPT_S = 24 * 3600.0  # consumed rows show for a day what became of a change
BROADCASTS_KEPT_S = 6 * 3600.0  # how long a browser may be offline and still get a replay


@asynccontextmanager
async def _retried_later() -> AsyncIterator[None]:
    """Any server error (a deadlock with the relay, say) becomes BackendError: the next round retries."""
    try:
        async with translated():
            yield
    except asyncpg.PostgresError as error:
        raise BackendError(f"PostgreSQL: {error!r}") from error


class PostgresPruner:
    """Each call deletes at most one batch and returns the number of rows."""

    def __init__(
        self, pool: Pool, *, changes_kept_s: float = CHANGES_KEPT_S, broadcasts_kept_s: float = BROADCASTS_KEPT_S
    ) -> None:
        self._pool = pool
        self._changes_kept_s = changes_kept_s
        self._broadcasts_kept_s = broadcasts_kept_s

    async def changes(self) -> int:
        """Outbox rows consumed longer ago than they are kept. Unconsumed rows are never deleted."""
        return await self._delete(Q.prune_changes, self._changes_kept_s)

    async def hints(self) -> int:
        """The same for refresh hints."""
        return await self._delete(Q.prune_hints, self._changes_kept_s)

    async def broadcasts(self) -> int:
        """Layer events past the replay window; each layer's pruned mark moves with them."""
        async with _retried_later():
            gone: int = await self._pool.fetchval(Q.prune_broadcasts, self._broadcasts_kept_s, BATCH_ROWS)
        return gone

    async def _delete(self, query: str, kept_s: float) -> int:
        async with _retried_later():
            status: str = await self._pool.execute(query, kept_s, BATCH_ROWS)
        return int(status.rpartition(" ")[2])
