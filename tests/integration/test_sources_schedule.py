"""What an operator sets per source, and the schedule that follows it."""

from __future__ import annotations

import asyncio

import pytest

from ledger_tools import claim_one, queue_on, until
from planetwire.clock import SystemClock
from planetwire.errors import BackendError, InputError, NotFound
from planetwire.facts.sources_postgres import PostgresSourceStore
from planetwire.jobs.schedule import Schedule
from planetwire.model import JobRequest, JobStatus, SourceDefaults
from planetwire.postgres import Pool

KNOWN = [
    SourceDefaults("alpha", 600, 60),
    SourceDefaults("beta", 7200, 7200),
    SourceDefaults("gamma", 60, 0, enabled=False),
]
INTERVALS = {defaults.source: defaults.interval_s for defaults in KNOWN}


@pytest.fixture
async def store(pg_pool: Pool) -> PostgresSourceStore:
    made = PostgresSourceStore(pg_pool, KNOWN)
    await made.ensure()
    await made.ensure()
    return made


async def test_sources_are_listed_with_what_is_effective_before_any_run(store: PostgresSourceStore) -> None:
    records = await store.list()
    assert [record["source"] for record in records] == ["alpha", "beta", "gamma"]
    assert [(r["enabled"], r["interval_s"], r["floor_s"]) for r in records] == [
        (True, 600, 60),
        (True, 7200, 7200),
        (False, 60, 0),
    ]
    assert all(record["last_run_at"] is None and record["rejects"] == 0 for record in records)


async def test_a_source_that_is_due_is_given_out_once_per_interval(store: PostgresSourceStore, pg_pool: Pool) -> None:
    assert await store.due(INTERVALS) == ["alpha", "beta"]
    assert await PostgresSourceStore(pg_pool, KNOWN).due(INTERVALS) == []
    waits = dict(
        await pg_pool.fetch(
            "select source, extract(epoch from next_run_at - clock_timestamp())::float from datasources"
        )
    )
    assert 595 < waits["alpha"] <= 630 and 7195 < waits["beta"] <= 7560 and waits["gamma"] is None
    await pg_pool.execute("update datasources set next_run_at = clock_timestamp() - interval '3 days'")
    assert await store.due({"alpha": 600.0}) == ["alpha"]
    assert await store.due({"alpha": 600.0}) == []


async def test_many_processes_that_ask_at_once_get_each_source_once(pg_pool: Pool) -> None:
    known = [SourceDefaults(f"s{n}", 60, 0) for n in range(40)]
    stores = [PostgresSourceStore(pg_pool, known) for _ in range(6)]
    await stores[0].ensure()
    intervals = {defaults.source: 60.0 for defaults in known}
    given = await asyncio.gather(*(store.due(intervals) for store in stores))
    assert sorted(source for sources in given for source in sources) == sorted(intervals)


async def test_an_operator_switches_sources_and_intervals(store: PostgresSourceStore, pg_pool: Pool) -> None:
    record = await store.change("gamma", enabled=True, interval_s=None)
    assert (record["enabled"], record["interval_s"]) == (True, 60)
    await store.change("alpha", enabled=False, interval_s=None)
    assert await store.due(INTERVALS) == ["beta", "gamma"]
    record = await store.change("beta", enabled=None, interval_s=9000)
    assert (record["enabled"], record["interval_s"]) == (True, 9000)
    await store.change("alpha", enabled=True, interval_s=90)
    assert await store.due(INTERVALS) == ["alpha"]
    await store.change("alpha", enabled=None, interval_s=60)
    soon = await pg_pool.fetchval(
        "select next_run_at < clock_timestamp() + interval '61 s' from datasources where source = 'alpha'"
    )
    assert soon


@pytest.mark.parametrize(
    ("source", "interval_s", "code"),
    [
        ("beta", 7199, "below_floor"),
        ("alpha", 1, "below_floor"),
        ("gamma", 0.5, "bad_interval"),
        ("gamma", 1e9, "bad_interval"),
    ],
)
async def test_an_interval_below_the_floor_is_refused(
    source: str, interval_s: float, code: str, store: PostgresSourceStore
) -> None:
    before = await store.list()
    with pytest.raises(InputError) as refused:
        await store.change(source, enabled=True, interval_s=interval_s)
    assert refused.value.code == code
    assert await store.list() == before


async def test_an_unknown_source_is_not_found(store: PostgresSourceStore) -> None:
    with pytest.raises(NotFound):
        await store.change("delta", enabled=True, interval_s=None)


async def test_a_run_is_reported_and_a_good_one_clears_the_error(store: PostgresSourceStore) -> None:
    await store.report("alpha", rejects=3, error=("bad_body", "HTML"))
    await store.report("alpha", rejects=2, error=("bad_body", "HTML"))
    failed = (await store.list())[0]
    assert (failed["rejects"], failed["rejects_last_run"]) == (5, 2)
    assert (failed["last_error_code"], failed["last_error"]) == ("bad_body", "HTML")
    await store.report("alpha", rejects=0, error=None)
    good = (await store.list())[0]
    assert (good["rejects"], good["rejects_last_run"], good["last_error_code"], good["last_error"]) == (
        5,
        0,
        None,
        None,
    )


async def test_the_schedule_submits_due_sources_as_scheduled_collects(
    store: PostgresSourceStore, pg_pool: Pool
) -> None:
    """S40, Q28: a source whose last run still waits gets no second job."""
    queue = queue_on(pg_pool)
    schedule = Schedule(queue, store, INTERVALS, SystemClock())
    assert await schedule.step() == 2
    lease = await claim_one(queue)
    assert (lease.job.source, lease.job.payload) == ("alpha", {"scheduled": True})
    await queue.finish(lease, JobStatus.COMPLETED)
    await pg_pool.execute("update datasources set next_run_at = null")
    assert await schedule.step() == 1
    assert await schedule.step() == 0
    assert await pg_pool.fetchval("select count(*) from collection_tasks where status = 'queued'") == 2


async def test_a_restart_of_the_schedule_does_not_run_sources_again(store: PostgresSourceStore, pg_pool: Pool) -> None:
    queue = queue_on(pg_pool)
    assert await Schedule(queue, store, INTERVALS, SystemClock()).step() == 2
    while leases := await queue.claim("w1", ["collect"], 5):
        for lease in leases:
            await queue.finish(lease, JobStatus.COMPLETED)
    restarted = PostgresSourceStore(pg_pool, KNOWN)
    await restarted.ensure()
    assert await Schedule(queue, restarted, INTERVALS, SystemClock()).step() == 0


async def test_a_source_that_could_not_be_submitted_stays_owed(store: PostgresSourceStore, pg_pool: Pool) -> None:
    queue = queue_on(pg_pool)

    class Flaky:
        def __init__(self) -> None:
            self.failures = 2

        async def submit(self, request: JobRequest) -> object:
            if self.failures:
                self.failures -= 1
                raise BackendError("away")
            return await queue.submit(request)

    schedule = Schedule(Flaky(), store, INTERVALS, SystemClock(), poll_s=0.01)  # type: ignore[arg-type]
    task = asyncio.create_task(schedule.run())

    async def both() -> bool:
        return bool(await pg_pool.fetchval("select count(*) = 2 from collection_tasks"))

    await until(both)
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()


async def test_a_switch_set_before_the_work_process_ever_started_is_kept(pg_pool: Pool) -> None:
    """The web process may be asked first: no row is there yet, and the operator's wish must not be lost."""
    store = PostgresSourceStore(pg_pool, [SourceDefaults("usgs_quakes", 60.0, 60.0)])
    record = await store.change("usgs_quakes", enabled=False, interval_s=120.0)
    assert (record["enabled"], record["interval_s"]) == (False, 120.0)
    await store.ensure()
    assert await store.due({"usgs_quakes": 60.0}) == []
