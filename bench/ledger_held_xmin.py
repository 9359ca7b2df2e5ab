"""Claims while an open transaction holds back vacuum: after 30,000 jobs claimed and ended under it."""

from __future__ import annotations

import asyncio
import time

import asyncpg
import uvloop
from _ledger import ALL_TYPES, cluster, ledger, pool_on, queue_collects, scaled
from _running import milliseconds, verdict

from planetwire.jobs.ledger.jobs_postgres import PostgresJobQueue
from planetwire.model import JobStatus
from planetwire.settings import JobSettings

ROWS, SOURCES, AGED, CALLS = scaled(200_000), 10_000, scaled(30_000), 500
GOAL_P95_MS = 20.0


async def some(queue: PostgresJobQueue, most: int) -> float:
    """Seconds of a claim of up to `most`; ending the jobs is not timed."""
    began = time.perf_counter()
    leases = await queue.claim("bench", ALL_TYPES, most)
    took = time.perf_counter() - began
    await asyncio.gather(*(queue.finish(lease, JobStatus.COMPLETED) for lease in leases))
    return took


async def age(queue: PostgresJobQueue) -> None:
    """Claim and end jobs, ten at a time."""
    for _ in range(AGED // 10):
        await some(queue, 10)


async def measure(dsn: str) -> tuple[int, list[float], list[float]]:
    """Jobs ended under the open transaction before the second measurement; claims before it and after."""
    holder = await asyncpg.connect(dsn)
    async with pool_on(dsn) as pool:
        queue = PostgresJobQueue(pool, JobSettings())
        await queue_collects(pool, ROWS, SOURCES)
        before = [await some(queue, 1) for _ in range(CALLS)]
        async with holder.transaction(isolation="repeatable_read"):
            await holder.fetchval("select pg_current_xact_id()")
            await age(queue)
            ended = await pool.fetchval("select count(*) from collection_tasks where status = 'completed'") - CALLS
            after = [await some(queue, 1) for _ in range(CALLS)]
    await holder.close()
    return ended, before, after


def main() -> None:
    with cluster() as made:
        ended, before, after = uvloop.run(measure(asyncio.run(ledger(made, "ours"))))
    assert ended == AGED, ended
    p95_ms = sorted(after)[int(len(after) * 0.95)] * 1000
    detail = f"{milliseconds(after)} after {ended:,} jobs under it; {milliseconds(before)} before"
    verdict("claim under a held horizon, p95 in ms", p95_ms, GOAL_P95_MS, detail)


if __name__ == "__main__":
    main()
