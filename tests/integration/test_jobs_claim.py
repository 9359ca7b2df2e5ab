"""Claiming with many claimers: serial per source, first in first out, and never by reading the whole ledger."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from itertools import pairwise

import pytest
from structlog.testing import capture_logs

from ledger_tools import ALL_TYPES, claim_one, queue_on, wish
from planetwire.database.postgres import Pool
from planetwire.jobs.ledger.jobs_postgres import PostgresJobQueue, Q
from planetwire.model import JobStatus, TaskType

CLAIMERS = 8
SOURCES = 24
JOBS = 400
WITHIN_S = 60.0


async def _drain(queue: PostgresJobQueue, pool: Pool, name: str, events: list[tuple[str, str, int]]) -> None:
    """Claim and finish until nothing is left; notes the order in which starts and ends became true."""
    while await pool.fetchval("select count(*) from collection_tasks where status in ('queued', 'running')"):
        for lease in await queue.claim(name, ALL_TYPES, random.randint(1, 4)):
            source = lease.job.source or ""
            events.append(("start", source, lease.job.id))
            await asyncio.sleep(0)
            events.append(("end", source, lease.job.id))
            assert await queue.finish(lease, JobStatus.COMPLETED)


async def test_parking_waits_for_nobody(pg_pool: Pool) -> None:
    """S37: who is ending the running job holds its row; its source is looked at another time."""
    queue = queue_on(pg_pool)
    await pg_pool.execute(
        "insert into collection_tasks (task_type, source) select 'collect', 'alpha' from generate_series(1, 2)"
    )
    lease = await claim_one(queue)
    async with pg_pool.acquire() as ending, pg_pool.acquire() as parking, ending.transaction():
        await ending.execute("select from collection_tasks where id = $1 for update", lease.job.id)
        await parking.execute("set lock_timeout = '5s'")
        assert await parking.fetchval(Q.park, 100, 0) == 0
    assert await queue.park() == 1


@pytest.mark.parametrize("few_sources", [0, 200])
async def test_eight_claimers_never_overlap_on_a_source_and_keep_its_order(pg_pool: Pool, few_sources: int) -> None:
    """S37, S38, S39, Q16. With few sources, each is looked at; with many, what cannot run is parked."""
    await pg_pool.execute(
        """insert into collection_tasks (task_type, source, priority)
           select case when random() < 0.8 then 'collect' else 'clear_data' end, 's' || (random() * $1)::int,
               (random() * 3)::int
           from generate_series(1, $2)""",
        SOURCES,
        JOBS,
    )
    queue = queue_on(pg_pool, few_sources=few_sources)
    events: list[tuple[str, str, int]] = []
    with capture_logs() as logs:
        await asyncio.gather(*(_drain(queue, pg_pool, f"w{n}", events) for n in range(CLAIMERS)))
    # The index is the law, but claims never meet it: they keep out of each other's way before.
    assert [entry for entry in logs if entry["event"] == "data_job.claim.repeated"] == []

    rows = await pg_pool.fetch("select * from collection_tasks")
    assert {row["status"] for row in rows} == {"completed"} and {row["attempts"] for row in rows} == {1}
    # By the database's clock no two jobs of a source overlap, and they began in the order of (priority, id).
    by_source = defaultdict(list)
    for row in rows:
        by_source[row["source"]].append(row)
    for mine in by_source.values():
        mine.sort(key=lambda row: row["started_at"])
        assert all(a["finished_at"] <= b["started_at"] for a, b in pairwise(mine))
        ranks = [(row["priority"], row["id"]) for row in mine]
        assert ranks == sorted(ranks)
    # And in this process no coroutine saw two of one source at once.
    open_sources: set[str] = set()
    for what, source, _ in events:
        if what == "start":
            assert source not in open_sources
            open_sources.add(source)
        else:
            open_sources.discard(source)


async def test_a_job_that_was_cancelled_while_claims_were_under_way_is_never_run(pg_pool: Pool) -> None:
    """S48, Q17: each job is either claimed or cancelled out of the queue, never both."""
    await pg_pool.execute(
        """insert into collection_tasks (task_type, source)
           select case when n % 3 = 0 then 'clear_cache' else 'collect' end, 's' || n from generate_series(1, 300) n"""
    )
    queue = queue_on(pg_pool)
    ids = [row["id"] for row in await pg_pool.fetch("select id from collection_tasks order by id")]
    out_of_queue: set[int] = set()

    async def cancel_all() -> None:
        for task_id in ids:
            if (await queue.cancel(task_id)).status is JobStatus.CANCELLED:
                out_of_queue.add(task_id)

    claimed: set[int] = set()

    async def claim_all(name: str) -> None:
        while await pg_pool.fetchval("select count(*) from collection_tasks where status = 'queued'"):
            claimed.update(lease.job.id for lease in await queue.claim(name, ALL_TYPES, 3))

    await asyncio.gather(cancel_all(), *(claim_all(f"w{n}") for n in range(4)))
    assert claimed and out_of_queue and not claimed & out_of_queue
    assert claimed | out_of_queue == set(ids)
    started = await pg_pool.fetch("select id from collection_tasks where attempts > 0")
    assert {row["id"] for row in started} == claimed


async def test_one_claim_never_takes_two_jobs_of_a_source(pg_pool: Pool) -> None:
    """S38, S39."""
    queue = queue_on(pg_pool)
    await pg_pool.execute(
        "insert into collection_tasks (task_type, source) select 'collect', s from unnest('{a,a,b,b,c}'::text[]) s"
    )
    leases = await queue.claim("w1", ALL_TYPES, 10)
    assert sorted(lease.job.source or "" for lease in leases) == ["a", "b", "c"]
    assert await queue.claim("w2", ALL_TYPES, 10) == []


async def test_smaller_priorities_go_first_and_then_older_jobs(pg_pool: Pool) -> None:
    queue = queue_on(pg_pool)
    for source, priority in (("a", 100), ("b", 5), ("c", 100), ("d", 5)):
        await queue.submit(wish(source=source, priority=priority))
    claimed = [(await claim_one(queue)).job.source for _ in range(4)]
    assert claimed == ["b", "d", "a", "c"]


async def test_cache_jobs_and_refreshes_run_beside_a_running_collect(pg_pool: Pool) -> None:
    """S34, S42, S43, Q16."""
    queue = queue_on(pg_pool)
    await queue.submit(wish())
    await claim_one(queue)
    await queue.submit(wish(TaskType.CLEAR_DATA))
    await queue.submit(wish(TaskType.CLEAR_CACHE))
    await queue.submit(wish(TaskType.EARTH_REFRESH))
    leases = await queue.claim("w2", ALL_TYPES, 10)
    assert {lease.job.task_type for lease in leases} == {TaskType.CLEAR_CACHE, TaskType.EARTH_REFRESH}


async def test_a_worker_leaves_alone_what_it_has_no_handler_for(pg_pool: Pool) -> None:
    queue = queue_on(pg_pool)
    await queue.submit(wish(TaskType.CLEAR_DATA))
    await queue.submit(wish())
    assert await queue.claim("w1", ["collect"], 10) == []
    await queue.submit(wish(source="beta"))
    assert [lease.job.source for lease in await queue.claim("w1", ["collect"], 10)] == ["beta"]


async def test_a_head_that_somebody_holds_is_not_passed_by_the_next_in_line(pg_pool: Pool) -> None:
    """S37, S38: nor waited for: the claim skips what is locked, and comes back with nothing."""
    queue = queue_on(pg_pool)
    first, _ = await queue.submit(wish())
    await queue.submit(wish(TaskType.CLEAR_DATA))
    async with pg_pool.acquire() as other, other.transaction():
        await other.execute("select from collection_tasks where id = $1 for update", first.id)
        async with asyncio.timeout(WITHIN_S):
            assert await queue.claim("w1", ALL_TYPES, 10) == []
    assert (await claim_one(queue)).job.id == first.id


async def test_a_job_without_a_turn_that_somebody_holds_is_passed(pg_pool: Pool) -> None:
    """S37: those that wait for no other of their source are claimed past it."""
    queue = queue_on(pg_pool)
    held, _ = await queue.submit(wish(TaskType.CLEAR_CACHE, "alpha"))
    free, _ = await queue.submit(wish(TaskType.CLEAR_CACHE, "beta"))
    async with pg_pool.acquire() as other, other.transaction():
        await other.execute("select from collection_tasks where id = $1 for update", held.id)
        async with asyncio.timeout(WITHIN_S):
            assert [lease.job.id for lease in await queue.claim("w1", ALL_TYPES, 10)] == [free.id]
    assert (await claim_one(queue)).job.id == held.id


async def test_a_more_urgent_job_that_comes_during_a_claim_of_its_source_waits_for_the_next(pg_pool: Pool) -> None:
    """S38: the other claim is not committed, so the source looks free; its key tells that it is not."""
    queue = queue_on(pg_pool)
    first, _ = await queue.submit(wish())
    async with pg_pool.acquire() as other, other.transaction():
        rows = await other.fetch(Q.claim, "w1", ALL_TYPES, [60.0] * len(ALL_TYPES), 1, 30.0, None, None, 0)
        assert [row["id"] for row in rows] == [first.id]
        await queue.submit(wish(TaskType.CLEAR_DATA, priority=1))
        assert await asyncio.wait_for(queue.claim("w2", ALL_TYPES, 10), 60) == []
    assert await queue.claim("w2", ALL_TYPES, 10) == []


async def test_a_source_that_waits_behind_a_busy_one_with_many_jobs_is_found(pg_pool: Pool) -> None:
    """S39."""
    queue = queue_on(pg_pool)
    await pg_pool.execute(
        "insert into collection_tasks (task_type, source) select 'collect', 'hot' from generate_series(1, 3000)"
    )
    await claim_one(queue)
    for source in ("late-1", "late-2"):
        await queue.submit(wish(source=source))
    leases = await queue.claim("w2", ALL_TYPES, 10)
    assert sorted(lease.job.source or "" for lease in leases) == ["late-1", "late-2"]
    assert await queue.claim("w2", ALL_TYPES, 10) == []
