"""Who keeps leases alive is watched: what fails is logged and goes on, what stands still ends the worker in time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from structlog.testing import capture_logs

from ledger_tools import row_of, status_of, until, wish
from planetwire.database.postgres import Pool, close_pool, open_pool
from planetwire.errors import BackendError, StateError
from planetwire.jobs import pulse
from planetwire.jobs.heart import HeartThread
from planetwire.jobs.ledger.jobs_postgres import PostgresJobQueue
from planetwire.jobs.pulse import Pulse, until_silent
from planetwire.jobs.worker import Worker
from planetwire.model import JobStatus, Lease, TaskType
from planetwire.outbox.wakeup_memory import MemoryWakeup
from planetwire.runtime.clock import ManualClock, SystemClock
from planetwire.settings import JobSettings

SETTINGS = JobSettings(lease_s=3, heartbeat_s=0.2, poll_s=0.05)
Beat = Callable[[], Awaitable[object]]


class Beats(PostgresJobQueue):
    """The heart's queue: before each beat it does what the test says; beats that reached the database are counted."""

    def __init__(self, pool: Pool, settings: JobSettings, before: Beat | None = None) -> None:
        super().__init__(pool, settings)
        self.before = before
        self.beaten = 0

    async def heartbeat(self, leases: Sequence[Lease]) -> Mapping[int, JobStatus]:
        if self.before is not None:
            await self.before()
        owned = await super().heartbeat(leases)
        self.beaten += 1
        return owned


class Thread:
    """The heart's queues, opened in its thread one after another; `troubles`: what opening meets first."""

    def __init__(self, dsn: str, *, before: Beat | None = None, troubles: Sequence[Exception] = ()) -> None:
        self.dsn = dsn
        self.before = before
        self.troubles = list(troubles)
        self.queues: list[Beats] = []

    @asynccontextmanager
    async def open(self) -> AsyncIterator[PostgresJobQueue]:
        if self.troubles:
            raise self.troubles.pop(0)
        pool = await open_pool(self.dsn, application="heart", max_size=2)
        try:
            self.queues.append(Beats(pool, SETTINGS, self.before))
            yield self.queues[-1]
        finally:
            await close_pool(pool)

    async def has_beaten(self) -> bool:
        return any(queue.beaten >= 2 for queue in self.queues)


async def held(lease: Lease) -> str | None:
    """A handler that runs until it is told to stop."""
    await asyncio.Event().wait()
    return None


def worker_of(queue: PostgresJobQueue, **options: Any) -> Worker:
    clock = options.pop("clock", SystemClock())
    settings = options.pop("settings", SETTINGS)
    return Worker(queue, queue, {TaskType.COLLECT: held}, MemoryWakeup(), settings, clock, drain_s=0.05, **options)


def once(error: Exception) -> Beat:
    """Raises it the first time."""
    left = [error]

    async def before() -> None:
        if left:
            raise left.pop()

    return before


async def running(pool: Pool, task_id: int) -> None:
    async def runs() -> bool:
        return await status_of(pool, task_id) is JobStatus.RUNNING

    await until(runs)


@pytest.mark.parametrize(
    ("thread", "event"),
    [
        ({"before": once(ValueError("queue"))}, "data_job.upkeep.crashed"),
        ({"troubles": [ValueError("opening")]}, "data_job.heart.failed"),
        ({"troubles": [BackendError("away")]}, "data_job.upkeep.failed"),
    ],
)
async def test_a_part_that_fails_once_is_logged_and_beats_again(
    thread: dict[str, Any], event: str, pg_dsn: str, pg_pool: Pool
) -> None:
    """E17."""
    queue = PostgresJobQueue(pg_pool, SETTINGS)
    job, _ = await queue.submit(wish())
    heart = Thread(pg_dsn, **thread)
    worker = worker_of(queue, heart=heart.open)
    with capture_logs() as logs:
        task = asyncio.create_task(worker.run())
        await until(heart.has_beaten)
        worker.stop()
        await task
    assert event in {entry["event"] for entry in logs}
    assert (await row_of(pg_pool, job.id))["status"] == "queued", "and it was given back at the end"


async def test_a_part_that_ends_by_itself_is_begun_again(
    pg_dsn: str, pg_pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = PostgresJobQueue(pg_pool, SETTINGS)
    await queue.submit(wish())
    heart = Thread(pg_dsn)
    beat, ends = HeartThread._beat, [1]

    async def first_ends(self: HeartThread) -> None:
        if ends:
            ends.pop()
        else:
            await beat(self)

    monkeypatch.setattr(HeartThread, "_beat", first_ends)
    worker = worker_of(queue, heart=heart.open)
    with capture_logs() as logs:
        task = asyncio.create_task(worker.run())
        await until(heart.has_beaten)
        worker.stop()
        await task
    assert {"data_job.heart.failed"} <= {entry["event"] for entry in logs}


async def forever() -> None:
    await asyncio.Event().wait()


async def blocked() -> None:
    """Holds the thread itself, not only the coroutine: nothing of the heart runs any more."""
    time.sleep(5)


async def broken() -> None:
    raise ValueError("every time")


async def broken_thread(thread: HeartThread) -> None:
    thread._ready.set()
    raise MemoryError


@pytest.mark.parametrize("fault", [forever, blocked, broken, None])
async def test_a_worker_whose_heart_stands_still_gives_its_jobs_back_and_ends_before_its_leases_do(
    fault: Beat | None, pg_dsn: str, pg_pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E17: nothing is renewed, the database is well, and another could run the same job after the lease. None: the
    thread dies.
    """
    if fault is None:
        monkeypatch.setattr(HeartThread, "_live", broken_thread)
    monkeypatch.setattr(pulse, "SILENT_LEAST_S", 0.1)
    queue = PostgresJobQueue(pg_pool, SETTINGS)
    job, _ = await queue.submit(wish())
    worker = worker_of(queue, heart=Thread(pg_dsn, before=fault).open)
    with capture_logs() as logs:
        task = asyncio.create_task(worker.run())
        await running(pg_pool, job.id)
        with pytest.raises(StateError, match="heart"):
            await task
    stopped = next(entry for entry in logs if entry["event"] == "data_job.heart.stopped")
    assert stopped["jobs"] == 1 and stopped["seconds"] < SETTINGS.lease_s
    row = await row_of(pg_pool, job.id)
    # Given back by its own worker, which counts no attempt; a rescue after the lease would.
    assert (row["status"], row["attempts"], row["error_code"]) == ("queued", 0, None)


async def test_a_heart_in_the_workers_own_loop_is_watched_too(pg_pool: Pool) -> None:
    settings = JobSettings(lease_s=30, heartbeat_s=10, poll_s=0.05)
    clock = ManualClock(datetime(2026, 5, 4, tzinfo=UTC))
    queue = Beats(pg_pool, settings, forever)
    job, _ = await queue.submit(wish())
    worker = worker_of(queue, clock=clock, settings=settings)
    task = asyncio.create_task(worker.run())
    await running(pg_pool, job.id)

    async def ended() -> bool:
        clock.advance(pulse.GUARD_S)
        return task.done()

    await until(ended)
    assert isinstance(task.exception(), StateError)
    assert (await row_of(pg_pool, job.id))["status"] == "queued"


class Turns:
    """A clock of which each sleep is one turn of the guard."""

    def __init__(self, turn: Callable[[int], None] = lambda number: None) -> None:
        self.turns = 0
        self.turn = turn

    async def sleep(self, seconds: float) -> None:
        self.turns += 1
        self.turn(self.turns)
        if self.turns > 1_000:
            raise TimeoutError


async def test_a_heart_is_not_blamed_while_the_database_answers_nobody() -> None:
    asked: list[int] = []

    async def answers() -> bool:
        asked.append(1)
        return len(asked) > 5

    silent_s = await until_silent(Pulse(), JobSettings(), Turns(), answers)  # type: ignore[arg-type]
    assert silent_s == pulse.SILENT_SHARE * 30 + 5 * pulse.GUARD_S


async def test_a_heart_that_beats_as_seldom_as_it_was_told_is_never_silent() -> None:
    heart = Pulse()
    for heartbeat_s in (10.0, 100.0):
        settings = JobSettings(lease_s=30, heartbeat_s=heartbeat_s)
        every = round(1.2 * heartbeat_s / pulse.GUARD_S)

        def turn(number: int, every: int = every) -> None:
            if number % every == 0:
                heart.beat()

        async def answers() -> bool:
            return True

        with pytest.raises(TimeoutError):
            await until_silent(heart, settings, Turns(turn), answers)  # type: ignore[arg-type]
