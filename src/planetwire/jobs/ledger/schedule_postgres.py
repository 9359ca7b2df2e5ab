"""The next run of each source and its past firings, in PostgreSQL: port ScheduleBook."""

from __future__ import annotations

from collections.abc import Sequence

import asyncpg

from planetwire.database.postgres import COMMAND_TIMEOUT_S, Connection, Pool, translated
from planetwire.database.sql import queries_beside
from planetwire.errors import BackendError
from planetwire.jobs.ledger.jobs_postgres import PostgresJobQueue
from planetwire.model import DueSource, JobRequest, NextRun, SourceDefaults, TaskType
from planetwire.runtime.backoff import AFTER_FAILURES_S
from planetwire.runtime.failpoint import failpoint

Q = queries_beside(__file__)

FIRINGS_KEPT_S = 7 * 86_400.0
CONFLICTS = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError, asyncpg.QueryCanceledError)


class PostgresScheduleBook:
    """Port ScheduleBook for the sources in `known`, as they are at the moment; their rows exist."""

    def __init__(
        self, pool: Pool, queue: PostgresJobQueue, known: Sequence[SourceDefaults], *, kept_s: float = FIRINGS_KEPT_S
    ) -> None:
        self._pool = pool
        self._queue = queue
        self._sources = known
        self._kept_s = kept_s

    @property
    def _known(self) -> dict[str, SourceDefaults]:
        return {defaults.source: defaults for defaults in self._sources}

    async def due(self) -> Sequence[DueSource]:
        """See the port. A source is never due before its floor has passed since its provider last answered."""
        known = self._known.values()
        async with translated():
            rows = await self._pool.fetch(
                Q.due,
                [defaults.source for defaults in known],
                [defaults.interval_s for defaults in known],
                [defaults.floor_s for defaults in known],
                [defaults.enabled for defaults in known],
            )
        return [DueSource(**row) for row in rows]

    async def settle(self, due: DueSource, then: NextRun) -> bool:
        """See the port. One transaction: a crash leaves either the source due, or the job waiting."""
        try:
            async with (
                translated(),
                self._pool.acquire(timeout=COMMAND_TIMEOUT_S) as connection,
                connection.transaction(),
            ):
                new = await self._settle_in(connection, due, then)
                failpoint("jobs.schedule.settled")
        except CONFLICTS as error:
            raise BackendError(f"PostgreSQL: {error!r}") from error
        failpoint("jobs.schedule.committed")
        return new

    async def _settle_in(self, connection: Connection, due: DueSource, then: NextRun) -> bool:
        known = self._known.get(due.source)
        if known is None:  # it was taken away since it was found due
            return False
        moved = await connection.fetchval(
            Q.move_on,
            due.source,
            due.due_at,
            due.cron,
            due.time_zone,
            known.enabled,
            then.next_run_at,
            then.tick_at,
            due.retry_at,
            AFTER_FAILURES_S[-1],
        )
        if moved is None or then.fire_at is None:
            return False
        if await connection.fetchval(Q.note_firing, due.source, then.fire_at) is None:
            return False
        job, new = await self._queue.submit_in(
            connection, JobRequest(TaskType.COLLECT, due.source, {"scheduled": True})
        )
        await connection.execute(Q.name_job, due.source, then.fire_at, job.id)
        return new

    async def prune(self, limit: int) -> int:
        """See the port."""
        async with translated():
            status = await self._pool.execute(Q.prune_firings, self._kept_s, limit)
        return int(status.rpartition(" ")[2])
