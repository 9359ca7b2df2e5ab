"""Claims while somebody's open transaction keeps dead rows: after 30,000 claimed and ended jobs under it."""

from __future__ import annotations

import asyncio
import time

import asyncpg
import uvloop
from _ledger import ALL_TYPES, cluster, ledger, pool_on, queue_collects, scaled
from _running import milliseconds, verdict

from planetwire.jobs.jobs_postgres import PostgresJobQueue
from planetwire.model import JobStatus
from planetwire.settings import JobSettings

ROWS, SOURCES, AGED, CALLS = scaled(200_000), 10_000, scaled(30_000), 500
CLAIMERS = 4
AGE_MAX_S = 130.0
GOAL_P95_MS = 20.0


async def one(queue: PostgresJobQueue) -> float:
    """Seconds of a claim; its job ends outside the clock."""
    began = time.perf_counter()
    leases = await queue.claim("bench", ALL_TYPES, 1)
    took = time.perf_counter() - began
    for lease in leases:
        await queue.finish(lease, JobStatus.COMPLETED)
    return took


async def age(queue: PostgresJobQueue) -> int:
    """Claim and end jobs, one at a time for each claimer; how many it came to in the time there is."""
    claimed, until = 0, time.perf_counter() + AGE_MAX_S

    async def claimer() -> None:
        nonlocal claimed
        while claimed < AGED and time.perf_counter() < until:
            claimed += 1
            await one(queue)

    await asyncio.gather(*(claimer() for _ in range(CLAIMERS)))
    return claimed


async def measure(dsn: str) -> tuple[int, list[float], list[float]]:
    """How many were claimed under the open transaction; claims before and after."""
    holder = await asyncpg.connect(dsn)
    async with pool_on(dsn) as pool:
        queue = PostgresJobQueue(pool, JobSettings())
        await queue_collects(pool, ROWS, SOURCES)
        before = [await one(queue) for _ in range(CALLS)]
        async with holder.transaction(isolation="repeatable_read"):
            await holder.fetchval("select pg_current_xact_id()")
            claimed = await age(queue)
            after = [await one(queue) for _ in range(CALLS)]
    await holder.close()
    return claimed, before, after


def main() -> None:
    with cluster() as made:
        claimed, before, after = uvloop.run(measure(asyncio.run(ledger(made, "ours"))))
    p95_ms = sorted(after)[int(len(after) * 0.95)] * 1000
    detail = f"{milliseconds(after)} after {claimed:,} claims; {milliseconds(before)} before"
    if claimed < AGED:
        detail += f"; the time was up before {AGED:,}"
    verdict("claim under a held horizon, p95 in ms", p95_ms, GOAL_P95_MS if claimed >= AGED else 0.0, detail)


if __name__ == "__main__":
    main()
