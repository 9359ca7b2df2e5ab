"""A collect job of 12,000 satellites, HTTP to last commit, as a multiple of a bare COPY-merge of the same rows.

The job writes three rows per satellite: the fact, its orbit and its searchable object. So its limit is a bare
COPY-merge into copies of the same three tables, with indexes and generated columns, without triggers, in one
transaction. The ratio to the facts alone is printed too: the figure from before rows were derived.

Timed by the ledger: from `started_at` (before the request) to `finished_at` (after the last batch). The job and the
limits alternate, so that other load on the machine affects both.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

import asyncpg
import httpx
from _running import Installation, running, verdict

RUNS = 7
GOAL = 2.0
KEYS = {
    "collected_data": ("source", "external_key"),
    "satellite_orbits": ("source", "fact_key"),
    "earth_interactables": ("id",),
}
GIVEN = """select array_agg(attname::text order by attnum) from pg_attribute
where attrelid = $1::text::regclass and attnum > 0 and not attisdropped and attgenerated = '' and attidentity = ''"""


@dataclass
class Table:
    """A copy of one of our tables, to be filled repeatedly, and its rows."""

    name: str
    columns: Sequence[str]
    rows: Sequence[tuple[object, ...]] = field(repr=False)

    async def fill(self, connection: asyncpg.Connection) -> None:
        columns, keys = ", ".join(self.columns), ", ".join(KEYS[self.name])
        stage, last = f"stage_{self.name}", self.columns[-1]
        await connection.execute(
            f"create temp table {stage} on commit drop as select {columns} from bench_{self.name} limit 0"
        )
        await connection.copy_records_to_table(stage, records=self.rows, columns=list(self.columns))
        await connection.execute(
            f"insert into bench_{self.name} ({columns}) select {columns} from {stage}"
            f" on conflict ({keys}) do update set {last} = excluded.{last}"
        )


async def tables(connection: asyncpg.Connection) -> list[Table]:
    """Copies with the rows that the product just wrote; triggers are not copied."""
    out = []
    for name in KEYS:
        columns = await connection.fetchval(GIVEN, name)
        rows = await connection.fetch(f"select {', '.join(columns)} from {name} where source = 'celestrak_gp'")
        await connection.execute(f"create table bench_{name} (like {name} including all)")
        out.append(Table(name, columns, [tuple(row) for row in rows]))
    return out


async def bare(connection: asyncpg.Connection, these: Sequence[Table]) -> float:
    """Seconds of one transaction that fills the empty tables."""
    for table in these:
        await connection.execute(f"truncate bench_{table.name}")
    began = time.perf_counter()
    async with connection.transaction():
        for table in these:
            await table.fill(connection)
    return time.perf_counter() - began


def collect(made: Installation, client: httpx.Client) -> tuple[float, int]:
    """Seconds of a first load, and its rows."""
    made.wait_job(client, made.submit(client, "clear_data", "celestrak_gp"))
    done = made.wait_job(client, made.submit(client, "collect", "celestrak_gp"))
    started, finished = (datetime.fromisoformat(done[key]) for key in ("started_at", "finished_at"))
    assert done["status"] == "completed" and done["records_processed"] >= 12_000, done
    return (finished - started).total_seconds(), done["records_processed"]


def main() -> None:
    job: list[float] = []
    all_three: list[float] = []
    facts_only: list[float] = []
    with asyncio.Runner() as loop, running("demo", "--only", "earth") as made, made.client() as client:
        client.patch("/api/v1/sources/celestrak_gp", json={"enabled": False}).raise_for_status()
        _, rows = collect(made, client)  # the first warms the caches, and gives the number of rows
        connection = loop.run(asyncpg.connect(made.dsn))
        copies = loop.run(tables(connection))
        assert [len(table.rows) for table in copies] == [rows] * len(KEYS), copies
        for _ in range(RUNS):
            job.append(collect(made, client)[0])
            all_three.append(loop.run(bare(connection, copies)))
            facts_only.append(loop.run(bare(connection, copies[:1])))
        loop.run(connection.close())
    ratios = [ours / limit for ours, limit in zip(job, all_three, strict=True)]
    job_ms, three_ms, facts_ms = (statistics.median(took) * 1000 for took in (job, all_three, facts_only))
    print(
        f"collect job, times a bare COPY-merge of its facts alone: {job_ms / facts_ms:.2f} – {facts_ms:.0f} ms",
        flush=True,
    )
    detail = (
        f"{rows} satellites, three rows each: job {job_ms:.0f} ms, bare COPY-merge {three_ms:.0f} ms; "
        f"pairs {min(ratios):.2f} to {max(ratios):.2f}"
    )
    verdict("collect job, times a bare COPY-merge of all its rows", statistics.median(ratios), GOAL, detail)


if __name__ == "__main__":
    main()
