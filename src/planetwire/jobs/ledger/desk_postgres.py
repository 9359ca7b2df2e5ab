"""Changes that people make to the ledger: port JobDesk. Each change and its audit row are one transaction."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from planetwire.audit.audit_postgres import note_in
from planetwire.database.postgres import Connection, Pool, translated
from planetwire.database.sql import queries_beside
from planetwire.errors import StateError
from planetwire.jobs.ledger.jobs_postgres import PostgresJobQueue
from planetwire.model import Actor, Job, JobRequest, Json
from planetwire.model.acts import Act

Q = queries_beside(__file__)


class PostgresJobDesk:
    """Port JobDesk. All go through `queue`, so that a retry is deduplicated like any other request."""

    def __init__(self, pool: Pool, queue: PostgresJobQueue) -> None:
        self._pool = pool
        self._queue = queue

    async def submit(self, by: Actor, request: JobRequest) -> tuple[Job, bool]:
        """See the port."""
        async with self._transaction() as connection:
            job, created = await self._queue.submit_in(connection, request)
            await _note(connection, by, "job.submitted", job, {"created": created})
        return job, created

    async def cancel(self, by: Actor, task_id: int) -> Job:
        """See the port."""
        async with self._transaction() as connection:
            job, changed = await self._queue.cancel_in(connection, task_id)
            if changed:
                await _note(connection, by, "job.cancelled", job, {})
        return job

    async def retry(self, by: Actor, jobs: Sequence[Job]) -> tuple[Job, bool]:
        """See the port."""
        for job in jobs:
            if not job.status.is_final:
                raise StateError(f"job {job.id} is {job.status}", code="job_active")
        first = jobs[0]
        payload = {key: value for key, value in first.payload.items() if key != "scheduled"}
        request = JobRequest(first.task_type, first.source, payload, min(job.priority for job in jobs))
        async with self._transaction() as connection:
            again, created = await self._queue.submit_in(connection, request)
            await connection.execute(Q.set_retried, [job.id for job in jobs], again.id)
            for job in jobs:
                await _note(connection, by, "job.retried", job, {"as": again.id})
            await _note(connection, by, "job.submitted", again, {"created": created, "retry_of": first.id})
        return again, created

    async def pause(self, by: Actor, source: str, paused: bool) -> None:
        """See the port."""
        async with self._transaction() as connection:
            if await self._queue.pause_in(connection, source, paused):
                what = "source.paused" if paused else "source.resumed"
                await note_in(connection, Act(by, what, source=source))

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Connection]:
        async with translated(), self._pool.acquire() as connection, connection.transaction():
            yield connection


async def _note(connection: Connection, by: Actor, what: str, job: Job, details: Json) -> None:
    details = {"task_type": job.task_type.value, **details}
    await note_in(connection, Act(by, what, task_id=job.id, source=job.source, details=details))
