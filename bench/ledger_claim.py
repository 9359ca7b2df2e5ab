"""One claim with 1,000,000 rows waiting over 10,000 sources, in ms and compared with two neighbours in one cluster.

Then the hot case: one source is busy and has 200,000 rows in front of all others.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time

import uvloop
from _ledger import ALL_TYPES, cluster, database, ledger, pool_on, queue_collects, scaled
from _peers import PEERS, ask
from _running import line, milliseconds

from planetwire.jobs.ledger.jobs_postgres import PostgresJobQueue
from planetwire.model import JobStatus
from planetwire.settings import JobSettings
from planetwire.supervise.embedded_postgres import EmbeddedPostgres

ROWS, SOURCES, HOT_ROWS = scaled(1_000_000), 10_000, scaled(200_000)
CALLS = 1_000
PEER_CALLS = {"procrastinate": 100, "pgqueuer": 20}
PEER_HOT_CALLS = 6
GOAL_MS, GOAL_HOT_MS, GOAL_TIMES = 1.0, 5.0, 10.0
SETTLED = 20  # consecutive claims within the goal: the rows in front are parked
SETTLE_MAX_S = 15.0


async def timed_claim(queue: PostgresJobQueue, *, empty: bool = False) -> float:
    """Seconds of one claim; its job's end is written outside the clock. With `empty` it may get nothing yet."""
    began = time.perf_counter()
    leases = await queue.claim("bench", ALL_TYPES, 1)
    took = time.perf_counter() - began
    assert len(leases) == 1 or empty
    for lease in leases:
        await queue.finish(lease, JobStatus.COMPLETED)
    return took


async def plain(dsn: str) -> list[float]:
    """Claims with a constant number of rows over many sources."""
    async with pool_on(dsn) as pool:
        queue = PostgresJobQueue(pool, JobSettings())
        await queue_collects(pool, ROWS, SOURCES)
        for _ in range(10):
            await timed_claim(queue)
        return [await timed_claim(queue) for _ in range(CALLS)]


async def behind_busy(dsn: str) -> tuple[float, list[float]]:
    """Seconds of claiming until the busy source's rows are parked; then the claims."""
    async with pool_on(dsn) as pool:
        queue = PostgresJobQueue(pool, JobSettings())
        await queue_collects(pool, HOT_ROWS, 1, prefix="hot")
        await queue_collects(pool, ROWS - HOT_ROWS, SOURCES)
        settling_s = await settle(queue)
        calls = CALLS if settling_s < SETTLE_MAX_S else 50
        return settling_s, [await timed_claim(queue) for _ in range(calls)]


async def settle(queue: PostgresJobQueue) -> float:
    """The first claim makes the hot source busy; continue until claims are fast again."""
    assert [lease.job.source for lease in await queue.claim("bench", ALL_TYPES, 1)] == ["hot0"]
    spent, fast = 0.0, 0
    while fast < SETTLED and spent < SETTLE_MAX_S:
        took = await timed_claim(queue, empty=True)
        spent += took
        fast = fast + 1 if took * 1000 <= GOAL_HOT_MS else 0
    return spent


def peer(name: str, dsn: str) -> tuple[list[float], list[float]]:
    """The neighbour's calls, plain and hot."""
    keys = {"keys": SOURCES} if name == "pgqueuer" else {}
    ask(name, "fill", dsn, rows=ROWS, keys=SOURCES)
    quiet = ask(name, "claim", dsn, calls=PEER_CALLS[name], **keys)
    ask(name, "fill", dsn, rows=ROWS - HOT_ROWS, keys=SOURCES, hot=HOT_ROWS)
    return quiet, ask(name, "claim", dsn, calls=PEER_HOT_CALLS, hot=1, **keys)


def measure(made: EmbeddedPostgres) -> list[bool]:
    quiet = uvloop.run(plain(asyncio.run(ledger(made, "ours"))))
    settling_s, hot = uvloop.run(behind_busy(asyncio.run(ledger(made, "ours_hot"))))
    quiet_ms, hot_ms = statistics.median(quiet) * 1000, statistics.median(hot) * 1000
    met = [
        line(f"claim, {ROWS:,} rows, ms", quiet_ms, GOAL_MS, milliseconds(quiet)),
        line(
            "claim behind a busy source, ms", hot_ms, GOAL_HOT_MS, f"{milliseconds(hot)}; aside in {settling_s:.1f} s"
        ),
    ]
    for name in PEERS:
        theirs, theirs_hot = peer(name, asyncio.run(database(made, name)))
        for shape, mine_ms, samples in (("plain", quiet_ms, theirs), ("busy source", hot_ms, theirs_hot)):
            times = statistics.median(samples) * 1000 / mine_ms
            met.append(line(f"{name}, {shape}, times ours", times, GOAL_TIMES, milliseconds(samples), at_most=False))
    return met


def main() -> None:
    with cluster() as made:
        met = measure(made)
    sys.exit(0 if all(met) else 1)


if __name__ == "__main__":
    main()
