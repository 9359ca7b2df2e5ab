"""The process that schedules is killed while it fires: nothing is lost, and nothing fires twice."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys

import pytest

from ledger_tools import queue_on
from planetwire.database.postgres import Pool
from planetwire.facts.sources_postgres import PostgresSourceStore
from planetwire.jobs.ledger.schedule_postgres import PostgresScheduleBook
from planetwire.jobs.schedule import Schedule
from planetwire.model import SourceDefaults
from planetwire.runtime.clock import SystemClock

KNOWN = [SourceDefaults(f"s{n}", 600, 0) for n in range(4)]
CHILD = """
import asyncio, sys
from planetwire.runtime import failpoint
from planetwire.runtime.clock import SystemClock
from planetwire.jobs.ledger.jobs_postgres import PostgresJobQueue
from planetwire.jobs.schedule import Schedule
from planetwire.jobs.ledger.schedule_postgres import PostgresScheduleBook
from planetwire.model import SourceDefaults
from planetwire.database.postgres import open_pool
from planetwire.settings import JobSettings

async def main(dsn, point):
    failpoint.arm(point)
    pool = await open_pool(dsn, application="collect")
    known = [SourceDefaults(f"s{n}", 600, 0) for n in range(4)]
    asyncio.get_running_loop().call_later(60, sys.exit, 3)
    await Schedule(PostgresScheduleBook(pool, PostgresJobQueue(pool, JobSettings()), known), SystemClock()).run()

asyncio.run(main(sys.argv[1], sys.argv[2]))
"""


@pytest.mark.parametrize("calendar", [False, True])
@pytest.mark.parametrize(
    ("point", "done"),
    [("jobs.schedule.settled", 0), ("jobs.schedule.settled:3", 2), ("jobs.schedule.committed:2", 2)],
)
async def test_a_schedule_that_was_killed_is_taken_up_where_it_was(
    point: str, done: int, calendar: bool, pg_dsn: str, pg_pool: Pool
) -> None:
    store = PostgresSourceStore(pg_pool, KNOWN)
    await store.ensure()
    if calendar:
        for defaults in KNOWN:
            await store.change(defaults.source, {"cron": "0 0 * * *"})
        await pg_pool.execute(
            """update datasources set tick_at = clock_timestamp() - interval '20 s',
                next_run_at = clock_timestamp() - interval '10 s'"""
        )
    child = subprocess.Popen([sys.executable, "-c", CHILD, pg_dsn, point])
    assert await asyncio.to_thread(child.wait, 60) == -signal.SIGKILL
    count = "select count(*) from collection_tasks"
    assert await pg_pool.fetchval(count) == done == await pg_pool.fetchval("select count(*) from schedule_firings")
    # The server may still hold the rows of the connection that died; then they come with a later look.
    schedule = Schedule(PostgresScheduleBook(pg_pool, queue_on(pg_pool), KNOWN), SystemClock())
    async with asyncio.timeout(60):
        while await pg_pool.fetchval(count) < len(KNOWN):
            await schedule.step()
    assert await schedule.step() == 0
    rows = await pg_pool.fetch("select source, task_id from schedule_firings order by source")
    assert [row["source"] for row in rows] == [defaults.source for defaults in KNOWN]
    assert all(row["task_id"] for row in rows)
