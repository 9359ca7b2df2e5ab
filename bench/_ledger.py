"""Shared by the ledger's benchmarks: a durable PostgreSQL of their own, queued rows, and the real worker."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from planetwire.database.postgres import Pool, close_pool, connect, open_pool
from planetwire.jobs.ledger.jobs_postgres import CHANNEL, PostgresJobQueue
from planetwire.jobs.running import Handler
from planetwire.jobs.worker import Worker
from planetwire.log import configure_logging
from planetwire.migrating.migrate import migrate_postgres
from planetwire.model import Lease, TaskType
from planetwire.outbox.wakeup_postgres import PostgresWakeup
from planetwire.runtime.clock import SystemClock
from planetwire.runtime.settle import settle
from planetwire.settings import JobSettings
from planetwire.supervise.embedded_postgres import EmbeddedPostgres, dsn_of

ALL_TYPES = tuple(kind.value for kind in TaskType)
BALLAST = 600_000  # rows, for 640 MB of the log
CONNECTIONS = 10  # in the worker's pool: shared by batches and results, whatever the number of jobs

configure_logging("console", "warning")
settle()  # as every role does


@contextmanager
def cluster() -> Iterator[EmbeddedPostgres]:
    """A cluster as `planetwire up` starts it, with every flush; removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="pw-bench-"))
    folder.chmod(0o755)
    made = EmbeddedPostgres(folder)
    try:
        made.start()
        yield made
    finally:
        made.stop()
        shutil.rmtree(folder, ignore_errors=True)


async def database(made: EmbeddedPostgres, name: str, settings: Mapping[str, str | int] | None = None) -> str:
    """Address of a new empty database; `settings` hold for every session in it."""
    admin = await connect(dsn_of(made.socket_dir, "postgres", "postgres"), application="bench")
    await admin.execute(f"create database {name} owner planetwire")
    for key, value in (settings or {}).items():
        await admin.execute(f"alter database {name} set {key} = {value}")
    await admin.close()
    owner = await connect(dsn_of(made.socket_dir, "postgres", name), application="bench")
    await owner.execute("alter schema public owner to planetwire")
    await owner.close()
    return urlunsplit(urlsplit(made.dsn)._replace(path=f"/{name}"))


async def run_in(made: EmbeddedPostgres) -> None:
    """A server that has run for a while recycles its WAL files; a new one creates each during writes (16 MB of zeros
    and a flush), all paid for by the first measurement.
    """
    admin = await connect(dsn_of(made.socket_dir, "postgres", "postgres"), application="bench")
    fill = f"create table ballast as select repeat('x', 1000) from generate_series(1, {scaled(BALLAST)})"
    for statement in (fill, "checkpoint", "drop table ballast", "checkpoint"):
        await admin.execute(statement, timeout=120)
    await admin.close()


async def ledger(made: EmbeddedPostgres, name: str, settings: Mapping[str, str | int] | None = None) -> str:
    """Address of a new database with an empty ledger."""
    dsn = await database(made, name, settings)
    connection = await connect(dsn, application="bench")
    await migrate_postgres(connection)
    await connection.close()
    return dsn


@asynccontextmanager
async def pool_on(dsn: str) -> AsyncIterator[Pool]:
    pool = await open_pool(dsn, application="bench", min_size=2, max_size=CONNECTIONS)
    try:
        yield pool
    finally:
        await close_pool(pool)


async def queue_collects(pool: Pool, rows: int, sources: int, prefix: str = "s") -> None:
    """`rows` waiting collect jobs, round-robin over `sources` sources, and statistics as after autovacuum."""
    async with pool.acquire() as connection:
        await connection.execute(
            "insert into collection_tasks (task_type, source)"
            " select 'collect', $3::text || (n % $2::int) from generate_series(0, $1::int - 1) n",
            rows,
            sources,
            prefix,
            timeout=300,
        )
        await connection.execute("vacuum analyze collection_tasks", timeout=300)


async def queue_refreshes(pool: Pool, rows: int) -> None:
    """`rows` waiting jobs without a key, each with a small payload."""
    async with pool.acquire() as connection:
        await connection.execute(
            "insert into collection_tasks (task_type, payload)"
            " select 'earth_refresh', jsonb_build_object('n', n) from generate_series(1, $1) n",
            rows,
            timeout=300,
        )
        await connection.execute("vacuum analyze collection_tasks", timeout=300)


def concurrency_max() -> int:
    """The maximum number of concurrent jobs that the settings allow."""
    bounds = (getattr(bound, "le", None) for bound in JobSettings.model_fields["concurrency"].metadata)
    return next(int(bound) for bound in bounds if bound is not None)


@asynccontextmanager
async def worker_on(dsn: str, handler: Handler, concurrency: int) -> AsyncIterator[Worker]:
    """The worker as the work process builds it, one handler for every task type; not started."""
    settings = JobSettings(concurrency=concurrency)

    @asynccontextmanager
    async def heart() -> AsyncIterator[PostgresJobQueue]:
        async with pool_on(dsn) as pool:
            yield PostgresJobQueue(pool, settings)

    async with pool_on(dsn) as pool:
        doorbell = PostgresWakeup(dsn, (CHANNEL,))
        doorbell.start()
        queue, bell = PostgresJobQueue(pool, settings), doorbell.bell(CHANNEL)
        handlers = dict.fromkeys(TaskType, handler)
        try:
            yield Worker(queue, queue, handlers, bell, settings, SystemClock(), heart=heart)
        finally:
            await doorbell.aclose()


async def drain(dsn: str, jobs: int, concurrency: int | None = None) -> float:
    """Seconds a worker takes for `jobs` waiting no-op jobs, including the writes of their results."""
    left = jobs

    async def handler(lease: Lease) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            worker.stop()

    async with worker_on(dsn, handler, concurrency or concurrency_max()) as worker:
        began = time.perf_counter()
        await asyncio.wait_for(worker.run(), 150)
        took = time.perf_counter() - began
    async with pool_on(dsn) as pool:
        done = await pool.fetchval("select count(*) from collection_tasks where status = 'completed'")
    assert done == jobs, f"{done} of {jobs} completed"
    return took


def scaled(number: int) -> int:
    """A tenth if PLANETWIRE_BENCH_SMALL is set: to try a script, not to measure."""
    return number // 10 if os.environ.get("PLANETWIRE_BENCH_SMALL") else number
