"""Leases go by the database's clock: long jobs, clocks that are wrong, and how soon a dead worker's job runs again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import ledger_oracle
from chaos import Crew
from ledger_tools import row_of, status_of, until, wish
from missing import faketime_library
from planetwire.database.postgres import Pool
from planetwire.jobs.ledger.jobs_postgres import RESCUE_RETRY_S, PostgresJobQueue
from planetwire.jobs.running import Handler
from planetwire.jobs.worker import Worker
from planetwire.model import JobStatus, Lease, TaskType
from planetwire.outbox.wakeup_memory import MemoryWakeup
from planetwire.ports import Clock
from planetwire.runtime.clock import ManualClock, SystemClock
from planetwire.settings import JobSettings

START = datetime(2026, 5, 1, tzinfo=UTC)
SETTINGS = JobSettings(poll_s=0.05)  # else the product's: lease 30 s, heartbeat 10 s
STEP_S = 12.0  # longer than the longest pause between two heartbeats, shorter than a lease
SMALL_STEP_S = 0.5
HOUR_S = 3600.0
DEAD_JOBS = 12
WORKER_SLEEPERS = 3  # of an idle worker: heartbeat, rescue, and the guard of both
# The database's clock cannot be moved, but everything that it has noted can be.
AGE = """
update collection_tasks set started_at = started_at - make_interval(secs => $1),
    heartbeat_at = heartbeat_at - make_interval(secs => $1), lease_until = lease_until - make_interval(secs => $1),
    deadline_at = deadline_at - make_interval(secs => $1)
where status = 'running'
"""
AGE_WAITING = """
update collection_tasks set scheduled_at = scheduled_at - make_interval(secs => $1)
where status = 'queued' and scheduled_at is not null
"""


class Beats(PostgresJobQueue):
    """Tells when heartbeats reached the database, and what others were found silent."""

    def __init__(self, pool: Pool, rescue_retry_s: float = 0.0) -> None:
        super().__init__(pool, SETTINGS, rescue_retry_s=rescue_retry_s)
        self.beaten = asyncio.Event()
        self.looked = asyncio.Event()
        self.rescued = 0

    async def heartbeat(self, leases: Sequence[Lease]) -> Mapping[int, JobStatus]:
        owned = await super().heartbeat(leases)
        self.beaten.set()
        return owned

    async def rescue(self, limit: int = 100) -> int:
        found = await super().rescue(limit)
        self.rescued += found
        self.looked.set()
        return found


class Long:
    """A handler that runs until it is told to end."""

    def __init__(self) -> None:
        self.runs = 0
        self.started = asyncio.Event()
        self.end = asyncio.Event()

    async def __call__(self, lease: Lease) -> str | None:
        self.runs += 1
        self.started.set()
        await self.end.wait()
        return None


@asynccontextmanager
async def _working(queue: PostgresJobQueue, handler: Handler, clock: Clock, **options: Any) -> AsyncIterator[Worker]:
    settings = options.pop("settings", SETTINGS)
    handlers = {TaskType.COLLECT: handler, TaskType.CLEAR_DATA: handler}
    worker = Worker(queue, queue, handlers, MemoryWakeup(), settings, clock, drain_s=0, **options)
    task = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        worker.stop()
        await asyncio.wait_for(task, 60)


async def _pass_time(pool: Pool, seconds: float, mine: Beats, other: Beats, clock: ManualClock) -> None:
    """One step: everything is that much older, and both workers feel the time go by."""
    for queue in (mine, other):
        queue.beaten.clear()
        queue.looked.clear()
    await pool.execute(AGE, seconds)
    clock.advance(seconds)
    async with asyncio.timeout(60):
        await other.looked.wait()


async def test_a_job_of_three_hours_is_never_run_twice(pg_pool: Pool) -> None:
    """Q18: heartbeats keep it, whatever its age; another worker looks for silent ones all the time."""
    clock, handler = ManualClock(START), Long()
    mine, other = Beats(pg_pool), Beats(pg_pool)
    job, _ = await mine.submit(wish())
    behind, _ = await mine.submit(wish(TaskType.CLEAR_DATA))
    async with _working(mine, handler, clock):
        await asyncio.wait_for(handler.started.wait(), 60)
        async with _working(other, handler, clock):
            for _ in range(int(3 * HOUR_S / STEP_S)):
                await _pass_time(pg_pool, STEP_S, mine, other, clock)
                await asyncio.wait_for(mine.beaten.wait(), 60)
            age = await pg_pool.fetchval(
                "select clock_timestamp() - started_at from collection_tasks where id = $1", job.id
            )
            row = await row_of(pg_pool, job.id)
            assert age > timedelta(hours=3) and (row["status"], row["attempts"], handler.runs) == ("running", 1, 1)
            assert mine.rescued == other.rescued == 0 and await status_of(pg_pool, behind.id) is JobStatus.QUEUED
            handler.end.set()

            async def both_ended() -> bool:
                return await status_of(pg_pool, behind.id) is JobStatus.COMPLETED

            await until(both_ended)
    assert [(await row_of(pg_pool, each.id))["attempts"] for each in (job, behind)] == [1, 1]


async def test_a_job_past_its_deadline_is_not_kept_by_heartbeats(pg_pool: Pool) -> None:
    """Q18: a handler that hangs beats for ever; its deadline, six hours, ends it in the ledger too."""
    queue = Beats(pg_pool)
    job, _ = await queue.submit(wish())
    lease = (await queue.claim("hangs", ["collect"], 1))[0]
    steps = 0
    while await queue.heartbeat([lease]):
        assert await queue.rescue() == 0 or steps * 25 >= 6 * HOUR_S
        await pg_pool.execute(AGE, 25.0)
        steps += 1
        assert steps * 25 < 6 * HOUR_S + 60
    assert steps * 25 >= 6 * HOUR_S
    row = await row_of(pg_pool, job.id)
    assert (row["status"], row["error_code"]) == ("queued", "deadline_exceeded")


# --- wrong clocks


class Shifted(SystemClock):
    """The machine's clock, wrong by a constant."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self._seconds)

    def monotonic(self) -> float:
        return super().monotonic() + self._seconds


SUBMIT = """
insert into collection_tasks (task_type, source, payload, max_attempts)
select case when n % 4 = 3 then 'clear_data' else 'collect' end, 's' || (n % 6), '{"batches": 3}', 25
from generate_series(1, $1) n
"""
LEFT = "select count(*) from collection_tasks where finished_at is null"
OUT_OF_TIME = """
select count(*) from collection_tasks
where not (created_at <= started_at and started_at <= heartbeat_at and heartbeat_at <= clock_timestamp()
    and started_at <= finished_at and finished_at <= clock_timestamp()
    and coalesce(scheduled_at, created_at) <= started_at)
"""


def _in_batches(queue: PostgresJobQueue, pool: Pool) -> Handler:
    async def run(lease: Lease) -> str | None:
        for batch in await ledger_oracle.batches_left(pool, lease):
            async with queue.batch(lease) as tx:
                await ledger_oracle.leave_effect(tx, lease, batch, 3)
        return None

    return run


async def _until_none_left(pool: Pool) -> None:
    async def done() -> bool:
        return not await pool.fetchval(LEFT)

    await until(done, within_s=60)
    assert await ledger_oracle.violations(pool) == []
    assert await pool.fetchval("select count(*) from collection_tasks where status <> 'completed'") == 0
    assert await pool.fetchval(OUT_OF_TIME) == 0


async def test_workers_whose_clocks_are_an_hour_apart_both_ways_share_a_ledger(pg_pool: Pool) -> None:
    """Q18: no lease is taken for expired, none for endless, and every time in the row is the database's."""
    await ledger_oracle.install(pg_pool)
    await pg_pool.execute(SUBMIT, 60)
    settings = JobSettings(lease_s=2, heartbeat_s=0.2, poll_s=0.05)
    queue = PostgresJobQueue(pg_pool, settings)
    handler = _in_batches(queue, pg_pool)
    async with (
        _working(queue, handler, Shifted(-HOUR_S), settings=settings),
        _working(queue, handler, Shifted(0), settings=settings),
        _working(queue, handler, Shifted(HOUR_S), settings=settings),
    ):
        await _until_none_left(pg_pool)
    assert await pg_pool.fetchval("select max(attempts) from collection_tasks") == 1


async def test_processes_whose_clocks_are_an_hour_wrong_take_over_from_each_other(pg_pool: Pool, pg_dsn: str) -> None:
    """Q18: one hour before and one behind; each is killed once, so the other finds it silent by the same clock."""
    library = faketime_library()
    await ledger_oracle.install(pg_pool)
    await pg_pool.execute(SUBMIT, 60)
    crew = Crew()
    # Not the program `faketime`: it stays in between, and a kill would meet it alone.
    for name, offset in (("early", "-1h"), ("late", "+1h")):
        crew.hire(name, pg_dsn, "env", f"LD_PRELOAD={library}", f"FAKETIME={offset}")
    try:
        for name, share in (("early", 30), ("late", 90)):

            async def so_far(name: str = name, share: int = share) -> bool:
                if await pg_pool.fetchval(LEFT) < 30:  # who starts late finds work too
                    await pg_pool.execute(SUBMIT, 30)
                runs = "select count(*) from collection_tasks where status = 'running' and worker_id like $1 || '-%'"
                done = await pg_pool.fetchval("select count(*) from effects")
                return bool(done >= share and await pg_pool.fetchval(runs, name))

            await until(so_far, within_s=60)
            crew.kill(name)
        await _until_none_left(pg_pool)
    finally:
        await crew.stop()
    # Only what a killed worker held was run again: a lease that was alive was never taken.
    again = await pg_pool.fetchval("select count(*) from collection_tasks where attempts > 1")
    lost = await pg_pool.fetchval("select count(*) from transitions where old = 'running' and new = 'queued'")
    assert 0 < again <= lost <= 8


# --- dead workers


async def test_the_job_of_a_dead_worker_runs_again_within_its_lease_and_five_seconds(
    pg_pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Q18: in steps of both clocks, so that a busy machine changes nothing; leases that end at every phase of the
    rescue, whose pauses are the longest they can be.
    """
    monkeypatch.setattr(random, "uniform", lambda _, most: most)
    clock, passed_s = ManualClock(START), 0.0
    taken: dict[int, float] = {}
    waited: dict[int, float] = {}
    living = Beats(pg_pool, rescue_retry_s=RESCUE_RETRY_S)

    async def note(lease: Lease) -> str | None:
        waited[lease.job.id] = passed_s - taken[lease.job.id]
        return None

    async with _working(living, note, clock):
        await until(lambda: _asleep(clock))
        while len(waited) < DEAD_JOBS and passed_s < 2 * SETTINGS.lease_s:
            if len(taken) < DEAD_JOBS:
                taken[await _taken_by_the_dead(pg_pool, len(taken))] = passed_s
            await pg_pool.execute(AGE, SMALL_STEP_S)
            await pg_pool.execute(AGE_WAITING, SMALL_STEP_S)
            clock.advance(SMALL_STEP_S)
            passed_s += SMALL_STEP_S
            await until(lambda: _asleep(clock))
            await until(lambda: _none_may_start(pg_pool))
    pause_s = JobSettings().poll_s  # between two looks of an idle worker, which here goes by the real clock
    assert len(waited) == DEAD_JOBS
    assert min(waited.values()) >= SETTINGS.lease_s - SMALL_STEP_S, "a lease that still ran was taken"
    assert max(waited.values()) + pause_s <= SETTINGS.lease_s + 5


async def _taken_by_the_dead(pool: Pool, number: int) -> int:
    """A job that is running from its first moment, of a worker that is not there."""
    row = """insert into collection_tasks
        (task_type, source, status, worker_id, attempts, lease_seq, started_at, heartbeat_at, lease_until, deadline_at)
        values ('collect', $1, 'running', 'dead', 1, 1, clock_timestamp(), clock_timestamp(),
            clock_timestamp() + make_interval(secs => $2), clock_timestamp() + interval '6 h') returning id"""
    return int(await pool.fetchval(row, f"s{number}", SETTINGS.lease_s))


async def _asleep(clock: ManualClock) -> bool:
    return clock.sleepers == WORKER_SLEEPERS


async def _none_may_start(pool: Pool) -> bool:
    return not await pool.fetchval(
        "select count(*) from collection_tasks where status = 'queued' and scheduled_at <= clock_timestamp()"
    )
