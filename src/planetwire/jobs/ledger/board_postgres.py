"""Reading the ledger for people: port JobBoard. Every statement is bounded, whatever the backlog."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from planetwire.database.postgres import Pool, translated
from planetwire.database.sql import queries_beside
from planetwire.errors import NotFound
from planetwire.jobs.ledger.row import job_of
from planetwire.model import Job

Q = queries_beside(__file__)

SHOWN_MAX = 50  # jobs of each kind in `active`
FINISHED_SHOWN_S = 30.0
PAGE_MAX = 500
COUNTED_MAX = 10_000
COUNTS_KEPT_S = 2.0


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of a source that decides whether its waiting write job may start."""

    running_id: int | None = None
    head_id: int | None = None  # the next due job in line
    paused_at: datetime | None = None


class PostgresJobBoard:
    """Port JobBoard."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._counts: Mapping[str, int] = {}
        self._counted_at = -COUNTS_KEPT_S

    async def get(self, task_id: int) -> Job:
        """See the port."""
        async with translated():
            row = await self._pool.fetchrow(Q.get_job, task_id)
        if row is None:
            raise NotFound(f"there is no job {task_id}")
        return job_of(row)

    async def page(
        self, *, status: str | None, source: str | None, cursor: int | None, limit: int
    ) -> tuple[Sequence[Job], int | None]:
        """See the port. `limit` is cut at 500."""
        limit = min(limit, PAGE_MAX)
        async with translated():
            return _page(await self._pool.fetch(Q.page, status, source, cursor, limit + 1), limit)

    async def active(self) -> Sequence[Job]:
        """See the port. Running first, then waiting in the order of their ids, then the latest finished."""
        async with translated():
            rows = await self._pool.fetch(Q.active, SHOWN_MAX, FINISHED_SHOWN_S)
        return [job_of(row) for row in rows]

    async def dead(self, *, source: str | None, cursor: int | None, limit: int) -> tuple[Sequence[Job], int | None]:
        """See the port. `limit` is cut at 500."""
        limit = min(limit, PAGE_MAX)
        async with translated():
            return _page(await self._pool.fetch(Q.dead, source, cursor, limit + 1), limit)

    async def counts(self) -> Mapping[str, int]:
        """See the port."""
        if time.monotonic() - self._counted_at >= COUNTS_KEPT_S:
            async with translated():
                row = await self._pool.fetchrow(Q.counts, COUNTED_MAX)
            self._counts, self._counted_at = dict(row), time.monotonic()
        return self._counts

    async def standing(self, sources: Iterable[str | None]) -> tuple[datetime, Mapping[str, Standing]]:
        """The ledger's clock, and the state of each of the sources. Beyond the port: for the shell alone."""
        names = sorted({source for source in sources if source is not None})
        async with translated():
            rows = await self._pool.fetch(Q.standing, names)
        known = {row["source"]: Standing(row["running_id"], row["head_id"], row["paused_at"]) for row in rows}
        return rows[0]["now"], known


def _page(rows: Sequence[Mapping[str, Any]], limit: int) -> tuple[Sequence[Job], int | None]:
    """`rows` holds one more than asked for when there are more."""
    jobs = [job_of(row) for row in rows[:limit]]
    return jobs, jobs[-1].id if len(rows) > limit else None
