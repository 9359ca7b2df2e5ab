"""PgQueuer (MIT), used as documented: `python _peer_pgqueuer.py WHAT DSN NUMBERS`. Prints JSON.

It serialises the jobs of one key by an entrypoint per key with `concurrency_limit=1`.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import uuid
from datetime import timedelta
from typing import Any

import asyncpg
import uvloop
from pgqueuer import AsyncpgDriver, AsyncpgPoolDriver, Queries, QueueManager
from pgqueuer.models import Job
from pgqueuer.ports.repository import EntrypointExecutionParameter
from pgqueuer.types import QueueExecutionMode

WARM = 2  # calls before the measured ones
CALLS_MAX_S = 30.0
FILL = """insert into pgqueuer (priority, status, entrypoint, payload)
select 0, 'queued', $3::text || (n % $2::int), convert_to('{"n":' || n || '}', 'utf8')
from generate_series(0, $1::int - 1) n"""


async def fill(dsn: str, rows: int, keys: int, hot: int = 0) -> None:
    """Refill the queue: `hot` jobs of one key, then `rows` round-robin over `keys` keys."""
    connection = await asyncpg.connect(dsn)
    queries = Queries(AsyncpgDriver(connection))
    if not await queries.has_table("pgqueuer"):
        await queries.install()
    await connection.execute("alter table pgqueuer disable trigger user")
    await connection.execute("truncate pgqueuer")
    await connection.execute(FILL, hot, 1, "hot", timeout=300)
    await connection.execute(FILL, rows, keys, "s", timeout=300)
    await connection.execute("alter table pgqueuer enable trigger user")
    await connection.execute("vacuum analyze pgqueuer")
    await connection.close()


async def claim(dsn: str, keys: int, calls: int, hot: int = 0) -> list[float]:
    """Seconds of each dequeue of one job. With `hot`, the first takes the busy key's job and is not counted."""
    connection = await asyncpg.connect(dsn)
    queries, worker = Queries(AsyncpgDriver(connection)), uuid.uuid4()
    names = [f"s{number}" for number in range(keys)] + (["hot0"] if hot else [])
    limits = {name: EntrypointExecutionParameter(concurrency_limit=1) for name in names}
    took: list[float] = []
    until = time.perf_counter() + CALLS_MAX_S
    for number in range(calls + WARM):
        if time.perf_counter() > until:
            break
        began = time.perf_counter()
        jobs = await queries.dequeue(1, limits, worker, None, timedelta(seconds=600))
        took.append(time.perf_counter() - began)
        if hot and number == 0:
            assert [job.entrypoint for job in jobs] == ["hot0"], jobs
            continue
        assert len(jobs) == 1
        await queries.log_jobs([(jobs[0], "successful", None)])
    await connection.close()
    return took[WARM:]


async def drain(dsn: str, keys: int, batch: int, pool: int, keyed: int = 0) -> float:
    """Seconds until its manager has emptied the queue, on one connection or a pool."""
    if pool == 1:
        single = await asyncpg.connect(dsn)
        took = await empty(QueueManager(Queries(AsyncpgDriver(single))), keys, batch, keyed)
        await single.close()
        return took
    async with asyncpg.create_pool(dsn, min_size=pool, max_size=pool) as connections:
        return await empty(QueueManager(Queries(AsyncpgPoolDriver(connections))), keys, batch, keyed)


async def empty(manager: QueueManager, keys: int, batch: int, limit: int) -> float:
    """Run the manager over the keys until the queue is empty; returns the seconds."""

    async def handler(job: Job) -> None:
        json.loads(job.payload or b"null")

    for number in range(keys):
        manager.entrypoint(f"s{number}", concurrency_limit=limit)(handler)
    began = time.perf_counter()
    await manager.run(batch_size=batch, mode=QueueExecutionMode.drain)
    return time.perf_counter() - began


async def left(dsn: str) -> int:
    """The number of unfinished jobs."""
    connection = await asyncpg.connect(dsn)
    try:
        return int(await connection.fetchval("select count(*) from pgqueuer"))
    finally:
        await connection.close()


def main() -> None:
    logging.disable(logging.INFO)
    what, dsn, numbers = sys.argv[1:]
    steps: dict[str, Any] = {"fill": fill, "claim": claim, "drain": drain, "left": left}
    print(json.dumps(uvloop.run(steps[what](dsn, **json.loads(numbers)))))


if __name__ == "__main__":
    main()
