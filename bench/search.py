"""Search over 30,000 objects: the slowest of several kinds of query, in milliseconds at the database client."""

from __future__ import annotations

import asyncio
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from _running import milliseconds, verdict

from planetwire.database.postgres import close_pool, open_pool
from planetwire.facts.objects_postgres import PostgresObjectStore
from planetwire.migrating.migrate import migrate_postgres
from planetwire.supervise.embedded_postgres import EmbeddedPostgres

ROWS = 30_000
ROUNDS = 100
GOAL_MS = 20.0
QUESTIONS = ("iss", "25544", "starlink-12", "starlink", "s", "object 1", "nothing like it")
FACTS = """insert into collected_data (source, external_key, kind, title)
select 'celestrak_gp', n::text, 'satellite', case when n % 2 = 0 then 'STARLINK-' || n else 'OBJECT ' || n end
from generate_series(1, $1::int) n"""
OBJECTS = """insert into earth_interactables (id, layer, source, fact_key, kind, title, subtitle)
select 'satellites:' || source || ':' || external_key, 'satellites', source, external_key, kind, title,
    'NORAD ' || external_key || ' 1998-067A'
from collected_data"""


async def measure(dsn: str) -> dict[str, list[float]]:
    pool = await open_pool(dsn, application="bench")
    async with pool.acquire() as connection:
        await migrate_postgres(connection)
        await connection.execute(FACTS, ROWS)
        await connection.execute(OBJECTS)
        await connection.execute("vacuum analyze collected_data, earth_interactables")
    store = PostgresObjectStore(pool)
    took: dict[str, list[float]] = {}
    for question in QUESTIONS:
        await store.search(question, None, 20)
        for _ in range(ROUNDS):
            began = time.perf_counter()
            await store.search(question, None, 20)
            took.setdefault(question, []).append(time.perf_counter() - began)
    await close_pool(pool)
    return took


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="pw-bench-"))
    folder.chmod(0o755)
    cluster = EmbeddedPostgres(folder)
    cluster.start()
    try:
        took = asyncio.run(measure(cluster.dsn))
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)
    for question, samples in took.items():
        print(f"  {question!r}: {milliseconds(samples)}")
    worst, samples = max(took.items(), key=lambda item: statistics.median(item[1]))
    verdict("search, ms", statistics.median(samples) * 1000, GOAL_MS, f"{ROWS} objects, slowest {worst!r}")


if __name__ == "__main__":
    main()
