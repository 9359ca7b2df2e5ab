"""What follows on a collect that failed in passing: a try soon, then every quarter of an hour, until one succeeds."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from socket import socket
from typing import Any

import pytest

from ledger_tools import queue_on, row_of, until, wish
from planetwire.collect.bodies_file import FileBodyStore
from planetwire.collect.collector import FeedCollector
from planetwire.collect.feeds import fact_feeds, source_defaults
from planetwire.collect.http.client import PoliteClient
from planetwire.database.postgres import Pool
from planetwire.demo.server import FeedServer
from planetwire.demo.world import QUAKES_FOLDER
from planetwire.facts.facts_postgres import PostgresFactStore
from planetwire.facts.sources_postgres import PostgresSourceStore
from planetwire.jobs.ledger.schedule_postgres import PostgresScheduleBook
from planetwire.jobs.schedule import Schedule
from planetwire.jobs.tasks.collect import CollectTask
from planetwire.jobs.worker import Worker
from planetwire.model import SourceDefaults, TaskType
from planetwire.outbox.wakeup_memory import MemoryWakeup
from planetwire.runtime.clock import SystemClock
from planetwire.settings import FeedSettings, JobSettings, Settings

HOURS = 3600.0
KNOWN = [SourceDefaults("alpha", 4 * HOURS, 2 * HOURS)]
UNREACHED = ("transient", "cannot reach example.org")
PAUSES = [60, 120, 300, 900, 900]
STATE = """select failures, extract(epoch from retry_at - clock_timestamp())::float8 as retry_s,
    extract(epoch from next_run_at - clock_timestamp())::float8 as next_s, answered_at from datasources
    where source = $1"""


@pytest.fixture
async def store(pg_pool: Pool) -> PostgresSourceStore:
    made = PostgresSourceStore(pg_pool, KNOWN)
    await made.ensure()
    return made


async def state_of(pool: Pool, source: str = "alpha") -> Mapping[str, Any]:
    return await pool.fetchrow(STATE, source)


async def fire(pool: Pool, known: list[SourceDefaults] = KNOWN) -> int:
    """One step of a schedule that was started just now; the job it submits is taken away."""
    new = await Schedule(PostgresScheduleBook(pool, queue_on(pool), known), SystemClock()).step()
    await pool.execute("delete from collection_tasks")
    return new


async def pass_time(pool: Pool, seconds: float) -> None:
    """The database's clock cannot be moved, but everything that it has noted can be."""
    await pool.execute(
        """update datasources set retry_at = retry_at - make_interval(secs => $1),
            next_run_at = next_run_at - make_interval(secs => $1),
            answered_at = answered_at - make_interval(secs => $1)""",
        seconds,
    )


async def test_jobs_come_after_1_2_5_and_then_every_15_minutes_until_one_succeeds(
    store: PostgresSourceStore, pg_pool: Pool
) -> None:
    assert await fire(pg_pool) == 1
    for failures, pause_s in enumerate(PAUSES, start=1):
        await store.report("alpha", rejects=0, error=UNREACHED, answered=False, soon=True)
        state = await state_of(pg_pool)
        assert state["failures"] == failures and pause_s - 5 < state["retry_s"] <= pause_s
        await pass_time(pg_pool, pause_s - 10)
        assert await fire(pg_pool) == 0, "not before its time"
        await pass_time(pg_pool, 10)
        assert await fire(pg_pool) == 1
        assert await fire(pg_pool) == 0, "and once"
    state = await state_of(pg_pool)
    assert 4 * HOURS - sum(PAUSES) - 60 < state["next_s"] < 4.2 * HOURS, "the schedule's own time stays"
    assert 895 < state["retry_s"] <= 900, "a job that never tells of its end is followed by another"
    await store.report("alpha", rejects=0, error=None)
    state = await state_of(pg_pool)
    assert (state["failures"], state["retry_s"]) == (0, None)
    await pass_time(pg_pool, 1 * HOURS)
    assert await fire(pg_pool) == 0, "the schedule again"


async def test_the_floor_counts_from_the_last_answer_and_from_nothing_else(
    store: PostgresSourceStore, pg_pool: Pool
) -> None:
    await fire(pg_pool)
    await store.report("alpha", rejects=0, error=UNREACHED, answered=False, soon=True)
    await pass_time(pg_pool, 61)
    assert await fire(pg_pool) == 1, "nobody was asked: the floor has not begun"
    await store.report("alpha", rejects=0, error=("transient", "status 503"), answered=True, soon=True)
    await pass_time(pg_pool, 300)
    assert await fire(pg_pool) == 0, "the provider was asked, whatever it said"
    await store.report("alpha", rejects=0, error=UNREACHED, answered=False, soon=True)
    await pass_time(pg_pool, 2 * HOURS - 310)
    assert await fire(pg_pool) == 0, "a failed connection leaves the floor where it was"
    await pass_time(pg_pool, 20)
    assert await fire(pg_pool) == 1


async def test_a_run_that_asked_nobody_says_nothing_about_the_provider(
    store: PostgresSourceStore, pg_pool: Pool
) -> None:
    await store.report("alpha", rejects=0, error=UNREACHED, answered=False, soon=True)
    await store.report("alpha", rejects=0, error=None, answered=False, soon=None)
    state = await state_of(pg_pool)
    assert state["failures"] == 1 and state["retry_s"] > 50 and state["answered_at"] is None


async def test_the_list_shows_when_a_failed_source_is_tried_again(store: PostgresSourceStore, pg_pool: Pool) -> None:
    await fire(pg_pool)
    await store.report("alpha", rejects=0, error=UNREACHED, answered=False, soon=True)
    retry_at = await pg_pool.fetchval("select retry_at from datasources where source = 'alpha'")
    (record,) = await store.list()
    assert record["next_run_at"] == retry_at.isoformat().replace("+00:00", "Z")
    assert "retry_at" not in record and "answered_at" not in record


class Providers:
    """The real client, collector, worker and schedule; the feed's address leads nowhere until a test says so."""

    def __init__(self, pool: Pool, folder: Path, url: str, client: PoliteClient) -> None:
        self.pool = pool
        feeds = {"usgs_quakes": FeedSettings(url=url, interval_s=4 * HOURS, floor_s=2 * HOURS)}
        settings = Settings(data_dir=folder, feeds=feeds)
        self.known = [one for one in source_defaults(settings) if one.source == "usgs_quakes"]
        self.queue = queue_on(pool, retry_s=0.01)
        self.sources = PostgresSourceStore(pool, self.known)
        collector = FeedCollector(fact_feeds(), client, FileBodyStore(folder), SystemClock(), settings)
        handler = CollectTask(self.queue, collector, PostgresFactStore(pool), self.sources, SystemClock())
        self.worker = Worker(
            self.queue,
            self.queue,
            {TaskType.COLLECT: handler},
            MemoryWakeup(),
            JobSettings(poll_s=0.02),
            SystemClock(),
        )

    async def scheduled(self) -> Any:
        """What becomes of the job that the schedule submits now."""
        book = PostgresScheduleBook(self.pool, self.queue, self.known)
        assert await Schedule(book, SystemClock()).step() == 1
        return await self.ended(await self.pool.fetchval("select max(id) from collection_tasks"))

    async def by_hand(self) -> Any:
        job, _ = await self.queue.submit(wish(source="usgs_quakes"))
        return await self.ended(job.id)

    async def ended(self, task_id: int) -> Any:
        async def over() -> bool:
            return (await row_of(self.pool, task_id))["finished_at"] is not None

        await until(over)
        return await row_of(self.pool, task_id)


async def test_without_a_network_at_the_start_the_facts_come_with_the_network(
    pg_pool: Pool, tmp_path: Path, feed_server: FeedServer
) -> None:
    """Three tries, a pause of a minute, and once more: by the product's own client against a port that is shut."""
    with socket() as taken:
        taken.bind(("127.0.0.1", 0))
        shut = f"http://127.0.0.1:{taken.getsockname()[1]}{QUAKES_FOLDER}all_day.geojson"
        async with PoliteClient(SystemClock()) as client:
            house = Providers(pg_pool, tmp_path, shut, client)
            await house.sources.ensure()
            working = asyncio.create_task(house.worker.run())
            row = await house.scheduled()
            assert (row["status"], row["attempts"], row["error_code"]) == ("failed", 3, "transient")
            state = await state_of(pg_pool, "usgs_quakes")
            assert state["failures"] == 1 and 50 < state["retry_s"] <= 60 and state["answered_at"] is None
            assert (await house.by_hand())["status"] == "failed", "whoever asks by hand is not told to wait"
            assert (await state_of(pg_pool, "usgs_quakes"))["failures"] == 2
            house.worker.stop()
            await working
    await pass_time(pg_pool, 121)
    async with PoliteClient(SystemClock()) as client:
        house = Providers(pg_pool, tmp_path, f"{feed_server.url}{QUAKES_FOLDER}all_day.geojson", client)
        working = asyncio.create_task(house.worker.run())
        row = await house.scheduled()
        assert (row["status"], row["error_code"]) == ("completed", None)
        assert row["records_processed"] > 0
        state = await state_of(pg_pool, "usgs_quakes")
        assert (state["failures"], state["retry_s"]) == (0, None) and state["answered_at"] is not None
        house.worker.stop()
        await working
