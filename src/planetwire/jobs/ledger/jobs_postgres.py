"""The ledger in PostgreSQL: ports JobQueue and JobUpkeep.

Every transition names the lease it was made under, and every batch ends with the same check inside its own
transaction: a worker that lost its job, or whose job is being cancelled, cannot commit anything.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from planetwire.database.postgres import COMMAND_TIMEOUT_S, Connection, Pool, translated
from planetwire.database.sql import queries_beside
from planetwire.errors import LeaseLost, NotFound, StateError
from planetwire.jobs.ledger.ends_postgres import End, EndWriter
from planetwire.jobs.ledger.row import job_of, lease_of
from planetwire.log import get_logger
from planetwire.model import Job, JobRequest, JobStatus, Lease, TaskType
from planetwire.settings import JobSettings

log = get_logger()
Q = queries_beside(__file__)

CHANNEL = "planet_task_control"
RETRY_S = 5.0  # first back-off of a failed job, doubled each time, ± 25 %
RESCUE_RETRY_S = 1.0  # first back-off of a job whose worker vanished, then ×4: it counts towards lease + 5 s
CLAIM_TRIES = 3  # the unique index fires only if something other than a claim started a job
PARK_ROWS = 1_000  # parked in one transaction, about 12 ms
FEW_SOURCES = 200  # waiting ones that a claim checks one by one; with more, jobs of busy sources are parked
PARK_PASSES = 20  # of one claim; a longer backlog of busy sources is parked by the claims that follow
DEADLINE_GRACE_S = 5.0  # the worker ends a job at its deadline; if it cannot, its lease ends this much later
CANCEL_GRACE_S = 60.0  # a job that does not stop when asked is ended by the ledger
SLOW_CLAIM_S = 0.005  # slower than this, it pays to find the first waiting row and start there
FLOOR_S = 2.0  # how long that position is used: jobs inserted before it meanwhile wait at most so long
SWEPT_SOURCES = 1_000  # checked by one sweep
PRUNED_ROWS = 1_000  # deleted by one prune
TAKEN_ROWS = 1_000  # taken back from dead workers in one transaction
SAMPLE_MAX = 200
STOP_FORCED = "did not stop when asked; committed batches are kept"


class PostgresJobTx:
    """Port JobTx: one batch's connection, and what it adds to the job's progress."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.records = 0
        self.total: int | None = None
        self.message: str | None = None
        self.phase: str | None = None
        self.rejects = 0
        self.sample: str | None = None

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
        """Adds up over the transaction; the last total, message and phase that are not None win, the first sample."""
        self.records += records
        self.total = total if total is not None else self.total
        self.message = message if message is not None else self.message
        self.phase = phase if phase is not None else self.phase
        self.rejects += rejects
        self.sample = self.sample if self.sample is not None else sample


class PostgresJobQueue:
    """Ports JobQueue and JobUpkeep."""

    def __init__(
        self,
        pool: Pool,
        settings: JobSettings,
        *,
        retry_s: float = RETRY_S,
        rescue_retry_s: float = RESCUE_RETRY_S,
        few_sources: int = FEW_SOURCES,
    ) -> None:
        self._pool = pool
        self._few = few_sources
        self._settings = settings
        self._lease_s = settings.lease_s
        self._rescue_retry_s = rescue_retry_s
        self._ends = EndWriter(pool, retry_s)
        self._floor: tuple[int | None, int | None] = (None, None)
        self._floor_until = 0.0  # monotonic
        self._swept_to: str | None = None

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
        """See the port. One round trip unless jobs of busy sources must be parked first; ordered by (priority, id)."""
        for _ in range(PARK_PASSES):
            leases = await self._claim_once(worker_id, task_types, limit)
            if leases or not await self.park():
                return leases
        return []

    async def _claim_once(self, worker_id: str, task_types: Sequence[str], limit: int) -> Sequence[Lease]:
        started = time.monotonic()
        floor = self._floor if started < self._floor_until else (None, None)
        longest = [self._settings.deadline_s(TaskType(kind)) for kind in task_types]
        for _ in range(CLAIM_TRIES):
            try:
                async with translated():
                    rows = await self._pool.fetch(
                        Q.claim, worker_id, list(task_types), longest, limit, self._lease_s, *floor, self._few
                    )
            except asyncpg.UniqueViolationError:
                log.warning("data_job.claim.repeated", worker=worker_id)
                continue
            if time.monotonic() - started > SLOW_CLAIM_S and started >= self._floor_until:
                await self._find_floor()
            return sorted([lease_of(row, worker_id) for row in rows], key=_place)
        return []

    async def _find_floor(self) -> None:
        """Dead index entries pile up before the first waiting row while an old transaction is open."""
        async with translated():
            first = await self._pool.fetchrow(Q.first_waiting)
        self._floor = (first["priority"], first["id"]) if first else (None, None)
        self._floor_until = time.monotonic() + FLOOR_S

    async def park(self) -> int:
        """See the port."""
        async with translated():
            parked: int = await self._pool.fetchval(Q.park, PARK_ROWS, self._few)
        return parked

    async def heartbeat(self, leases: Sequence[Lease]) -> Mapping[int, JobStatus]:
        """See the port. One statement for all; never past a job's deadline, nor long past a request to cancel it."""
        async with translated():
            rows = await self._pool.fetch(Q.heartbeat, *_keys(leases), self._lease_s, DEADLINE_GRACE_S, CANCEL_GRACE_S)
        return {row["id"]: JobStatus(row["status"]) for row in rows}

    async def look(self, leases: Sequence[Lease]) -> Mapping[int, JobStatus]:
        """See the port."""
        async with translated():
            rows = await self._pool.fetch(Q.look, *_keys(leases))
        return {row["id"]: JobStatus(row["status"]) for row in rows}

    @asynccontextmanager
    async def batch(self, lease: Lease) -> AsyncIterator[PostgresJobTx]:
        """See the port. Raises BackendError `deadlock` when the same batch may simply be tried again."""
        async with (
            translated(),
            self._pool.acquire(timeout=COMMAND_TIMEOUT_S) as connection,
            connection.transaction(),
        ):
            # Else a worker whose network died would hold its row locks, and that of the job, until the server gives up.
            await connection.execute(Q.not_silent_for, f"{self._lease_s:g}s")
            tx = PostgresJobTx(connection)
            yield tx
            held = await connection.fetchval(
                Q.fence,
                lease.job.id,
                lease.seq,
                tx.records,
                tx.total,
                tx.message,
                tx.phase,
                tx.rejects,
                _cut(tx.sample),
                self._lease_s,
                DEADLINE_GRACE_S,
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
        sample: str | None = None,
    ) -> bool:
        """See the port. Ends that are written at one time share a statement."""
        code, text = error or (None, None)
        return await self._ends.write(
            End(lease.job.id, lease.seq, status, message, code, text, _cut(sample), retry_after_s or 0.0)
        )

    async def cancel(self, task_id: int) -> Job:
        """See the port."""
        async with translated(), self._pool.acquire() as connection, connection.transaction():
            return (await self.cancel_in(connection, task_id))[0]

    async def cancel_in(self, connection: Connection, task_id: int) -> tuple[Job, bool]:
        """As `cancel`, in the transaction that is open on the connection; and whether it changed anything."""
        changed = await connection.fetchrow(Q.cancel, task_id)
        row = changed or await connection.fetchrow(Q.get_job, task_id)
        if row is None:
            raise NotFound(f"there is no job {task_id}")
        job = job_of(row)
        if changed is None and job.status.is_final:
            raise StateError(f"job {task_id} is {job.status} already", code="job_final")
        return job, changed is not None

    async def rescue(self, limit: int = 100) -> int:
        """See the port. Decides by the lease alone, never by the type of the job."""
        async with translated():
            return _log_expired(await self._pool.fetch(Q.rescue, limit, self._rescue_retry_s, STOP_FORCED))

    async def take_back(self, worker_ids: Sequence[str]) -> int:
        """As `rescue`, of workers that the caller knows to be dead; their jobs can run at once. How many."""
        taken = 0
        while True:
            async with translated(), self._pool.acquire() as connection, connection.transaction():
                ended = await connection.fetch(Q.end_leases_of, worker_ids, TAKEN_ROWS)
                taken += _log_expired(await connection.fetch(Q.rescue, len(ended), 0.0, STOP_FORCED))
            if len(ended) < TAKEN_ROWS:
                return taken

    async def release(self, leases: Sequence[Lease]) -> int:
        """See the port."""
        async with translated():
            return len(await self._pool.fetch(Q.release, *_keys(leases)))

    async def open_gate(self, seconds: float) -> None:
        """See the port."""
        async with translated():
            await self._pool.execute(Q.open_gate, CHANNEL, seconds)

    async def pause(self, source: str, paused: bool) -> None:
        """See the port."""
        async with translated(), self._pool.acquire() as connection:
            await self.pause_in(connection, source, paused)

    async def pause_in(self, connection: Connection, source: str, paused: bool) -> bool:
        """As `pause`, in the transaction that is open on the connection; whether it changed anything."""
        done: str = await connection.execute(Q.pause if paused else Q.resume, source)
        return not done.endswith(" 0")

    async def sweep(self) -> int:
        """See the port. Continues where the last one ended."""
        async with translated():
            row = await self._pool.fetchrow(Q.sweep, self._swept_to, SWEPT_SOURCES)
        self._swept_to = row["last_source"]
        if row["mended"]:
            log.error("data_job.sweep.mended", jobs=row["mended"])
        return int(row["mended"])

    async def prune(self) -> int:
        """See the port. At most 1,000."""
        async with translated():
            return int((await self._pool.execute(Q.prune, self._settings.keep_days * 86_400, PRUNED_ROWS)).split()[-1])


def _place(lease: Lease) -> tuple[int, int]:
    return lease.job.priority, lease.job.id


def _log_expired(rows: Sequence[Mapping[str, Any]]) -> int:
    for row in rows:
        log.warning("data_job.lease.expired", task_id=row["id"], status=row["status"], code=row["error_code"])
    return len(rows)


def _cut(sample: str | None) -> str | None:
    return sample[:SAMPLE_MAX].replace("\x00", "") if sample is not None else None


def _keys(leases: Sequence[Lease]) -> tuple[list[int], list[int]]:
    """By id, the newest lease of each: every statement locks rows in this order, so that none deadlock."""
    newest = {lease.job.id: lease.seq for lease in sorted(leases, key=lambda lease: (lease.job.id, lease.seq))}
    return list(newest), list(newest.values())


def _same_work(job: Job, request: JobRequest) -> Job:
    if (job.task_type, job.source) != (request.task_type, request.source):
        raise StateError("the idempotency key was used for other work", code="idempotency_key_reused")
    return job
