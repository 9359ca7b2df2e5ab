"""Draining with a slow disk: the remaining speed when every flush of the WAL takes a millisecond longer.

PostgreSQL adds the delay itself: `commit_delay` sleeps before each flush that a commit waits for.
"""

from __future__ import annotations

import asyncio
import statistics
import time

import asyncpg
import uvloop
from _ledger import cluster, drain, ledger, pool_on, queue_refreshes, scaled
from _running import verdict

JOBS, RUNS, COMMITS = scaled(30_000), 3, 200
GOAL = 0.5
SLOW = {"commit_delay": 1000, "commit_siblings": 0}


async def rate(dsn: str) -> float:
    """Jobs per second."""
    async with pool_on(dsn) as pool:
        await pool.execute("truncate collection_tasks")
        await queue_refreshes(pool, JOBS)
    return JOBS / await drain(dsn, JOBS)


async def commit_ms(dsn: str) -> float:
    """The median of a bare commit."""
    connection = await asyncpg.connect(dsn)
    await connection.execute("create table bare (n int)")
    took = []
    for number in range(COMMITS):
        began = time.perf_counter()
        await connection.execute("insert into bare values ($1)", number)
        took.append(time.perf_counter() - began)
    await connection.close()
    return statistics.median(took) * 1000


def main() -> None:
    with cluster() as made:
        quick, slow = asyncio.run(ledger(made, "quick")), asyncio.run(ledger(made, "slow", SLOW))
        commits = uvloop.run(commit_ms(quick)), uvloop.run(commit_ms(slow))
        assert commits[1] - commits[0] > 0.9, f"the delay is not there: {commits}"
        pairs = [(uvloop.run(rate(quick)), uvloop.run(rate(slow))) for _ in range(RUNS)]
    best_quick, best_slow = (max(side) for side in zip(*pairs, strict=True))
    detail = f"{best_slow:,.0f} of {best_quick:,.0f} jobs/s; bare commit {commits[1]:.2f} and {commits[0]:.2f} ms"
    verdict("drain with +1 ms a flush, share of without", best_slow / best_quick, GOAL, detail, at_most=False)


if __name__ == "__main__":
    main()
