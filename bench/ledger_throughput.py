"""Draining jobs that do nothing in one process, against two neighbours and the raw limit in the same cluster.

The raw limit: one statement a turn ends a hundred jobs and claims the next, on a bare table with one partial index;
one task a job, its payload decoded.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Sequence

import asyncpg
import uvloop
from _ledger import cluster, database, drain, ledger, pool_on, queue_collects, queue_refreshes, scaled
from _peers import ask
from _running import line

from planetwire.supervise.embedded_postgres import EmbeddedPostgres

JOBS, KEYED_JOBS, SOURCES = scaled(50_000), scaled(10_000), 100
PEER_JOBS = {"procrastinate": scaled(4_000), "pgqueuer": scaled(20_000)}
PEER_KEYED_JOBS = {"procrastinate": scaled(2_000), "pgqueuer": scaled(2_000)}
RUNS = 3
BATCH = 100
TABLE = """create table bare (id bigint generated always as identity primary key, state text not null default 'queued',
    payload text not null) with (fillfactor = 70)"""
INDEX = "create index bare_queued on bare (id) where state = 'queued'"
FILL = """insert into bare (payload) select '{"n":' || n || '}' from generate_series(1, $1::int) n"""
TURN = """with done as (update bare set state = 'completed' where id = any ($1::bigint[]) and state = 'running'),
    next as (select id from bare where state = 'queued' order by id limit $2 for update skip locked)
update bare set state = 'running' from next where bare.id = next.id returning bare.id, bare.payload"""


async def raw(dsn: str, jobs: int) -> float:
    """Jobs a second of the raw limit."""
    connection = await asyncpg.connect(dsn)
    for statement in ("drop table if exists bare", TABLE, INDEX):
        await connection.execute(statement)
    await connection.execute(FILL, jobs)
    await connection.execute("vacuum analyze bare")
    turn = await connection.prepare(TURN)

    async def work(payload: str) -> None:
        json.loads(payload)

    done: list[int] = []
    began = time.perf_counter()
    while rows := await turn.fetch(done, BATCH):
        await asyncio.gather(*(asyncio.create_task(work(row["payload"])) for row in rows))
        done = [row["id"] for row in rows]
    took = time.perf_counter() - began
    await connection.close()
    return jobs / took


async def unkeyed(dsn: str) -> float:
    async with pool_on(dsn) as pool:
        await pool.execute("truncate collection_tasks")
        await queue_refreshes(pool, JOBS)
    return JOBS / await drain(dsn, JOBS)


async def keyed(dsn: str) -> float:
    async with pool_on(dsn) as pool:
        await pool.execute("truncate collection_tasks")
        await queue_collects(pool, KEYED_JOBS, SOURCES)
    return KEYED_JOBS / await drain(dsn, KEYED_JOBS)


def pgqueuer(dsn: str, jobs: int, keys: int, limit: int) -> list[float]:
    """Jobs a second with the batches its own benchmark uses; with keys, one entrypoint a key."""
    out = []
    for batch, pool in ((100, 1), (100, 4), (500, 4)):
        ask("pgqueuer", "fill", dsn, rows=jobs, keys=keys)
        out.append(jobs / ask("pgqueuer", "drain", dsn, keys=keys, batch=batch, pool=pool, keyed=limit))
        assert ask("pgqueuer", "left", dsn) == 0
    return out


def procrastinate(dsn: str, jobs: int, keys: int) -> list[float]:
    """Jobs a second with ten and with thirty at once."""
    out = []
    for concurrency in (10, 30):
        ask("procrastinate", "fill", dsn, rows=jobs, keys=keys)
        out.append(jobs / ask("procrastinate", "drain", dsn, concurrency=concurrency))
    return out


def rates(samples: Sequence[float]) -> str:
    return " / ".join(f"{rate:,.0f}" for rate in samples) + " jobs/s"


def measure(made: EmbeddedPostgres) -> list[bool]:
    mine = asyncio.run(ledger(made, "ours"))
    theirs = {name: asyncio.run(database(made, name)) for name in ("bare", *PEER_JOBS)}
    ours, limit = [], []
    for _ in range(RUNS):
        ours.append(uvloop.run(unkeyed(mine)))
        limit.append(uvloop.run(raw(theirs["bare"], JOBS)))
    others = {
        "pgqueuer": pgqueuer(theirs["pgqueuer"], PEER_JOBS["pgqueuer"], 1, 0),
        "procrastinate": procrastinate(theirs["procrastinate"], PEER_JOBS["procrastinate"], 0),
    }
    by_key = [uvloop.run(keyed(mine)) for _ in range(RUNS)]
    others_by_key = {
        "pgqueuer": pgqueuer(theirs["pgqueuer"], PEER_KEYED_JOBS["pgqueuer"], SOURCES, 1),
        "procrastinate": procrastinate(theirs["procrastinate"], PEER_KEYED_JOBS["procrastinate"], SOURCES),
    }
    told, told_by_key = rates(ours), rates(by_key)
    met = [against("drain, share of the raw limit", ours, limit, 0.6, told)]
    for name, goal in (("pgqueuer", 1.0), ("procrastinate", 20.0)):
        met.append(against(f"drain, times {name}", ours, others[name], goal, told))
    for name, samples in others_by_key.items():
        met.append(against(f"drain by source, times {name}", by_key, samples, 5.0, told_by_key))
    return met


def against(name: str, ours: Sequence[float], theirs: Sequence[float], goal: float, told: str) -> bool:
    """Best against best: the machine's other work only ever slows a run down."""
    return line(name, max(ours) / max(theirs), goal, f"{told}; theirs {rates(theirs)}", at_most=False)


def main() -> None:
    with cluster() as made:
        met = measure(made)
    sys.exit(0 if all(met) else 1)


if __name__ == "__main__":
    main()
