"""What each kind of job does, run by a real worker on a real ledger; only the feed is scripted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from ledger_tools import fact, queue_on, row_of, status_of, until, wish
from planetwire.database.postgres import Pool
from planetwire.errors import FeedError, NotFound
from planetwire.facts.facts_postgres import PostgresFactStore
from planetwire.facts.sources_postgres import PostgresSourceStore
from planetwire.jobs.ledger.hints_postgres import write_hint
from planetwire.jobs.tasks.clear_data import ClearDataTask
from planetwire.jobs.tasks.collect import CollectTask
from planetwire.jobs.tasks.hint import HintTask
from planetwire.jobs.worker import Worker
from planetwire.layers.registry import EarthLayerAdapterRegistry
from planetwire.model import Action, Batch, FetchState, JobRequest, JobStatus, Reject, SourceDefaults, TaskType
from planetwire.outbox.wakeup_memory import MemoryWakeup
from planetwire.runtime.clock import SystemClock
from planetwire.settings import JobSettings

STATE = FetchState("etag", fetched_at=datetime(2026, 5, 4, tzinfo=UTC))
KNOWN = [SourceDefaults("alpha", 60, 0), SourceDefaults("beta", 60, 0)]


class ScriptedFeed:
    """Port Collector: gives the batches it was told to, and raises what it was told to."""

    def __init__(self, *steps: Batch | Exception) -> None:
        self.steps: Sequence[Batch | Exception] = steps
        self.calls: list[tuple[str, FetchState | None, bool]] = []
        self.closed = asyncio.Event()

    async def batches(self, source: str, state: FetchState | None, *, manual: bool) -> AsyncGenerator[Batch, None]:
        self.calls.append((source, state, manual))
        try:
            for step in self.steps:
                if isinstance(step, Exception):
                    raise step
                yield step
        finally:
            self.closed.set()


class House:
    """The parts around the ledger, joined as the program joins them."""

    def __init__(self, pool: Pool, feed: ScriptedFeed) -> None:
        self.pool = pool
        self.feed = feed
        self.queue = queue_on(pool, retry_s=600)
        self.facts = PostgresFactStore(pool)
        self.sources = PostgresSourceStore(pool, KNOWN)
        self.rates: dict[str, float] = {}
        self.owned: dict[str, Sequence[str]] = {}
        self.chunk_rows = 10

    def worker(self, concurrency: int = 4) -> Worker:
        adapter = EarthLayerAdapterRegistry().adapter
        handlers = {
            TaskType.COLLECT: CollectTask(
                self.queue, self.feed, self.facts, self.sources, SystemClock(), self.rates.get
            ),
            TaskType.CLEAR_DATA: ClearDataTask(
                self.queue, self.facts, lambda source: self.owned.get(source, ()), self.chunk_rows
            ),
            TaskType.CLEAR_CACHE: HintTask(Action.CACHE_CLEARED, self.queue, write_hint, adapter),
            TaskType.EARTH_REFRESH: HintTask(Action.MANUAL_REFRESH, self.queue, write_hint, adapter),
        }
        settings = JobSettings(poll_s=0.05, concurrency=concurrency)
        return Worker(self.queue, self.queue, handlers, MemoryWakeup(), settings, SystemClock(), drain_s=0.05)

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        await self.sources.ensure()
        worker = self.worker()
        task = asyncio.create_task(worker.run())
        try:
            yield
        finally:
            worker.stop()
            await asyncio.wait_for(task, 60)

    async def ended(self, request: JobRequest) -> Any:
        """Submit, and wait until the job has been run: final, or waiting for its next try."""
        job, _ = await self.queue.submit(request)

        async def over() -> bool:
            row = await row_of(self.pool, job.id)
            return row["finished_at"] is not None or row["error_code"] is not None

        await until(over)
        return await row_of(self.pool, job.id)

    async def count(self, source: str = "alpha") -> int:
        return (await self.facts.features([source], 0))[1]

    async def fill(self, count: int, source: str = "alpha") -> None:
        await self.pool.execute(
            "insert into collected_data (source, external_key, kind) select $1, n::text, 'thing'"
            " from generate_series(1, $2) n",
            source,
            count,
        )


async def test_a_collect_commits_its_batches_and_counts_their_rows(pg_pool: Pool) -> None:
    """S40, S45."""
    reject = Reject("no id", "{}", 3)
    feed = ScriptedFeed(
        Batch([fact("a"), fact("b")], total_hint=3),
        Batch(
            [fact("c")],
            [reject, reject],
            total_hint=3,
            complete=True,
            sweep_keys=frozenset("abc"),
            state=STATE,
            message="3 records, 2 rejected",
        ),
    )
    house = House(pg_pool, feed)
    await house.fill(1)
    async with house.working():
        row = await house.ended(wish())
    assert (row["status"], row["records_processed"], row["records_total"]) == ("completed", 3, 3)
    assert (row["progress"], row["message"]) == (1.0, "3 records, 2 rejected")
    assert await house.count() == 3
    (alpha, beta) = await house.sources.list()
    assert (alpha["rejects"], alpha["rejects_last_run"], alpha["rows_last_run"]) == (2, 2, 3)
    assert alpha["last_error"] is None and alpha["last_run_at"] and alpha["last_success_at"]
    assert beta["last_run_at"] is None
    async with house.working():
        await house.ended(wish(payload={"scheduled": True}))
    assert feed.calls == [("alpha", None, True), ("alpha", STATE, False)]


async def test_a_cooldown_completes_with_its_message_and_writes_nothing(pg_pool: Pool) -> None:
    house = House(pg_pool, ScriptedFeed(Batch((), message="cooldown until 2026-05-04T05:00:00Z")))
    await house.fill(4)
    async with house.working():
        row = await house.ended(wish())
    assert (row["status"], row["records_processed"]) == ("completed", 0)
    assert row["message"] == "cooldown until 2026-05-04T05:00:00Z"
    assert await house.count() == 4


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (FeedError("503", code="transient", retry_after_s=1200), "queued"),
        (FeedError("wrong key", code="auth_refused"), "failed"),
        (NotFound("there is no feed alpha"), "failed"),
    ],
    ids=["transient", "credentials", "unknown"],
)
async def test_a_feed_that_fails_keeps_the_facts_and_shows_why(error: Any, status: str, pg_pool: Pool) -> None:
    """S50."""
    house = House(pg_pool, ScriptedFeed(Batch([fact("kept")], [Reject("bad", "", 0)]), error))
    await house.fill(2)
    async with house.working():
        row = await house.ended(wish())
    assert (row["status"], row["error_code"], row["error"]) == (status, error.code, error.message)
    assert row["records_processed"] == 1 and await house.count() == 3
    alpha = (await house.sources.list())[0]
    assert (alpha["last_error_code"], alpha["last_error"], alpha["rejects"]) == (error.code, error.message, 1)
    if status == "queued":
        waits = await pg_pool.fetchval(
            "select scheduled_at > clock_timestamp() + interval '1100 s' from collection_tasks"
        )
        assert waits


async def test_cancel_keeps_committed_batches(pg_pool: Pool) -> None:
    """S47, S48, S49, S50, S51: progress equals the rows that stayed."""
    batches = [Batch([fact(f"{b}-{n}") for n in range(50)], total_hint=5_000) for b in range(100)]
    feed = ScriptedFeed(*batches)
    house = House(pg_pool, feed)
    house.rates["alpha"] = 500.0
    async with house.working():
        job, _ = await house.queue.submit(wish())

        async def some_batches() -> bool:
            return (await row_of(pg_pool, job.id))["records_processed"] >= 100

        await until(some_batches)
        await house.queue.cancel(job.id)

        async def cancelled() -> bool:
            return await status_of(pg_pool, job.id) is JobStatus.CANCELLED

        await until(cancelled)
        await asyncio.wait_for(feed.closed.wait(), 60)
    row = await row_of(pg_pool, job.id)
    assert row["records_processed"] == await house.count()
    assert 100 <= row["records_processed"] < 5_000
    assert row["progress"] == pytest.approx(row["records_processed"] / 5_000)


async def test_a_refresh_and_a_cache_job_do_not_wait_for_a_long_collect_of_their_source(pg_pool: Pool) -> None:
    """S6, S7, S34, S35, S42, S43, Q16, Q27."""
    house = House(pg_pool, ScriptedFeed(Batch([fact("a")]), Batch([fact("b")])))
    house.rates["alpha"] = 0.001
    async with house.working():
        collect, _ = await house.queue.submit(wish())

        async def first_batch() -> bool:
            return await house.count() == 1

        await until(first_batch)
        for request in (
            wish(TaskType.CLEAR_CACHE),
            wish(TaskType.EARTH_REFRESH, None, payload={"layer": "satellites"}),
        ):
            assert (await house.ended(request))["status"] == "completed"
        assert await status_of(pg_pool, collect.id) is JobStatus.RUNNING
    hints = await pg_pool.fetch("select layer, source, action, consumed_at from earth_refresh_hints order by id")
    assert [tuple(hint) for hint in hints] == [
        (None, "alpha", "cache_cleared", None),
        ("satellites", None, "manual_refresh", None),
    ]


async def test_a_refresh_of_something_that_is_no_layer_name_fails_with_a_code(pg_pool: Pool) -> None:
    house = House(pg_pool, ScriptedFeed())
    async with house.working():
        row = await house.ended(wish(TaskType.EARTH_REFRESH, None, payload={"layer": 7}))
    assert (row["status"], row["error_code"]) == ("failed", "bad_request")
    assert await pg_pool.fetchval("select count(*) from earth_refresh_hints") == 0


@pytest.mark.parametrize("kind", [TaskType.EARTH_REFRESH, TaskType.CLEAR_CACHE])
async def test_a_layer_that_does_not_exist_is_not_refreshed_in_silence(kind: TaskType, pg_pool: Pool) -> None:
    """A mistyped name fails at once, with a code, and is not tried again."""
    house = House(pg_pool, ScriptedFeed())
    async with house.working():
        row = await house.ended(wish(kind, None, payload={"layer": "satelites"}))
    assert (row["status"], row["error_code"], row["attempts"]) == ("failed", "unknown_layer", 1)
    assert await pg_pool.fetchval("select count(*) from earth_refresh_hints") == 0


async def test_clear_data_deletes_the_facts_of_its_source_alone_in_batches(pg_pool: Pool) -> None:
    """S5, S41, S77: also for a source that no layer knows."""
    house = House(pg_pool, ScriptedFeed())
    await house.fill(35)
    await house.fill(5, "beta")
    async with house.working():
        row = await house.ended(wish(TaskType.CLEAR_DATA))
        unknown = await house.ended(wish(TaskType.CLEAR_DATA, "never_seen"))
    assert (row["status"], row["records_processed"], row["records_total"], row["progress"]) == ("completed", 35, 35, 1)
    assert (unknown["status"], unknown["records_processed"]) == ("completed", 0)
    assert (await house.count(), await house.count("beta")) == (0, 5)
    deletes = await pg_pool.fetch(
        "select records_processed from earth_data_change_events where operation = 'DELETE' order by id"
    )
    assert [row[0] for row in deletes] == [10, 10, 10, 5]


async def test_clear_data_deletes_facts_first_and_then_the_rows_that_the_layers_own(pg_pool: Pool) -> None:
    """S41, S75, S78."""
    house = House(pg_pool, ScriptedFeed())
    house.owned["alpha"] = ("owned_rows",)
    await pg_pool.execute(
        """create table owned_rows (id bigint generated always as identity primary key, source text, fact_key text);
           insert into owned_rows (source) select s from unnest('{alpha,beta}'::text[]) s, generate_series(1, 15);
           create table seen (n serial, what text);
           create function note() returns trigger language plpgsql as
               'begin insert into seen (what) values (tg_table_name); return null; end';
           create trigger note after delete on owned_rows for each statement execute function note();
           create trigger note after delete on collected_data for each statement execute function note()"""
    )
    await house.fill(15)
    async with house.working():
        row = await house.ended(wish(TaskType.CLEAR_DATA))
    assert (row["status"], row["records_processed"]) == ("completed", 30)
    assert await pg_pool.fetchval("select array_agg(what order by n) from seen") == [
        "collected_data",
        "collected_data",
        "owned_rows",
        "owned_rows",
    ]
    assert await pg_pool.fetchval("select count(*) from owned_rows") == 15


async def test_a_clearing_that_was_cut_goes_on_where_it_was(pg_pool: Pool) -> None:
    """S50, Q18."""
    house = House(pg_pool, ScriptedFeed())
    await house.fill(30)
    await house.queue.submit(wish(TaskType.CLEAR_DATA))
    lease = (await house.queue.claim("vanished", ["clear_data"], 1))[0]
    async with house.queue.batch(lease) as tx:
        tx.progress(await house.facts.clear_chunk(tx, "collected_data", "alpha", 10), total=30)
    await house.queue.release([lease])
    async with house.working():

        async def done() -> bool:
            return await status_of(pg_pool, lease.job.id) is JobStatus.COMPLETED

        await until(done)
    row = await row_of(pg_pool, lease.job.id)
    assert (row["records_processed"], row["records_total"]) == (30, 30)
    assert await house.count() == 0


async def test_facts_cleared_by_hand_are_asked_for_again_as_if_never_fetched(pg_pool: Pool) -> None:
    """S80: the collector is told that what it remembers is void."""
    feed = ScriptedFeed(Batch([fact("a")], complete=True, sweep_keys=frozenset("a"), state=STATE))
    house = House(pg_pool, feed)
    async with house.working():
        await house.ended(wish())
        await house.ended(wish(TaskType.CLEAR_DATA))
        await house.ended(wish())
    assert [call[1].void for call in feed.calls if call[1] is not None] == [True]
    assert await house.count() == 1
    features, _ = await house.facts.features(["alpha"], None)
    assert json.loads(features[0])["data"] == {"value": 1}
