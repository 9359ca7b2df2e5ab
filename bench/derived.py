"""The cost of derived rows in the upsert of a first body of 13,412 satellites, and of one with new elements for each.

In one process, alternating with and without, by median; without the job's request and parsing.
"""

from __future__ import annotations

import asyncio
import shutil
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

from _running import line

from planetwire.database.postgres import Pool, close_pool, open_pool
from planetwire.datasets.registry import layer_registry
from planetwire.facts.derived_postgres import Projection
from planetwire.facts.facts_postgres import PostgresFactStore
from planetwire.migrating.migrate import migrate_postgres
from planetwire.model import Batch, Fact
from planetwire.supervise.embedded_postgres import EmbeddedPostgres

ROWS, BATCH = 13_412, 2_000
RUNS = 7
FIRST_GOAL, NEXT_GOAL = 3.0, 2.0
AT = datetime(2026, 11, 30, tzinfo=UTC)


def satellite(number: int) -> Fact:
    data = {
        "OBJECT_NAME": f"STARLINK-{number}",
        "OBJECT_ID": f"2019-{number % 1000:03}A",
        "EPOCH": "2026-11-30T00:00:00.000000",
        "MEAN_MOTION": 15.06 + number / 1e6,
        "ECCENTRICITY": 0.0001234,
        "INCLINATION": 53.05,
        "RA_OF_ASC_NODE": 123.4,
        "ARG_OF_PERICENTER": 87.1,
        "MEAN_ANOMALY": 273.0,
        "EPHEMERIS_TYPE": 0,
        "CLASSIFICATION_TYPE": "U",
        "NORAD_CAT_ID": number,
        "ELEMENT_SET_NO": 999,
        "REV_AT_EPOCH": 12345,
        "BSTAR": 0.00012,
        "MEAN_MOTION_DOT": 1e-5,
        "MEAN_MOTION_DDOT": 0.0,
    }
    return Fact(str(number), "satellite", f"STARLINK-{number}", data, None, None, AT)


async def upsert(pool: Pool, store: PostgresFactStore, facts: list[Fact]) -> float:
    began = time.perf_counter()
    for start in range(0, len(facts), BATCH):
        part = facts[start : start + BATCH]
        batch = Batch(part, complete=start + BATCH >= len(facts))
        async with pool.acquire() as connection, connection.transaction():
            tx = SimpleNamespace(connection=connection, progress=lambda *_, **__: None)
            await store.upsert(tx, "celestrak_gp", batch, None)
    return time.perf_counter() - began


async def measure(dsn: str) -> dict[tuple[str, bool], list[float]]:
    pool = await open_pool(dsn, application="bench", max_size=1)
    async with pool.acquire() as connection:
        await migrate_postgres(connection)
    first = [satellite(n) for n in range(1, ROWS + 1)]
    then = [replace(fact, data={**fact.data, "MEAN_ANOMALY": 274.0}) for fact in first]
    took: dict[tuple[str, bool], list[float]] = {}
    for _ in range(RUNS):
        for derived in (True, False):
            store = PostgresFactStore(pool, Projection(layer_registry().derivers) if derived else None)
            await pool.execute("truncate collected_data, earth_data_change_events")
            for body, facts in (("first", first), ("next", then)):
                took.setdefault((body, derived), []).append(await upsert(pool, store, facts))
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
    met = True
    for body, goal in (("first", FIRST_GOAL), ("next", NEXT_GOAL)):
        with_ms, without_ms = (statistics.median(took[(body, derived)]) * 1000 for derived in (True, False))
        detail = f"{ROWS} rows: {with_ms:.0f} ms, {without_ms:.0f} ms without"
        met &= line(f"upsert of a {body} body with derived rows, times without", with_ms / without_ms, goal, detail)
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
