"""A worker is killed between two batches: another takes its job up, and nothing is lost or counted wrongly."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys

import pytest

from ledger_tools import queue_on, row_of, status_of, until, wish
from planetwire.database.postgres import Pool
from planetwire.facts.facts_postgres import PostgresFactStore
from planetwire.jobs.tasks.clear_data import ClearDataTask
from planetwire.jobs.worker import Worker
from planetwire.model import JobStatus, TaskType
from planetwire.outbox.wakeup_memory import MemoryWakeup
from planetwire.runtime.clock import SystemClock
from planetwire.settings import JobSettings

BATCHES, ROWS = 6, 50
CHILD = f"""
import asyncio, os, signal, sys
from planetwire.runtime import failpoint
from planetwire.runtime.clock import SystemClock
from planetwire.facts.facts_postgres import PostgresFactStore
from planetwire.facts.sources_postgres import PostgresSourceStore
from planetwire.jobs.ledger.jobs_postgres import PostgresJobQueue
from planetwire.jobs.tasks.clear_data import ClearDataTask
from planetwire.jobs.tasks.collect import CollectTask
from planetwire.jobs.worker import Worker
from planetwire.model import Batch, Fact, FetchState, SourceDefaults, TaskType
from planetwire.outbox.wakeup_memory import MemoryWakeup
from planetwire.database.postgres import open_pool
from planetwire.settings import JobSettings

BATCHES, ROWS = {BATCHES}, {ROWS}

class Feed:
    async def batches(self, source, state, *, manual):
        keys = frozenset(str(n) for n in range(BATCHES * ROWS))
        for b in range(BATCHES):
            facts = [Fact(str(n), "thing", "", {{}}) for n in range(b * ROWS, (b + 1) * ROWS)]
            last = b == BATCHES - 1
            yield Batch(facts, total_hint=len(keys), complete=last, sweep_keys=keys if last else None,
                        state=FetchState("etag") if last else None)

class Facts(PostgresFactStore):
    deletes_left = 1_000_000

    async def clear_chunk(self, tx, table, source, limit):
        gone = await super().clear_chunk(tx, table, source, limit)
        self.deletes_left -= 1
        if self.deletes_left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return gone

async def main(dsn, point):
    pool = await open_pool(dsn, application="work")
    facts = Facts(pool)
    if point.startswith("delete:"):
        facts.deletes_left = int(point.partition(":")[2])
    else:
        failpoint.arm(point or None)
    settings = JobSettings(lease_s=1, heartbeat_s=0.2, poll_s=0.05)
    queue = PostgresJobQueue(pool, settings)
    sources = PostgresSourceStore(pool, [SourceDefaults("alpha", 60, 0)])
    await sources.ensure()
    task = CollectTask(queue, Feed(), facts, sources, SystemClock())
    clear = ClearDataTask(queue, facts, lambda source: (), chunk_rows={ROWS})
    handlers = {{TaskType.COLLECT: task, TaskType.CLEAR_DATA: clear}}
    worker = Worker(queue, queue, handlers, MemoryWakeup(), settings, SystemClock())
    asyncio.get_running_loop().call_later(60, sys.exit, 3)
    await worker.run()

asyncio.run(main(sys.argv[1], sys.argv[2]))
"""


def _child(dsn: str, point: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, dsn, point], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


@pytest.mark.parametrize("passed", [1, 3, BATCHES])
async def test_a_collect_whose_worker_was_killed_is_run_to_its_end_by_another(
    passed: int, pg_dsn: str, pg_pool: Pool
) -> None:
    """S38, S45, S50, Q18."""
    job, _ = await queue_on(pg_pool).submit(wish())
    first = _child(pg_dsn, f"jobs.collect.after_batch:{passed}")
    assert await asyncio.to_thread(first.wait, 60) == -signal.SIGKILL
    row = await row_of(pg_pool, job.id)
    stored = await pg_pool.fetchval("select count(*) from collected_data")
    assert (row["status"], row["records_processed"], stored) == ("running", passed * ROWS, passed * ROWS)

    second = _child(pg_dsn, "")
    try:

        async def done() -> bool:
            return await status_of(pg_pool, job.id) is JobStatus.COMPLETED

        await until(done, within_s=60)
    finally:
        second.kill()
        await asyncio.to_thread(second.wait, 20)
    row = await row_of(pg_pool, job.id)
    assert (row["attempts"], row["records_processed"], row["progress"]) == (2, BATCHES * ROWS, 1.0)
    assert row["error_code"] is None
    # The second run wrote only what the first had not: nothing changed twice.
    changes = await pg_pool.fetchval("select sum(records_processed) from earth_data_change_events")
    assert changes == await pg_pool.fetchval("select count(*) from collected_data") == BATCHES * ROWS


@pytest.mark.parametrize("passed", [0, 3])
async def test_a_clearing_whose_worker_was_killed_inside_a_delete_goes_on_where_it_was(
    passed: int, pg_dsn: str, pg_pool: Pool
) -> None:
    """S41, S50, Q18: the open delete is undone, the earlier ones are kept and counted once."""
    await pg_pool.execute(
        """insert into collected_data (source, external_key, kind)
           select 'alpha', n::text, 'thing' from generate_series(1, $1) n""",
        BATCHES * ROWS,
    )
    job, _ = await queue_on(pg_pool).submit(wish(TaskType.CLEAR_DATA))
    first = _child(pg_dsn, f"delete:{passed}")
    assert await asyncio.to_thread(first.wait, 60) == -signal.SIGKILL
    left = "select count(*) from collected_data"

    async def kept() -> bool:  # the server may need a moment to see that its client is gone
        return bool(await pg_pool.fetchval(left) == (BATCHES - passed) * ROWS)

    await until(kept)
    assert (await row_of(pg_pool, job.id))["records_processed"] == passed * ROWS
    second = _child(pg_dsn, "")
    try:

        async def done() -> bool:
            return await status_of(pg_pool, job.id) is JobStatus.COMPLETED

        await until(done, within_s=60)
    finally:
        second.kill()
        await asyncio.to_thread(second.wait, 20)
    row = await row_of(pg_pool, job.id)
    assert (row["attempts"], row["records_processed"], row["progress"]) == (2, BATCHES * ROWS, 1.0)
    assert await pg_pool.fetchval(left) == 0


async def test_a_job_that_was_being_stopped_when_its_worker_died_ends_cancelled(pg_dsn: str, pg_pool: Pool) -> None:
    """S48, Q18."""
    queue = queue_on(pg_pool)
    job, _ = await queue.submit(wish())
    dead = _child(pg_dsn, "jobs.collect.after_batch:2")
    await asyncio.to_thread(dead.wait, 60)
    assert (await queue.cancel(job.id)).status is JobStatus.CANCELLING
    clearing, _ = await queue.submit(wish(TaskType.CLEAR_DATA))
    settings = JobSettings(lease_s=1, heartbeat_s=0.2, poll_s=0.05)
    handler = ClearDataTask(queue, PostgresFactStore(pg_pool), lambda source: ())
    worker = Worker(queue, queue, {TaskType.CLEAR_DATA: handler}, MemoryWakeup(), settings, SystemClock())
    task = asyncio.create_task(worker.run())

    async def done() -> bool:
        return await status_of(pg_pool, clearing.id) is JobStatus.COMPLETED

    await until(done)
    worker.stop()
    await asyncio.wait_for(task, 60)
    row = await row_of(pg_pool, job.id)
    assert (row["status"], row["records_processed"]) == ("cancelled", 2 * ROWS)
    assert (await row_of(pg_pool, clearing.id))["records_processed"] == 2 * ROWS
