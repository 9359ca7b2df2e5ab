"""What keeps the ledger well: heartbeats in a thread, the ends of stubborn jobs, pauses, the sweep, the pruning."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs

from ledger_tools import ALL_TYPES, claim_one, queue_on, row_of, status_of, until, wish
from planetwire.database.postgres import Pool, connect, open_pool
from planetwire.jobs.housekeeping import Housekeeping
from planetwire.jobs.ledger.ends_postgres import MOST
from planetwire.jobs.ledger.jobs_postgres import PostgresJobQueue
from planetwire.jobs.worker import Worker
from planetwire.model import JobStatus, Lease, TaskType
from planetwire.outbox.wakeup_memory import MemoryWakeup
from planetwire.runtime.clock import SystemClock
from planetwire.settings import JobSettings

BEATS = 3


class Watcher:
    """Sees, from a thread of its own, that a job's lease is extended again and again."""

    def __init__(self, dsn: str, task_id: int) -> None:
        self.alive = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._watch(dsn, task_id)), daemon=True)
        self._thread.start()

    async def _watch(self, dsn: str, task_id: int) -> None:
        connection = await connect(dsn, application="test")
        seen: set[Any] = set()
        while len(seen) <= BEATS:
            seen.add(
                await connection.fetchval(
                    "select heartbeat_at from collection_tasks where id = $1 and status = 'running'", task_id
                )
            )
            await asyncio.sleep(0.02)
        await connection.close()
        self.alive.set()


async def test_a_handler_that_blocks_the_loop_keeps_its_lease_and_the_stall_is_told(pg_dsn: str, pg_pool: Pool) -> None:
    settings = JobSettings(lease_s=1.0, heartbeat_s=0.2, poll_s=0.05)

    @asynccontextmanager
    async def heart() -> AsyncIterator[PostgresJobQueue]:
        pool = await open_pool(pg_dsn, application="test heart", max_size=2)
        try:
            yield PostgresJobQueue(pool, settings)
        finally:
            await pool.close()

    async def block(lease: Lease) -> str:
        if not Watcher(pg_dsn, lease.job.id).alive.wait(30):
            pytest.fail("no heartbeats while the loop was blocked")
        # Longer than a stall is told after, whatever the machine: the watch of the loop asks once a second.
        threading.Event().wait(2.5)
        return "through"

    queue = PostgresJobQueue(pg_pool, settings)
    job, _ = await queue.submit(wish())
    worker = Worker(
        queue, queue, {TaskType.COLLECT: block}, MemoryWakeup(), settings, SystemClock(), heart=heart, drain_s=0.05
    )
    with capture_logs() as logs:
        running = asyncio.create_task(worker.run())
        await until(lambda: _is(pg_pool, job.id, JobStatus.COMPLETED), within_s=60)
        await until(lambda: _told(logs, "data_job.loop.stalled"))
        worker.stop()
        await running
    row = await row_of(pg_pool, job.id)
    assert (row["attempts"], row["message"]) == (1, "through")
    assert not [entry for entry in logs if entry["event"] == "data_job.lease.expired"]


async def _is(pool: Pool, task_id: int, status: JobStatus) -> bool:
    return await status_of(pool, task_id) is status


async def _told(logs: Any, event: str) -> bool:
    return any(entry["event"] == event for entry in logs)


async def test_a_job_that_does_not_stop_when_asked_is_ended_by_the_ledger(pg_pool: Pool) -> None:
    """S48: nothing stays in `cancelling` for ever, whatever its worker goes on saying."""
    queue = queue_on(pg_pool)
    await queue.submit(wish())
    lease = await claim_one(queue)
    async with queue.batch(lease) as tx:
        tx.progress(5)
    await queue.cancel(lease.job.id)
    assert await queue.heartbeat([lease]) == {lease.job.id: JobStatus.CANCELLING}
    assert await queue.rescue() == 0
    await pg_pool.execute(
        "update collection_tasks set cancel_requested_at = clock_timestamp() - interval '61 s' where id = $1",
        lease.job.id,
    )
    await queue.heartbeat([lease])
    assert await queue.rescue() == 1
    row = await row_of(pg_pool, lease.job.id)
    assert (row["status"], row["records_processed"], row["batches"]) == ("cancelled", 5, 1)
    assert "did not stop" in row["message"]
    assert not await queue.finish(lease, JobStatus.COMPLETED)


@pytest.mark.parametrize("few_sources", [0, 200])
async def test_a_paused_source_starts_nothing_and_goes_on_when_it_is_released(pg_pool: Pool, few_sources: int) -> None:
    queue = queue_on(pg_pool, few_sources=few_sources)
    running, _ = await queue.submit(wish(source="alpha"))
    lease = await claim_one(queue)
    await queue.pause("alpha", True)
    await queue.pause("alpha", True)
    waiting, _ = await queue.submit(wish(source="alpha"))
    other, _ = await queue.submit(wish(source="beta"))
    # What runs goes on, to its end.
    async with queue.batch(lease) as tx:
        tx.progress(1)
    assert await queue.finish(lease, JobStatus.COMPLETED)
    claimed = await queue.claim("w", ALL_TYPES, 10)
    assert [lease.job.id for lease in claimed] == [other.id]
    assert await queue.claim("w", ALL_TYPES, 10) == []
    # Jobs without a source's turn to wait for are none of the pause's business.
    await queue.submit(wish(TaskType.CLEAR_CACHE, source="alpha"))
    assert len(await queue.claim("w", ALL_TYPES, 10)) == 1
    await queue.pause("alpha", False)
    await queue.pause("alpha", False)
    assert [lease.job.id for lease in await queue.claim("w", ALL_TYPES, 10)] == [waiting.id]
    assert await status_of(pg_pool, running.id) is JobStatus.COMPLETED


async def test_the_sweep_finds_nothing_and_mends_loudly_what_was_made_unseen(pg_pool: Pool) -> None:
    queue = queue_on(pg_pool)
    for n in range(3):
        await queue.submit(wish(source=f"s{n}"))
    await queue.submit(wish(source="busy"))
    assert await queue.sweep() == 0
    # Only with our triggers off can a job be lost from sight.
    await pg_pool.execute("alter table collection_tasks disable trigger user")
    await pg_pool.execute("update collection_tasks set parked = 'source' where source in ('s1', 'busy')")
    await pg_pool.execute(
        """update collection_tasks set status = 'running', lease_until = clock_timestamp() + interval '1 h'
           where source = 'busy'"""
    )
    await pg_pool.execute("alter table collection_tasks enable trigger user")
    assert {lease.job.source for lease in await queue.claim("w", ALL_TYPES, 10)} == {"s0", "s2"}
    with capture_logs() as logs:
        assert await Housekeeping(queue.sweep, [], SystemClock()).step() == 0
    assert [entry["jobs"] for entry in logs if entry["event"] == "data_job.sweep.mended"] == [1]
    assert [lease.job.source for lease in await queue.claim("w", ALL_TYPES, 10)] == ["s1"]


async def test_finished_jobs_go_after_their_time_a_few_at_a_time_and_nothing_else_does(pg_pool: Pool) -> None:
    await pg_pool.execute(
        """insert into collection_tasks (task_type, source, status, finished_at, lease_until)
           select 'collect', 's' || n, (array['completed', 'failed', 'cancelled', 'queued', 'running'])[1 + n % 5],
               case when n % 5 < 3 then clock_timestamp() - interval '1 h' * (n % 100) end,
               case when n % 5 = 4 then clock_timestamp() end
           from generate_series(1, 2500) n"""
    )
    queue = PostgresJobQueue(pg_pool, JobSettings(keep_days=2))
    old = await pg_pool.fetchval(
        "select count(*) from collection_tasks where finished_at < clock_timestamp() - interval '2 days'"
    )
    assert old > 0
    assert await Housekeeping(queue.sweep, [queue.prune], SystemClock()).step() == old
    left = await pg_pool.fetchrow(
        """select count(*) as rows, count(*) filter (where status in ('queued', 'running')) as active,
               count(*) filter (where finished_at < clock_timestamp() - interval '49 h') as old
           from collection_tasks"""
    )
    assert dict(left) == {"rows": 2500 - old, "active": 1000, "old": 0}


async def test_ends_that_are_written_at_one_time_share_statements(pg_pool: Pool) -> None:
    jobs = 2 * MOST
    await pg_pool.execute(
        "insert into collection_tasks (task_type) select 'earth_refresh' from generate_series(1, $1::int)", jobs
    )
    queue = queue_on(pg_pool)
    leases: list[Lease] = []
    while claimed := await queue.claim("w", ALL_TYPES, 200):  # a claim may bring fewer than it may
        leases += claimed
    assert len(leases) == jobs
    ended = await asyncio.gather(
        *(
            queue.finish(lease, JobStatus.FAILED, error=("not_found", "gone"), sample="x" * 500)
            if n % 100 == 0
            else queue.finish(lease, JobStatus.COMPLETED)
            for n, lease in enumerate(leases)
        )
    )
    assert all(ended)
    # One transaction wrote each half: its number is in the rows.
    writers = await pg_pool.fetchval("select count(distinct xmin::text) from collection_tasks")
    assert writers <= 4
    failed = await pg_pool.fetch("select error_code, error, sample from collection_tasks where status = 'failed'")
    assert {tuple(row) for row in failed} == {("not_found", "gone", "x" * 200)} and len(failed) == jobs // 100
    assert all(await asyncio.gather(*(queue.finish(lease, JobStatus.COMPLETED) for lease in leases[:3])))
    assert await status_of(pg_pool, leases[0].job.id) is JobStatus.FAILED
