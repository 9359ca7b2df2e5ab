"""Returns the space of deleted rows to the file system, by rewriting a table of which little is left."""

from __future__ import annotations

import asyncpg

from planetwire.database.postgres import Pool, translated
from planetwire.database.sql import queries_beside

Q = queries_beside(__file__)

LEAST_BYTES = 1024 * 1024  # smaller tables are not worth it
LEFT_BYTES_MAX = 256 * 1024 * 1024  # copied under an exclusive lock; a larger rest stays and its space is reused
LOCK_S, COPY_S = 1.0, 60.0


async def give_back(pool: Pool, table: str, gone: int) -> bool:
    """Rewrite the table if at least as many rows were deleted as are left; False if it was not rewritten.

    `table`: a name of ours. Other sessions have priority: after a second without the lock the next round tries again.
    Raises BackendError.
    """
    async with translated(), pool.acquire() as connection:
        size = await connection.fetchval(Q.size, table)
        # Counted, since the server's estimate still has the deleted rows; more than were deleted need no counting.
        rows = await connection.fetchval(f"select count(*) from (select from {table} limit {gone + 1}) left_over")
        if size < LEAST_BYTES or gone < rows or size * rows / (rows + gone) > LEFT_BYTES_MAX:
            return False
        try:
            await connection.execute(f"set lock_timeout = {round(LOCK_S * 1000)}")
            await connection.execute(f"vacuum (full, analyze) {table}", timeout=COPY_S)
        except (asyncpg.LockNotAvailableError, TimeoutError):
            return False
        finally:
            await connection.execute("reset lock_timeout")
    return True
