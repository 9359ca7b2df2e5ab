"""What the ledger's statements touch with 1,000,000 jobs waiting over 10,000 sources: rows counted, not time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest

from fix_postgres import TEMPLATE
from ledger_tools import ALL_TYPES
from planetwire.database.postgres import Connection, connect
from planetwire.jobs.ledger import board_postgres, ends_postgres, jobs_postgres
from planetwire.model import TaskType
from planetwire.supervise.embedded_postgres import EmbeddedPostgres, dsn_of

ROWS = 1_000_000
SOURCES = 10_000
FEW = 200
RUNNING = 200
HOT_ROWS = 20_000
LONGEST = [3600.0] * len(ALL_TYPES)
Q = jobs_postgres.Q

FILL = f"""
alter table collection_tasks set (autovacuum_enabled = false);
insert into collection_tasks (task_type, source)
    select 'collect', 's' || n % {SOURCES} from generate_series(1, {ROWS}) n;
-- A source that is busy, with much waiting in front of everything; others that run, one of them silent for long.
insert into collection_tasks (task_type, source, priority)
    select 'collect', 'hot', 1 from generate_series(1, {HOT_ROWS}) n;
insert into collection_tasks (task_type, source, status, lease_until, lease_seq, started_at)
    select 'collect', 'r' || n, 'running', clock_timestamp() + interval '1 h', 1, clock_timestamp()
    from generate_series(1, {RUNNING}) n;
insert into collection_tasks (task_type, source, status, lease_until, lease_seq, started_at)
    select 'collect', 'hot', 'running', clock_timestamp() + interval '1 h', 1, clock_timestamp();
update collection_tasks set lease_until = clock_timestamp() - interval '1 s' where source = 'r7';
insert into collection_tasks (task_type, source, scheduled_at)
    select 'collect', 's' || n, clock_timestamp() + interval '1 h' from generate_series(1, 10000) n;
insert into collection_tasks (task_type, source, status, finished_at)
    select 'collect', 's' || n % 100, case n % 50 when 0 then 'failed' else 'completed' end,
        clock_timestamp() - interval '1 day'
    from generate_series(1, 50000) n;
"""


@dataclass
class Touched:
    """By the statements of one block: whole-table scans, rows fetched or read."""

    scans: int = 0
    rows: int = 0


@pytest.fixture(scope="module")
def full_ledger(pg_cluster: EmbeddedPostgres) -> Iterator[str]:
    """The superuser's address of a database with the backlog; what tests change they roll back."""
    name = "t_full_ledger"

    async def make() -> None:
        admin = await connect(dsn_of(pg_cluster.socket_dir, "postgres", "postgres"), application="test")
        await admin.execute(f"create database {name} template {TEMPLATE} owner planetwire")
        await admin.close()
        owner = await connect(dsn, application="test")
        await owner.execute(FILL, timeout=110)
        await owner.execute("vacuum analyze collection_tasks", timeout=60)
        await owner.close()

    async def drop() -> None:
        admin = await connect(dsn_of(pg_cluster.socket_dir, "postgres", "postgres"), application="test")
        await admin.execute(f"drop database {name} with (force)")
        await admin.close()

    dsn = urlunsplit(urlsplit(dsn_of(pg_cluster.socket_dir, "postgres", name)))
    asyncio.run(make())
    try:
        yield dsn
    finally:
        asyncio.run(drop())


@pytest.fixture(params=["fresh", "deleted"])
async def ledger(full_ledger: str, request: pytest.FixtureRequest) -> AsyncIterator[Connection]:
    """A connection in a transaction that is rolled back; with statistics as they are, or with none at all."""
    connection = await connect(full_ledger, application="test")
    transaction = connection.transaction()
    await transaction.start()
    if request.param == "deleted":
        await connection.execute("delete from pg_statistic where starelid = 'collection_tasks'::regclass")
        await connection.execute(
            """update pg_class set reltuples = -1, relpages = 0 where oid in (
                select indexrelid from pg_index where indrelid = 'collection_tasks'::regclass
                union select 'collection_tasks'::regclass)"""
        )
    try:
        yield connection
    finally:
        await transaction.rollback()
        await connection.close()


@asynccontextmanager
async def _counting(ledger: Connection) -> AsyncIterator[Touched]:
    counted = Touched()
    before = await _counters(ledger)
    yield counted
    after = await _counters(ledger)
    counted.scans, counted.rows = after[0] - before[0], after[1] - before[1]


async def _counters(ledger: Connection) -> tuple[int, int]:
    row = await ledger.fetchrow(
        """select seq_scan, seq_tup_read + idx_tup_fetch as rows
           from pg_stat_xact_user_tables where relname = 'collection_tasks'"""
    )
    return row["seq_scan"] or 0, row["rows"] or 0


async def _claim(ledger: Connection, most: int) -> list[Any]:
    return await ledger.fetch(Q.claim, "w", ALL_TYPES, LONGEST, most, 30.0, None, None, FEW)


async def _park_all(ledger: Connection) -> None:
    while await ledger.fetchval(Q.park, 5_000, FEW):
        pass


async def test_a_claim_looks_at_the_front_only(ledger: Connection) -> None:
    """S37."""
    await _park_all(ledger)
    for most, bound in ((1, 50), (10, RUNNING + 200), (200, RUNNING + 3_000)):
        async with _counting(ledger) as touched:
            rows = await _claim(ledger, most)
        assert len(rows) == most
        assert touched.scans == 0
        assert touched.rows <= bound, most


async def test_a_claim_behind_a_busy_source_is_short_and_parking_is_paid_once_a_row(ledger: Connection) -> None:
    async with _counting(ledger) as touched:
        assert await _claim(ledger, 1) == []
    assert (touched.scans, touched.rows <= 300) == (0, True)
    async with _counting(ledger) as touched:
        assert await ledger.fetchval(Q.park, 1_000, FEW) == 1_000
    assert (touched.scans, touched.rows <= 6_000) == (0, True)
    await _park_all(ledger)
    assert await ledger.fetchval("select count(*) from collection_tasks where parked = 'source'") == HOT_ROWS
    async with _counting(ledger) as touched:
        assert len(await _claim(ledger, 1)) == 1
    assert (touched.scans, touched.rows <= 50) == (0, True)


async def test_heartbeat_rescue_and_fence_touch_what_runs(ledger: Connection) -> None:
    running = await ledger.fetch(
        "select id, lease_seq from collection_tasks where status = 'running' and source like 'r%' order by id"
    )
    keys = [row["id"] for row in running], [row["lease_seq"] for row in running]
    async with _counting(ledger) as touched:
        assert len(await ledger.fetch(Q.heartbeat, *keys, 30.0, 5.0, 60.0)) == RUNNING
    assert (touched.scans, touched.rows <= 3 * RUNNING) == (0, True)
    await ledger.execute(
        "update collection_tasks set lease_until = clock_timestamp() - interval '1 s' where id = $1", keys[0][0]
    )
    async with _counting(ledger) as touched:
        assert [row["id"] for row in await ledger.fetch(Q.rescue, 100, 1.0, "")] == [keys[0][0]]
    assert (touched.scans, touched.rows <= 3 * RUNNING + 50) == (0, True)
    async with _counting(ledger) as touched:
        await ledger.fetch(Q.fence, keys[0][1], keys[1][1], 10, None, None, None, 0, None, 30.0, 5.0)
    assert (touched.scans, touched.rows <= 5) == (0, True)


async def test_finishing_a_job_of_a_source_with_many_waiting_wakes_one(ledger: Connection) -> None:
    await _park_all(ledger)
    job = await ledger.fetchrow(
        "select id, lease_seq from collection_tasks where source = 'hot' and status = 'running'"
    )
    lists = [[value] for value in (job["id"], job["lease_seq"], "completed", None, None, None, None, True, 0.0)]
    async with _counting(ledger) as touched:
        assert len(await ledger.fetch(ends_postgres.Q.finish, *lists, 5.0, 300.0)) == 1
    assert (touched.scans, touched.rows <= 10) == (0, True)
    async with _counting(ledger) as touched:
        assert [row["source"] for row in await _claim(ledger, 1)] == ["hot"]
    assert (touched.scans, touched.rows <= 50) == (0, True)


async def test_a_submission_finds_its_twin_by_an_index(ledger: Connection) -> None:
    for source in ("s5", "nobody"):
        async with _counting(ledger) as touched:
            twin = await ledger.fetchrow(Q.adopt_twin, TaskType.COLLECT, source, {}, False)
        assert (twin is not None) == (source == "s5")
        assert (touched.scans, touched.rows <= 10) == (0, True)


async def test_people_read_pages_and_counts_at_a_bounded_cost(ledger: Connection) -> None:
    board = board_postgres.Q
    for question, arguments, bound in (
        (board.page, (None, None, None, 51), 60),
        (board.page, ("failed", None, None, 51), 60),
        (board.page, ("completed", "s5", None, 51), 120),
        (board.page, (None, "s5", None, 51), 2 * RUNNING + 300),
        (board.page, ("queued", "s5", None, 51), 2 * RUNNING + 300),
        (board.page, ("running", None, None, 51), 2 * RUNNING),
        (board.active, (50, 30.0), 600),
        (board.dead, (None, None, 51), 60),
        (board.standing, (["hot", "nobody", *(f"s{n}" for n in range(48))],), 250),
    ):
        async with _counting(ledger) as touched:
            assert await ledger.fetch(question, *arguments)
        assert touched.scans == 0, (question, arguments)
        assert touched.rows <= bound, (question, arguments)
    async with _counting(ledger) as touched:
        counts = await ledger.fetchrow(board.counts, 10_000)
    assert counts["queued"] == 10_000
    assert (counts["running"], counts["dead"]) == (RUNNING + 1, 1_000)
    assert touched.rows <= 30_000


async def test_jobs_whose_time_has_come_are_seen_without_a_scan(ledger: Connection) -> None:
    await _park_all(ledger)
    await ledger.execute(
        """update collection_tasks set scheduled_at = clock_timestamp(), priority = 0
           where id = (select id from collection_tasks where parked = 'time' and source = 's77')"""
    )
    async with _counting(ledger) as touched:
        assert [row["source"] for row in await _claim(ledger, 1)] == ["s77"]
    assert (touched.scans, touched.rows <= 100) == (0, True)
