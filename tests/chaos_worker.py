"""One of the product's work processes on the given ledger, with a handler whose effects can be counted."""

from __future__ import annotations

import argparse
import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import planetwire.database.postgres
from ledger_oracle import batches_left, leave_effect
from planetwire.database.postgres import Pool, open_pool, translated
from planetwire.jobs.ledger.jobs_postgres import PostgresJobQueue
from planetwire.jobs.running import Handler
from planetwire.jobs.worker import Worker
from planetwire.model import Lease, TaskType
from planetwire.outbox.wakeup_memory import MemoryWakeup
from planetwire.runtime.clock import SystemClock
from planetwire.settings import JobSettings

BATCH_S = 0.02  # duration of a batch without its commit
ROWS = 7
SETTINGS = JobSettings(lease_s=2, heartbeat_s=0.5, poll_s=0.1, concurrency=4)
PAUSES = {"retry_s": 0.2, "rescue_retry_s": 0.1}  # before a job is retried


def handler(queue: PostgresJobQueue, pool: Pool) -> Handler:
    async def run(lease: Lease) -> str | None:
        async with translated():
            left = await batches_left(pool, lease)
        for batch in left:
            async with queue.batch(lease) as tx:
                await leave_effect(tx, lease, batch, ROWS)
                await asyncio.sleep(BATCH_S / 2)
            await asyncio.sleep(BATCH_S / 2)
        return None

    return run


@asynccontextmanager
async def open_queue(dsn: str, application: str, most: int) -> AsyncIterator[tuple[PostgresJobQueue, Pool]]:
    pool = await open_pool(dsn, application=application, min_size=1, max_size=most)
    try:
        # Both ways of claiming are correct, also when mixed.
        yield PostgresJobQueue(pool, SETTINGS, few_sources=random.choice((0, 200)), **PAUSES), pool
    finally:
        pool.terminate()


@asynccontextmanager
async def open_heart(dsn: str) -> AsyncIterator[PostgresJobQueue]:
    async with open_queue(dsn, "heart", 2) as (queue, _):
        yield queue


async def main(dsn: str, name: str, pool_size: int) -> None:
    async with open_queue(dsn, "work", pool_size) as (queue, pool):
        handlers = dict.fromkeys((TaskType.COLLECT, TaskType.CLEAR_DATA), handler(queue, pool))
        worker = Worker(
            queue,
            queue,
            handlers,
            MemoryWakeup(),
            SETTINGS,
            SystemClock(),
            heart=lambda: open_heart(dsn),
            worker_id=name,
        )
        await worker.run()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("dsn")
    parser.add_argument("name")
    parser.add_argument("--pool", type=int, default=8)
    parser.add_argument("--statement-s", type=float, default=planetwire.database.postgres.COMMAND_TIMEOUT_S)
    given = parser.parse_args()
    planetwire.database.postgres.COMMAND_TIMEOUT_S = given.statement_s
    asyncio.run(main(given.dsn, given.name, given.pool))
