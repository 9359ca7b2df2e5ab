"""procrastinate (MIT), used as documented: `python _peer_procrastinate.py WHAT DSN NUMBERS`. Prints JSON.

It serialises the jobs of one key by a job's `lock`.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any

import psycopg
import uvloop
from procrastinate import App, PsycopgConnector
from procrastinate.jobs import Status

WARM = 2  # calls before the measured ones
CALLS_MAX_S = 30.0
FILL = """insert into procrastinate_jobs (queue_name, task_name, priority, lock, args)
select 'default', 'nothing', 0, %s::text || (n %% %s), jsonb_build_object('n', n) from generate_series(0, %s - 1) n"""


def make_app(dsn: str, connections: int = 10) -> App:
    app = App(connector=PsycopgConnector(conninfo=dsn, min_size=connections, max_size=connections))

    @app.task(name="nothing")
    async def nothing(n: int) -> None:
        pass

    return app


async def fill(dsn: str, rows: int, keys: int, hot: int = 0) -> None:
    """Refill the queue: `hot` jobs of one lock, then `rows` round-robin over `keys` locks; none with `keys` 0."""
    app = make_app(dsn, 1)
    async with app.open_async():
        if not await app.check_connection_async():
            await app.schema_manager.apply_schema_async()
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        await connection.execute("truncate procrastinate_jobs cascade")
        await connection.execute("alter table procrastinate_jobs disable trigger user")
        await connection.execute(FILL, ("hot", 1, hot))
        await connection.execute(FILL, ("s" if keys else None, max(keys, 1), rows))
        await connection.execute("alter table procrastinate_jobs enable trigger user")
        await connection.execute("vacuum analyze procrastinate_jobs")


async def claim(dsn: str, calls: int, hot: int = 0) -> list[float]:
    """Seconds of each fetch of one job; finishing is not timed. With `hot`, the first takes the busy key's job."""
    took: list[float] = []
    app = make_app(dsn, 1)
    async with app.open_async():
        manager = app.job_manager
        worker = await manager.register_worker()
        until = time.perf_counter() + CALLS_MAX_S
        for number in range(calls + WARM):
            if time.perf_counter() > until:
                break
            began = time.perf_counter()
            job = await manager.fetch_job(queues=None, worker_id=worker)
            took.append(time.perf_counter() - began)
            assert job is not None
            if hot and number == 0:
                assert job.lock == "hot0", job
                continue
            await manager.finish_job(job, Status.SUCCEEDED, delete_job=False)
    return took[WARM:]


async def drain(dsn: str, concurrency: int) -> float:
    """Seconds until its worker has emptied the queue."""
    app = make_app(dsn, min(concurrency, 10))
    async with app.open_async():
        began = time.perf_counter()
        await app.run_worker_async(wait=False, concurrency=concurrency, install_signal_handlers=False)
        took = time.perf_counter() - began
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        left = await (
            await connection.execute("select count(*) from procrastinate_jobs where status <> 'succeeded'")
        ).fetchone()
    assert left == (0,), f"{left} left"
    return took


def main() -> None:
    logging.disable(logging.WARNING)
    what, dsn, numbers = sys.argv[1:]
    steps: dict[str, Any] = {"fill": fill, "claim": claim, "drain": drain}
    print(json.dumps(uvloop.run(steps[what](dsn, **json.loads(numbers)))))


if __name__ == "__main__":
    main()
