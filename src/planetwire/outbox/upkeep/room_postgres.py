"""Gives the room of deleted rows back to the file system, where little is left of a table."""

from __future__ import annotations

import asyncpg

from planetwire.database.postgres import Pool, translated
from planetwire.database.sql import queries_beside

Q = queries_beside(__file__)

LEAST_BYTES = 1024 * 1024  # of a table that is worth it
LEFT_BYTES_MAX = 256 * 1024 * 1024  # copied while everybody waits; more stays and is filled again
LOCK_S, COPY_S = 1.0, 60.0


async def give_back(pool: Pool, table: str, gone: int) -> bool:
    """`table`: a name of ours. Rewrite it if at least as many rows went as are left; False when it stays as it is.

    Who works on it goes first: after a second it is left to the next look. Raises BackendError.
    """
    async with translated(), pool.acquire() as connection:
        size = await connection.fetchval(Q.size, table)
        # The server's own estimate still has the rows that went; more than went are of no interest.
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
