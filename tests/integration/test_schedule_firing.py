"""The schedule over a real ledger: once per tick, whoever looks, whatever their clocks say."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

import pytest

from ledger_tools import ALL_TYPES, claim_one, queue_on
from planetwire.database.postgres import Connection, Pool, open_pool
from planetwire.errors import BackendError
from planetwire.facts.sources_postgres import PostgresSourceStore
from planetwire.jobs.ledger.jobs_postgres import PostgresJobQueue
from planetwire.jobs.ledger.schedule_postgres import PostgresScheduleBook
from planetwire.jobs.schedule import Schedule
from planetwire.model import Job, JobRequest, JobStatus, SourceDefaults
from planetwire.runtime.clock import SystemClock

KNOWN = [
    SourceDefaults("alpha", 600, 60),
    SourceDefaults("beta", 7200, 7200),
    SourceDefaults("gamma", 60, 0, enabled=False),
]
ROUNDS = 30


def schedule_on(pool: Pool, *, clock: SystemClock | None = None, known: list[SourceDefaults] = KNOWN) -> Schedule:
    return Schedule(PostgresScheduleBook(pool, queue_on(pool), known), clock or SystemClock())


@pytest.fixture
async def store(pg_pool: Pool) -> PostgresSourceStore:
    made = PostgresSourceStore(pg_pool, KNOWN)
    await made.ensure()
    return made


async def make_due(pool: Pool, source: str, ago: str = "1 s") -> None:
    await pool.execute(
        """update datasources set next_run_at = clock_timestamp() - $2::text::interval,
            tick_at = case when cron is not null then clock_timestamp() - $2::text::interval end
        where source = $1""",
        source,
        ago,
    )


async def firings(pool: Pool) -> list[str]:
    rows = await pool.fetch("select source from schedule_firings order by fired_at, source")
    return [row["source"] for row in rows]


async def wait_s(pool: Pool, source: str) -> float:
    return float(
        await pool.fetchval(
            "select extract(epoch from next_run_at - clock_timestamp()) from datasources where source = $1", source
        )
    )


async def end_jobs(pool: Pool) -> None:
    await pool.execute("delete from collection_tasks")


async def test_what_is_due_is_submitted_as_scheduled_collects_and_not_again(
    store: PostgresSourceStore, pg_pool: Pool
) -> None:
    """S40, Q28."""
    assert await schedule_on(pg_pool).step() == 2
    assert await schedule_on(pg_pool).step() == 0
    assert 595 < await wait_s(pg_pool, "alpha") <= 630 and 7195 < await wait_s(pg_pool, "beta") <= 7560
    queue = queue_on(pg_pool)
    leases = await queue.claim("w1", ALL_TYPES, 10)
    assert [(lease.job.source, lease.job.payload) for lease in leases] == [
        ("alpha", {"scheduled": True}),
        ("beta", {"scheduled": True}),
    ]
    named = await pg_pool.fetch("select source, task_id from schedule_firings order by source")
    assert [(row["source"], row["task_id"]) for row in named] == [(x.job.source, x.job.id) for x in leases]


class _Rounds(SystemClock):
    """Ends the loop with the second pause."""

    def __init__(self) -> None:
        self.left = 2

    async def sleep(self, seconds: float) -> None:
        assert seconds == 1.0
        self.left -= 1
        if not self.left:
            raise asyncio.CancelledError


async def test_the_loop_looks_each_second_and_fires_what_is_due(store: PostgresSourceStore, pg_pool: Pool) -> None:
    """Contracts §3: schedules need nobody who asks."""
    due = KNOWN[0].source
    await pg_pool.execute("update datasources set next_run_at = clock_timestamp() + interval '1 day'")
    await make_due(pg_pool, due)
    with pytest.raises(asyncio.CancelledError):
        await schedule_on(pg_pool, clock=_Rounds()).run()
    assert await firings(pg_pool) == [due]


async def test_a_source_whose_job_still_waits_gets_no_second_one(store: PostgresSourceStore, pg_pool: Pool) -> None:
    """Q28."""
    schedule, queue = schedule_on(pg_pool), queue_on(pg_pool)
    await schedule.step()
    first = await claim_one(queue)
    await make_due(pg_pool, "alpha")
    assert await schedule.step() == 1  # the running one saw an older moment
    await make_due(pg_pool, "alpha")
    assert await schedule.step() == 0
    assert (await firings(pg_pool)).count("alpha") == 3
    assert await queue.finish(first, JobStatus.COMPLETED)


async def test_a_disabled_source_is_not_scheduled_and_still_runs_by_hand(
    store: PostgresSourceStore, pg_pool: Pool
) -> None:
    await store.change("alpha", {"enabled": False})
    await store.change("beta", {"enabled": False})
    assert await schedule_on(pg_pool).step() == 0
    _, created = await queue_on(pg_pool).submit(JobRequest("collect", "alpha"))  # type: ignore[arg-type]
    assert created


async def test_two_processes_at_the_same_tick_fire_once(store: PostgresSourceStore, pg_pool: Pool, pg_dsn: str) -> None:
    """Both read before either writes, many times over, with calendars and intervals mixed."""
    await store.change("alpha", {"cron": "* * * * *"})
    other = await open_pool(pg_dsn, application="other", max_size=4)
    books = [PostgresScheduleBook(pool, _at_once(pool), KNOWN) for pool in (pg_pool, other)]
    try:
        for round_ in range(ROUNDS):
            await make_due(pg_pool, "alpha", "2 s")
            await make_due(pg_pool, "beta", "2 s")
            meet = asyncio.Barrier(2)
            new = await asyncio.gather(*(Schedule(_Meeting(book, meet), SystemClock()).step() for book in books))
            assert sum(new) == 2, round_
    finally:
        await other.close()
    assert sorted(await firings(pg_pool)) == ["alpha"] * ROUNDS + ["beta"] * ROUNDS


class _Meeting(PostgresScheduleBook):
    """Goes on from reading only when all have read."""

    def __init__(self, book: PostgresScheduleBook, meet: asyncio.Barrier) -> None:
        self.__dict__ |= book.__dict__
        self._meet = meet

    async def due(self):  # type: ignore[no-untyped-def]
        found = await super().due()
        await self._meet.wait()
        return found


class _AtOnce(PostgresJobQueue):
    """Jobs are done and gone as soon as they are made: no waiting one stands in for a second."""

    async def submit_in(self, connection: Connection, request: JobRequest) -> tuple[Job, bool]:
        job = await super().submit_in(connection, request)
        await connection.execute("delete from collection_tasks where id = $1", job[0].id)
        return job


def _at_once(pool: Pool) -> PostgresJobQueue:
    queue = _AtOnce.__new__(_AtOnce)
    queue.__dict__ |= queue_on(pool).__dict__
    return queue


async def test_many_processes_fire_each_of_many_sources_once(pg_pool: Pool) -> None:
    known = [SourceDefaults(f"s{n:02}", 60, 0) for n in range(40)]
    await PostgresSourceStore(pg_pool, known).ensure()
    schedules = [schedule_on(pg_pool, known=known) for _ in range(6)]
    new = await asyncio.gather(*(schedule.step() for schedule in schedules))
    while await schedules[0].step():
        pass
    assert sum(new) == 40
    assert sorted(await firings(pg_pool)) == [defaults.source for defaults in known]


async def test_a_tick_that_fired_does_not_fire_again_even_if_its_row_is_set_back(
    store: PostgresSourceStore, pg_pool: Pool
) -> None:
    await store.change("alpha", {"cron": "0 0 * * *"})
    set_back = """update datasources set next_run_at = '2026-01-01 00:00:05+00', tick_at = '2026-01-01 00:00:00+00'
        where source = 'alpha'"""
    schedule = schedule_on(pg_pool, known=KNOWN[:1])
    for made in (1, 0):
        await pg_pool.execute(set_back)
        assert await schedule.step() == made
        await end_jobs(pg_pool)
    assert await firings(pg_pool) == ["alpha"]
    assert await wait_s(pg_pool, "alpha") > 0


@pytest.mark.parametrize("hours", [-1, 1])
async def test_a_worker_whose_clock_is_an_hour_off_fires_as_any_other(
    hours: int, store: PostgresSourceStore, pg_pool: Pool
) -> None:
    class Wrong(SystemClock):
        def now(self) -> datetime:
            return super().now() + timedelta(hours=hours)

    schedule = schedule_on(pg_pool, clock=Wrong())
    await store.change("alpha", {"cron": "0 0 1 1 *"})
    tick = await pg_pool.fetchval("select tick_at from datasources where source = 'alpha'")
    assert await schedule.step() == 1  # beta, for the first time
    await make_due(pg_pool, "alpha", "-30 minutes")
    await make_due(pg_pool, "beta", "-30 minutes")
    assert await schedule.step() == 0
    await make_due(pg_pool, "alpha", "30 s")
    assert await schedule.step() == 1
    row = await pg_pool.fetchrow("select tick_at, next_run_at from datasources where source = 'alpha'")
    assert row["tick_at"] == tick and timedelta(0) <= row["next_run_at"] - tick <= timedelta(seconds=30)
    assert -30 < await wait_s(pg_pool, "beta") - 1800 <= 0


async def test_a_floor_holds_across_a_restart_and_for_runs_made_by_hand(
    store: PostgresSourceStore, pg_pool: Pool
) -> None:
    await store.report("beta", rejects=0, error=None)
    await make_due(pg_pool, "beta")
    await pg_pool.execute("update datasources set enabled = false where source = 'alpha'")
    for _ in range(2):
        assert await schedule_on(pg_pool).step() == 0
        await store.ensure()
        await pg_pool.execute("update datasources set next_run_at = null where source = 'beta'")
    await pg_pool.execute("update datasources set answered_at = answered_at - interval '7200 s' where source = 'beta'")
    assert await schedule_on(pg_pool).step() == 1


async def test_missed_ticks_are_made_up_by_one_run_or_skipped(store: PostgresSourceStore, pg_pool: Pool) -> None:
    await store.change("alpha", {"cron": "*/10 * * * *"})
    await store.change("gamma", {"cron": "*/10 * * * *", "misfire": "skip", "enabled": True})
    await store.change("beta", {"enabled": False})
    schedule = schedule_on(pg_pool)
    for source in ("alpha", "gamma"):
        await make_due(pg_pool, source, "5 hours")
    assert await schedule.step() == 1
    assert await schedule.step() == 0
    assert await firings(pg_pool) == ["alpha"]
    for source in ("alpha", "gamma"):
        assert 0 < await wait_s(pg_pool, source) <= 630
    await make_due(pg_pool, "gamma", "20 s")
    assert await schedule.step() == 1


async def test_a_schedule_that_was_changed_after_it_was_read_is_read_anew(
    store: PostgresSourceStore, pg_pool: Pool
) -> None:
    book = PostgresScheduleBook(pg_pool, queue_on(pg_pool), KNOWN)
    changes: list[Callable[[], Awaitable[object]]] = [
        lambda: store.change("alpha", {"enabled": False}),
        lambda: store.change("alpha", {"enabled": True, "cron": "0 0 * * *"}),
    ]
    for change in changes:
        await make_due(pg_pool, "alpha")
        schedule = Schedule(_Interrupted(book, change), SystemClock())
        await schedule.step()
        assert "alpha" not in await firings(pg_pool)


class _Interrupted(PostgresScheduleBook):
    """Somebody changes something between reading and firing."""

    def __init__(self, book: PostgresScheduleBook, change: Callable[[], Awaitable[object]]) -> None:
        self.__dict__ |= book.__dict__
        self._change = change

    async def due(self):  # type: ignore[no-untyped-def]
        found = await super().due()
        await self._change()
        return found


class _Failing(PostgresJobQueue):
    """The ledger takes the job, and then the connection is lost."""

    async def submit_in(self, connection: Connection, request: JobRequest) -> tuple[Job, bool]:
        job = await super().submit_in(connection, request)
        await connection.fetchval("select pg_terminate_backend(pg_backend_pid())")
        return job


async def test_a_connection_lost_in_the_middle_leaves_the_source_due(store: PostgresSourceStore, pg_pool: Pool) -> None:
    queue = queue_on(pg_pool)
    failing = _Failing.__new__(_Failing)
    failing.__dict__ |= queue.__dict__
    with pytest.raises(BackendError):
        await Schedule(PostgresScheduleBook(pg_pool, failing, KNOWN), SystemClock()).step()
    assert await firings(pg_pool) == []
    assert await pg_pool.fetchval("select count(*) from collection_tasks") == 0
    assert await schedule_on(pg_pool).step() == 2


async def test_a_row_that_somebody_holds_does_not_stop_the_other_sources(
    store: PostgresSourceStore, pg_pool: Pool
) -> None:
    async with pg_pool.acquire() as holder, holder.transaction():
        await holder.execute("select from datasources where source = 'alpha' for update")
        assert await schedule_on(pg_pool).step() == 1
    assert await schedule_on(pg_pool).step() == 1
    assert await firings(pg_pool) == ["beta", "alpha"]


async def test_a_schedule_written_past_the_check_stops_only_its_source(
    store: PostgresSourceStore, pg_pool: Pool
) -> None:
    await pg_pool.execute("update datasources set cron = 'whenever' where source = 'alpha'")
    schedule = schedule_on(pg_pool)
    assert [await schedule.step() for _ in range(2)] == [1, 0]
    assert await firings(pg_pool) == ["beta"]


async def test_of_a_paused_source_one_job_waits_however_many_ticks_pass(
    store: PostgresSourceStore, pg_pool: Pool
) -> None:
    queue, schedule = queue_on(pg_pool), schedule_on(pg_pool, known=KNOWN[:1])
    await queue.pause("alpha", True)
    for new in (1, 0, 0):
        await make_due(pg_pool, "alpha")
        assert await schedule.step() == new
        assert await queue.claim("w1", ALL_TYPES, 5) == []
    await queue.pause("alpha", False)
    assert (await claim_one(queue)).job.source == "alpha"
    assert await queue.claim("w1", ALL_TYPES, 5) == []


async def test_firings_are_forgotten_after_a_week_a_few_at_a_time(store: PostgresSourceStore, pg_pool: Pool) -> None:
    await pg_pool.execute(
        """insert into schedule_firings (source, fire_at, fired_at)
        select 'alpha', at, at from generate_series(clock_timestamp() - interval '9 days 12 hours', clock_timestamp(),
            interval '1 day') at"""
    )
    book = PostgresScheduleBook(pg_pool, queue_on(pg_pool), KNOWN)
    assert [await book.prune(2) for _ in range(3)] == [2, 1, 0]
    assert len(await firings(pg_pool)) == 7
