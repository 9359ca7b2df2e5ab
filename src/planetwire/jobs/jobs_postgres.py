"""The ledger in PostgreSQL: ports JobQueue and JobUpkeep.

Every transition names the lease it was made under, and every batch ends with the same check inside its own
transaction: a worker that lost its job, or whose job is being cancelled, cannot commit anything.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import asyncpg

from planetwire.errors import BackendError, LeaseLost, NotFound, StateError
from planetwire.jobs.row import job_of
from planetwire.log import get_logger
from planetwire.model import Job, JobRequest, JobStatus, Lease
from planetwire.postgres import COMMAND_TIMEOUT_S, Connection, Pool, translated
from planetwire.settings import JobSettings
from planetwire.sql import queries_beside

log = get_logger()
Q = queries_beside(__file__)

CHANNEL = "planet_task_control"
RETRY_S = 5.0  # first back-off of a failed job, doubled each time, ± 25 %
RETRY_MAX_S = 300.0
RESCUE_RETRY_S = 1.0  # first back-off of a job whose worker vanished, then ×4: it counts towards lease + 5 s
CLAIM_TRIES = 3  # the unique index can only fire when something else than a claim made a job run
# Trying again cannot help: the request or the credentials are wrong, not the moment.
HOPELESS = frozenset({"auth_refused", "not_found", "bad_request"})


class PostgresJobTx:
    """Port JobTx: one batch's connection, and what it adds to the job's progress."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.records = 0
        self.total: int | None = None
        self.message: str | None = None

    def progress(self, records: int, *, total: int | None = None, message: str | None = None) -> None:
        """Adds up over the transaction; the last total and message that are not None win."""
        self.records += records
        self.total = total if total is not None else self.total
        self.message = message if message is not None else self.message


class PostgresJobQueue:
    """Ports JobQueue and JobUpkeep. `heart`: a small pool of its own, so that no batch delays a heartbeat."""

    def __init__(
        self,
        pool: Pool,
        settings: JobSettings,
        *,
        heart: Pool | None = None,
        retry_s: float = RETRY_S,
        rescue_retry_s: float = RESCUE_RETRY_S,
    ) -> None:
        self._pool = pool
        self._heart = heart or pool
        self._lease_s = settings.lease_s
        self._retry_s = retry_s
        self._rescue_retry_s = rescue_retry_s

    async def submit(self, request: JobRequest) -> tuple[Job, bool]:
        """See the port. Raises StateError when the idempotency key belongs to other work."""
        async with translated(), self._pool.acquire() as connection, connection.transaction():
            return await self.submit_in(connection, request)

    async def submit_in(self, connection: Connection, request: JobRequest) -> tuple[Job, bool]:
        """As `submit`, in the transaction that is open on the connection: the job exists once that commits."""
        if request.idempotency_key is not None:
            await connection.execute(Q.lock_submit, f"planet_key:{request.idempotency_key}")
            known = await connection.fetchrow(Q.by_key, request.idempotency_key)
            if known is not None:
                return _same_work(job_of(known), request), False
        await connection.execute(Q.lock_submit, f"planet_twin:{request.task_type}:{request.source}")
        scheduled = bool(request.payload.get("scheduled"))
        twin = await connection.fetchrow(Q.adopt_twin, request.task_type, request.source, request.payload, scheduled)
        if twin is not None:
            return job_of(twin), False
        row = await connection.fetchrow(
            Q.insert_job, request.task_type, request.source, request.payload, request.priority, request.idempotency_key
        )
        return job_of(row), True

    async def claim(self, worker_id: str, task_types: Sequence[str], limit: int) -> Sequence[Lease]:
        """See the port. One round trip; ordered by (priority, id)."""
        for _ in range(CLAIM_TRIES):
            try:
                async with translated():
                    rows = await self._pool.fetch(Q.claim, worker_id, list(task_types), limit, self._lease_s)
            except asyncpg.UniqueViolationError:
                log.warning("data_job.claim.repeated", worker=worker_id)
                continue
            return [Lease(job_of(row), worker_id, row["lease_seq"]) for row in rows]
        return []

    async def heartbeat(self, leases: Sequence[Lease]) -> Mapping[int, JobStatus]:
        """See the port. One statement for all."""
        async with translated():
            rows = await self._heart.fetch(Q.heartbeat, *_keys(leases), self._lease_s)
        return {row["id"]: JobStatus(row["status"]) for row in rows}

    async def look(self, leases: Sequence[Lease]) -> Mapping[int, JobStatus]:
        """See the port."""
        async with translated():
            rows = await self._heart.fetch(Q.look, *_keys(leases))
        return {row["id"]: JobStatus(row["status"]) for row in rows}

    @asynccontextmanager
    async def batch(self, lease: Lease) -> AsyncIterator[PostgresJobTx]:
        """See the port. Raises BackendError `deadlock` when the same batch may simply be tried again."""
        async with (
            translated(),
            _deadlocks(),
            self._pool.acquire(timeout=COMMAND_TIMEOUT_S) as connection,
            connection.transaction(),
        ):
            tx = PostgresJobTx(connection)
            yield tx
            held = await connection.fetchval(
                Q.fence, lease.job.id, lease.seq, tx.records, tx.total, tx.message, self._lease_s
            )
            if held is None:
                raise LeaseLost(f"job {lease.job.id} is not ours any more, or is being stopped")

    async def finish(
        self,
        lease: Lease,
        status: JobStatus,
        *,
        message: str | None = None,
        error: tuple[str, str] | None = None,
        retry_after_s: float | None = None,
    ) -> bool:
        """See the port."""
        code, text = error or (None, None)
        async with translated():
            written = await self._pool.fetchval(
                Q.finish,
                lease.job.id,
                lease.seq,
                status,
                message,
                code,
                text,
                code not in HOPELESS,
                retry_after_s or 0.0,
                self._retry_s,
                RETRY_MAX_S,
            )
            if written is None:
                written = await self._pool.fetchval(Q.was_finished, lease.job.id, lease.seq)
        return written is not None

    async def cancel(self, task_id: int) -> Job:
        """See the port."""
        async with translated():
            changed = await self._pool.fetchrow(Q.cancel, task_id)
            row = changed or await self._pool.fetchrow(Q.get_job, task_id)
        if row is None:
            raise NotFound(f"there is no job {task_id}")
        job = job_of(row)
        if changed is None and job.status.is_final:
            raise StateError(f"job {task_id} is {job.status} already", code="job_final")
        return job

    async def rescue(self, limit: int = 100) -> int:
        """See the port. Looks at leases only, never at what a job is."""
        async with translated():
            rows = await self._heart.fetch(Q.rescue, limit, self._rescue_retry_s)
        for row in rows:
            log.warning("data_job.lease.expired", task_id=row["id"], status=row["status"])
        return len(rows)

    async def release(self, leases: Sequence[Lease]) -> int:
        """See the port."""
        async with translated():
            return len(await self._pool.fetch(Q.release, *_keys(leases)))

    async def open_gate(self, seconds: float) -> None:
        """See the port."""
        async with translated():
            await self._pool.execute(Q.open_gate, CHANNEL, seconds)


def _keys(leases: Sequence[Lease]) -> tuple[list[int], list[int]]:
    return [lease.job.id for lease in leases], [lease.seq for lease in leases]


def _same_work(job: Job, request: JobRequest) -> Job:
    if (job.task_type, job.source) != (request.task_type, request.source):
        raise StateError("the idempotency key was used for other work", code="idempotency_key_reused")
    return job


@asynccontextmanager
async def _deadlocks() -> AsyncIterator[None]:
    """A deadlock with somebody's own SQL is nobody's fault and gone the next moment."""
    try:
        yield
    except (asyncpg.DeadlockDetectedError, asyncpg.SerializationError) as error:
        raise BackendError(f"PostgreSQL: {error}", code="deadlock") from error
