"""A collect job of 12,000 satellites, HTTP to last commit, as a multiple of a bare COPY-merge of the same rows.

Timed by the ledger: from `started_at` (before the request) to `finished_at` (after the last batch).
"""

from __future__ import annotations

import asyncio
import statistics
import time
from datetime import datetime

import asyncpg
from _running import running, verdict

RUNS = 5
GOAL = 2.0
COLUMNS = ("source", "external_key", "kind", "title", "data", "lat", "lon", "observed_at")
STAGE = f"create temp table bench_stage on commit drop as select {', '.join(COLUMNS)} from collected_data limit 0"
MERGE = """insert into bench_facts (source, external_key, kind, title, data, lat, lon, observed_at)
select source, external_key, kind, title, data, lat, lon, observed_at from bench_stage
on conflict (source, external_key) do update set data = excluded.data"""


async def bare(dsn: str) -> float:
    """Median seconds of a COPY into a temporary table and a merge in one transaction, no triggers."""
    connection = await asyncpg.connect(dsn)
    rows = await connection.fetch(f"select {', '.join(COLUMNS)} from collected_data where source = 'celestrak_gp'")
    records = [tuple(row) for row in rows]
    await connection.execute("create table bench_facts (like collected_data including all)")
    took: list[float] = []
    for _ in range(RUNS):
        await connection.execute("truncate bench_facts")
        began = time.perf_counter()
        async with connection.transaction():
            await connection.execute(STAGE)
            await connection.copy_records_to_table("bench_stage", records=records, columns=list(COLUMNS))
            await connection.execute(MERGE)
        took.append(time.perf_counter() - began)
    await connection.execute("drop table bench_facts")
    await connection.close()
    return statistics.median(took)


def main() -> None:
    with running("demo", "--only", "earth") as made, made.client() as client:
        client.patch("/api/v1/sources/celestrak_gp", json={"enabled": False}).raise_for_status()
        took: list[float] = []
        rows = 0
        for _ in range(RUNS + 1):
            made.wait_job(client, made.submit(client, "clear_data", "celestrak_gp"))
            done = made.wait_job(client, made.submit(client, "collect", "celestrak_gp"))
            started, finished = (datetime.fromisoformat(done[key]) for key in ("started_at", "finished_at"))
            took.append((finished - started).total_seconds())
            assert done["status"] == "completed" and done["records_processed"] >= 12_000, done
            rows = done["records_processed"]
        floor = asyncio.run(bare(made.dsn))
    ours = statistics.median(took[1:])
    detail = f"{rows} rows: job {ours * 1000:.0f} ms, bare COPY-merge {floor * 1000:.0f} ms"
    verdict("collect job, times a bare COPY-merge", ours / floor, GOAL, detail)


if __name__ == "__main__":
    main()
