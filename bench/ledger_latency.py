"""A plain INSERT by another program → the handler of an idle worker begins: the time beyond the commit itself.

Fifty jobs per second; the inserts come from another process, timed by the machine's clock.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import asyncpg
import uvloop
from _ledger import cluster, ledger, worker_on
from _running import line, milliseconds

from planetwire.model import Lease

PER_S, JOBS, WARM = 50, 400, 25
SETTLE_S = 1.5  # until the worker is idle and has asked writers to notify
GOAL_P50_MS, GOAL_P99_MS = 2.5, 6.0
INSERT = "insert into collection_tasks (task_type) values ('earth_refresh') returning id"


def insert_all(dsn: str) -> dict[int, tuple[float, float]]:
    """Times before each insert, and of the acknowledgement of its commit, by job."""
    return uvloop.run(_insert_all(dsn))


async def _insert_all(dsn: str) -> dict[int, tuple[float, float]]:
    connection = await asyncpg.connect(dsn)
    out = {}
    start = time.monotonic()
    for number in range(JOBS):
        await asyncio.sleep(max(0.0, start + number / PER_S - time.monotonic()))
        began = time.monotonic()
        task_id = await connection.fetchval(INSERT)
        out[task_id] = (began, time.monotonic())
    await connection.close()
    return out


async def measure(dsn: str) -> tuple[list[float], list[float]]:
    """Seconds from acknowledgement to start (at least 0: the NOTIFY may be faster than the answer), and of commits."""
    started: dict[int, float] = {}

    async def handler(lease: Lease) -> None:
        started[lease.job.id] = time.monotonic()
        if len(started) == JOBS:
            worker.stop()

    async with worker_on(dsn, handler, 4) as worker:
        running = asyncio.create_task(worker.run())
        await asyncio.sleep(SETTLE_S)
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as other:
            inserted = await asyncio.get_running_loop().run_in_executor(other, insert_all, dsn)
            await asyncio.wait_for(running, 30)
    kept = sorted(inserted)[WARM:]
    after = [max(0.0, started[task_id] - inserted[task_id][1]) for task_id in kept]
    return after, [inserted[task_id][1] - inserted[task_id][0] for task_id in kept]


def main() -> None:
    with cluster() as made:
        after, commits = uvloop.run(measure(asyncio.run(ledger(made, "ours"))))
    detail = f"after the commit {milliseconds(after)}; the commit itself {milliseconds(commits)}"
    p99 = sorted(after)[int(len(after) * 0.99)]
    met = [
        line("enqueue to start, p50, ms", statistics.median(after) * 1000, GOAL_P50_MS, detail),
        line("enqueue to start, p99, ms", p99 * 1000, GOAL_P99_MS, f"{PER_S} jobs/s"),
    ]
    sys.exit(0 if all(met) else 1)


if __name__ == "__main__":
    main()
