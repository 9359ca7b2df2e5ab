"""The worker on a real ledger: claims, cancels, losses, outages, soft stops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs

from ledger_tools import expire, queue_on, row_of, status_of, until, wish
from pace import promised
from planetwire.database.postgres import Pool
from planetwire.errors import FeedError, InputError
from planetwire.jobs.ledger.jobs_postgres import PostgresJobQueue
from planetwire.jobs.worker import Worker
from planetwire.model import JobStatus, Lease, TaskType
from planetwire.outbox.wakeup_memory import MemoryWakeup
from planetwire.outbox.wakeup_postgres import PostgresWakeup
from planetwire.ports import Wakeup
from planetwire.runtime.clock import SystemClock
from planetwire.settings import JobSettings

SETTINGS = JobSettings(lease_s=30, heartbeat_s=10, concurrency=3, poll_s=0.05)


class Script:
    """A handler that notes what runs, and holds each job until it is told to go on."""

    def __init__(self, queue: PostgresJobQueue, *, hold: bool = False, error: Exception | None = None) -> None:
        self.queue = queue
        self.error = error
        self.started: list[int] = []
        self.interrupted: list[int] = []
        self.batch_done = asyncio.Event()
        self.go_on = asyncio.Event()
        if not hold:
            self.go_on.set()

    async def __call__(self, lease: Lease) -> str | None:
        self.started.append(lease.job.id)
        async with self.queue.batch(lease) as tx:
            tx.progress(10, total=20)
        self.batch_done.set()
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.interrupted.append(lease.job.id)
            raise
        if self.error is not None:
            raise self.error
        async with self.queue.batch(lease) as tx:
            tx.progress(10)
        return "all done"


def _worker(
    queue: PostgresJobQueue, script: Callable[[Lease], Awaitable[str | None]], wakeup: Wakeup | None = None, **kw: Any
) -> Worker:
    options = {"settings": SETTINGS, "drain_s": 0.05, **kw}
    settings = options.pop("settings")
    handlers = dict.fromkeys(TaskType, script)
    return Worker(queue, queue, handlers, wakeup or MemoryWakeup(), settings, SystemClock(), **options)


@asynccontextmanager
async def _running(worker: Worker) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(worker.run())
    try:
        yield task
    finally:
        worker.stop()
        await asyncio.wait_for(task, 60)


def _has(pool: Pool, task_id: int, status: JobStatus) -> Callable[[], Awaitable[bool]]:
    async def check() -> bool:
        return await status_of(pool, task_id) is status

    return check


async def test_a_job_runs_to_its_end_and_both_log_events_tell_of_it(pg_pool: Pool) -> None:
    """S45, S86, S87."""
    queue = queue_on(pg_pool)
    job, _ = await queue.submit(wish())
    with capture_logs() as logs:
        async with _running(_worker(queue, Script(queue))):
            await until(_has(pg_pool, job.id, JobStatus.COMPLETED))
    row = await row_of(pg_pool, job.id)
    assert (row["records_processed"], row["records_total"], row["progress"]) == (20, 20, 1.0)
    assert row["message"] == "all done"
    events = {entry["event"]: entry for entry in logs if entry.get("task_id") == job.id}
    assert events["data_job.started"]["source"] == "alpha"
    assert events["data_job.completed"]["status"] == "completed"


async def test_no_more_jobs_run_at_once_than_allowed_and_a_free_slot_is_used(pg_pool: Pool) -> None:
    """S39."""
    queue = queue_on(pg_pool)
    script = Script(queue, hold=True)
    for n in range(5):
        await queue.submit(wish(source=f"s{n}"))
    async with _running(_worker(queue, script)):

        async def three() -> bool:
            return len(script.started) == 3

        await until(three)
        assert await pg_pool.fetchval("select count(*) from collection_tasks where status = 'running'") == 3
        script.go_on.set()

        async def done() -> bool:
            return not await pg_pool.fetchval("select count(*) from collection_tasks where status <> 'completed'")

        await until(done)


async def test_stop_interrupts_the_coroutine_and_keeps_what_was_committed(pg_pool: Pool) -> None:
    """S47, S48, S49, S50: the row alone was written, as another process would."""
    queue = queue_on(pg_pool)
    script = Script(queue, hold=True)
    job, _ = await queue.submit(wish())
    async with _running(_worker(queue, script)):
        await asyncio.wait_for(script.batch_done.wait(), 60)
        await queue_on(pg_pool).cancel(job.id)
        await until(_has(pg_pool, job.id, JobStatus.CANCELLED), within_s=promised(2))
    row = await row_of(pg_pool, job.id)
    assert (row["records_processed"], row["progress"]) == (10, 0.5)
    assert row["finished_at"] >= row["cancel_requested_at"] and row["message"].startswith("stopped")
    assert script.interrupted == [job.id]


async def test_a_job_that_someone_else_took_is_dropped_without_a_trace(pg_pool: Pool) -> None:
    """Q18."""
    queue = queue_on(pg_pool)
    script = Script(queue, hold=True)
    job, _ = await queue.submit(wish())
    async with _running(_worker(queue, script)):
        await asyncio.wait_for(script.batch_done.wait(), 60)
        await expire(pg_pool, job.id)
        await queue_on(pg_pool, rescue_retry_s=600).rescue()

        async def dropped() -> bool:
            return script.interrupted == [job.id]

        await until(dropped)
    row = await row_of(pg_pool, job.id)
    assert (row["status"], row["error_code"], row["attempts"]) == ("queued", "worker_lost", 1)


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (FeedError("no answer"), "queued", "transient"),
        (FeedError("who are you", code="auth_refused"), "failed", "auth_refused"),
        (InputError("no such layer"), "failed", "bad_request"),
        (ZeroDivisionError("a bug"), "queued", "internal"),
        (asyncio.CancelledError(), "queued", "interrupted"),
    ],
    ids=["feed", "credentials", "input", "bug", "own cancel"],
)
async def test_what_a_handler_raises_is_written_into_the_row(
    error: Exception, status: str, code: str, pg_pool: Pool
) -> None:
    """S45."""
    queue = queue_on(pg_pool, retry_s=600)
    job, _ = await queue.submit(wish())

    async def over() -> bool:
        return (await row_of(pg_pool, job.id))["error_code"] is not None

    async with _running(_worker(queue, Script(queue, error=error))):
        await until(over)
    row = await row_of(pg_pool, job.id)
    assert (row["status"], row["error_code"], row["records_processed"]) == (status, code, 10)


async def test_a_soft_stop_gives_unfinished_jobs_back_without_counting_the_attempt(pg_pool: Pool) -> None:
    queue = queue_on(pg_pool)
    script = Script(queue, hold=True)
    job, _ = await queue.submit(wish())
    async with _running(_worker(queue, script)):
        await asyncio.wait_for(script.batch_done.wait(), 60)
    row = await row_of(pg_pool, job.id)
    assert (row["status"], row["attempts"], row["worker_id"]) == ("queued", 0, None)
    script.go_on.set()
    async with _running(_worker(queue, script)):
        await until(_has(pg_pool, job.id, JobStatus.COMPLETED))
    assert script.started == [job.id, job.id]
    assert (await row_of(pg_pool, job.id))["records_processed"] == 20


async def test_a_soft_stop_lets_running_jobs_end_by_themselves_first(pg_pool: Pool) -> None:
    queue = queue_on(pg_pool)
    script = Script(queue, hold=True)
    job, _ = await queue.submit(wish())
    worker = _worker(queue, script, drain_s=20)
    async with _running(worker):
        await asyncio.wait_for(script.batch_done.wait(), 60)
        worker.stop()
        late, _ = await queue.submit(wish(source="late"))
        script.go_on.set()
    assert await status_of(pg_pool, job.id) is JobStatus.COMPLETED
    assert await status_of(pg_pool, late.id) is JobStatus.QUEUED


async def test_a_cancelled_worker_leaves_no_task_and_no_running_row(pg_pool: Pool) -> None:
    queue = queue_on(pg_pool)
    script = Script(queue, hold=True)
    for n in range(3):
        await queue.submit(wish(source=f"s{n}"))
    before = asyncio.all_tasks()
    task = asyncio.create_task(_worker(queue, script).run())
    await asyncio.wait_for(script.batch_done.wait(), 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.all_tasks() == before
    assert await pg_pool.fetchval("select count(*) from collection_tasks where status = 'running'") == 0


class _HeldFinish:
    """A queue whose ends reach us late: they are committed, but the answer is on its way."""

    def __init__(self, queue: PostgresJobQueue) -> None:
        self._queue = queue
        self.committed = asyncio.Event()
        self.answer = asyncio.Event()
        self.looks = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)

    async def finish(self, *arguments: Any, **named: Any) -> bool:
        written = await self._queue.finish(*arguments, **named)
        self.committed.set()
        await self.answer.wait()
        return written

    async def look(self, leases: Sequence[Lease]) -> Any:
        self.looks += self.committed.is_set()
        return await self._queue.look(leases)


async def test_a_job_whose_end_is_being_written_is_not_taken_for_lost(pg_pool: Pool) -> None:
    """Its row is final before we hear of it; a look in between must not interrupt the ending."""
    queue = queue_on(pg_pool)
    held = _HeldFinish(queue)
    job, _ = await queue.submit(wish())
    worker = Worker(held, held, {TaskType.COLLECT: Script(queue)}, MemoryWakeup(), SETTINGS, SystemClock())  # type: ignore[arg-type]
    with capture_logs() as logs:
        async with _running(worker):
            await asyncio.wait_for(held.committed.wait(), 60)

            async def looked_twice() -> bool:
                return held.looks >= 2

            await until(looked_twice)
            held.answer.set()
    ends = [entry["status"] for entry in logs if entry["event"] == "data_job.completed"]
    assert ends == ["completed"]
    assert await status_of(pg_pool, job.id) is JobStatus.COMPLETED


class _HeldClaim:
    """A queue whose claims reach us late: they are committed, but the answer is on its way."""

    def __init__(self, queue: PostgresJobQueue) -> None:
        self._queue = queue
        self.committed = asyncio.Event()
        self.answer = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)

    async def claim(self, *arguments: Any) -> Any:
        leases = await self._queue.claim(*arguments)
        self.committed.set()
        await self.answer.wait()
        return leases


@pytest.mark.parametrize("how", ["stop", "cancel"])
async def test_a_claim_whose_answer_comes_after_the_stop_is_given_back(how: str, pg_pool: Pool) -> None:
    queue = queue_on(pg_pool)
    job, _ = await queue.submit(wish())
    held = _HeldClaim(queue)
    script = Script(queue)
    worker = Worker(held, queue, {TaskType.COLLECT: script}, MemoryWakeup(), SETTINGS, SystemClock())  # type: ignore[arg-type]
    task = asyncio.create_task(worker.run())
    await asyncio.wait_for(held.committed.wait(), 60)
    if how == "stop":
        worker.stop()
    else:
        task.cancel()
    await asyncio.sleep(0)
    held.answer.set()
    await asyncio.wait({task}, timeout=60)
    assert task.done() and task.cancelled() == (how == "cancel")
    row = await row_of(pg_pool, job.id)
    assert (row["status"], row["attempts"]) == ("queued", 0)
    assert script.started == []


async def test_a_worker_takes_back_what_a_vanished_one_left(pg_pool: Pool) -> None:
    """Q18."""
    queue = queue_on(pg_pool, rescue_retry_s=0)
    job, _ = await queue.submit(wish())
    await queue.claim("vanished", ["collect"], 1)
    await expire(pg_pool, job.id)
    async with _running(_worker(queue, Script(queue))):
        await until(_has(pg_pool, job.id, JobStatus.COMPLETED))
    assert (await row_of(pg_pool, job.id))["attempts"] == 2


async def test_heartbeats_keep_a_long_job_longer_than_its_lease(pg_pool: Pool) -> None:
    queue = queue_on(pg_pool, lease_s=1)
    script = Script(queue, hold=True)
    job, _ = await queue.submit(wish())
    settings = JobSettings(lease_s=1, heartbeat_s=0.1, poll_s=0.05)
    other = _worker(queue, script, settings=settings)
    async with _running(_worker(queue, script, settings=settings)), _running(other):
        await asyncio.wait_for(script.batch_done.wait(), 60)

        async def older_than_three_leases() -> bool:
            age = "select clock_timestamp() - started_at > interval '3 s' from collection_tasks where id = $1"
            return bool(await pg_pool.fetchval(age, job.id))

        await until(older_than_three_leases)
        script.go_on.set()
        await until(_has(pg_pool, job.id, JobStatus.COMPLETED))
    assert script.started == [job.id]
    assert (await row_of(pg_pool, job.id))["attempts"] == 1


async def test_a_worker_survives_the_loss_of_all_its_connections(pg_dsn: str, pg_pool: Pool) -> None:
    """Q18."""
    queue = queue_on(pg_pool, retry_s=0.05)
    script = Script(queue, hold=True)
    first, _ = await queue.submit(wish())
    async with _running(_worker(queue, script)):
        await asyncio.wait_for(script.batch_done.wait(), 60)
        await pg_pool.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )
        script.go_on.set()
        second, _ = await queue.submit(wish(source="beta"))
        await until(_has(pg_pool, first.id, JobStatus.COMPLETED))
        await until(_has(pg_pool, second.id, JobStatus.COMPLETED))


async def test_a_new_job_starts_by_the_doorbell_long_before_the_next_poll(pg_dsn: str, pg_pool: Pool) -> None:
    """S11: and the poll is there when no doorbell rings."""
    queue = queue_on(pg_pool)
    wakeup = PostgresWakeup(pg_dsn, ("planet_task_control",))
    bell = wakeup.bell("planet_task_control")
    wakeup.start()
    script = Script(queue)
    slow = JobSettings(concurrency=3).model_copy(update={"poll_s": 3600.0})  # longer than a setting may be
    async with _running(_worker(queue, script, bell, settings=slow)):

        async def gate_is_open() -> bool:
            return bool(
                await pg_pool.fetchval("select count(*) from wakeup_gates where open_until > clock_timestamp()")
            )

        await until(gate_is_open)
        await pg_pool.execute("insert into collection_tasks (task_type, source) values ('collect', 'alpha')")

        async def done() -> bool:
            return bool(await pg_pool.fetchval("select count(*) from collection_tasks where status = 'completed'"))

        await until(done, within_s=60)
    await wakeup.aclose()
