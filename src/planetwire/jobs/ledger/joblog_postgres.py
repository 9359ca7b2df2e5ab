"""The last lines of each job in an unlogged table: port JobLog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planetwire.database.postgres import Pool, translated
from planetwire.database.sql import queries_beside
from planetwire.model import JobLine

Q = queries_beside(__file__)

LINES_KEPT = 200
LINES_MAX = 500_000  # of all jobs together, about 100 MB
PRUNED_ROWS = 5_000


class PostgresJobLog:
    """Port JobLog. `keep_s`: how long a line is kept and shown."""

    def __init__(self, pool: Pool, keep_s: float, *, lines_max: int = LINES_MAX) -> None:
        self._pool = pool
        self._lines_max = lines_max
        self._keep_s = keep_s

    async def append(self, lines: Mapping[int, Sequence[JobLine]]) -> None:
        """See the port."""
        rows = [(task_id, line) for task_id, added in lines.items() for line in added[-LINES_KEPT:]]
        columns = (
            [task_id for task_id, _ in rows],
            [line.at for _, line in rows],
            [line.event for _, line in rows],
            [line.text for _, line in rows],
        )
        async with translated(), self._pool.acquire() as connection, connection.transaction():
            await connection.execute(Q.append, *columns)
            await connection.execute(Q.trim, list(lines), LINES_KEPT)

    async def read(self, task_id: int) -> Sequence[JobLine]:
        """See the port."""
        async with translated():
            rows = await self._pool.fetch(Q.read, task_id, self._keep_s, LINES_KEPT)
        return [JobLine(row["at"], row["event"], row["line"]) for row in reversed(rows)]

    async def prune(self) -> int:
        """See the port. At most 10,000."""
        async with translated():
            done: str = await self._pool.execute(Q.prune, self._keep_s, PRUNED_ROWS, self._lines_max)
        return int(done.split()[-1])
