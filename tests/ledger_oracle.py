"""The true history of a ledger, recorded by its own database: every transition and every committed batch.

The records are rows of the same transactions, numbered by one sequence, so they survive whatever the test does to
workers, connections and the server. `violations` compares them with the ledger's guarantees.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import asyncpg

from planetwire.model import JobStatus, Lease
from planetwire.ports import JobTx

RUNS = {"running", "cancelling"}
FINAL = {status.value for status in JobStatus if status.is_final}
WRITES = {"collect", "clear_data"}

# `passed`: a job of the source that a claim should have taken instead. A row that became runnable less than a
# second before the claim does not count, since the claim may not have seen it. Tests that submit all at once backdate
# it.
TABLES = """
create sequence ticks;
create table effects (
    job bigint, batch integer, lease bigint, source text, rows bigint, tick bigint default nextval('ticks')
);
create index on effects (job, batch);
create table transitions (
    tick bigint default nextval('ticks'), job bigint, source text, task_type text, old text, new text, lease bigint,
    next_lease bigint, passed bigint, at timestamptz default clock_timestamp()
);
create function note_transition() returns trigger language plpgsql set search_path = public as $$
begin
    insert into transitions (job, source, task_type, old, new, lease, next_lease, passed)
    select new.id, new.source, new.task_type, old.status, new.status, old.lease_seq, new.lease_seq,
        case when new.status = 'running' and new.task_type in ('collect', 'clear_data') then (
            select min(before.id) from collection_tasks before
            where before.source = new.source and before.status = 'queued'
                and before.task_type in ('collect', 'clear_data')
                and (before.priority, before.id) < (new.priority, new.id)
                and before.created_at < statement_timestamp() - interval '1 s'
                and coalesce(before.scheduled_at, '-infinity') < statement_timestamp() - interval '1 s') end;
    return null;
end $$;
create trigger note_transition after update on collection_tasks
    for each row when (old.status is distinct from new.status) execute function note_transition();
"""


async def install(connection: Any) -> None:
    """Install the recording in the ledger's database."""
    await connection.execute(TABLES)


async def leave_effect(tx: JobTx, lease: Lease, batch: int, rows: int) -> None:
    """Write the effect of one batch, like facts, and count it."""
    await tx.connection.execute(
        "insert into effects (job, batch, lease, source, rows) values ($1, $2, $3, $4, $5)",
        lease.job.id,
        batch,
        lease.seq,
        lease.job.source,
        rows,
    )
    tx.progress(rows)


async def batches_left(connection: Any, lease: Lease) -> list[int]:
    """The uncommitted batches of the job (`payload.batches` in all)."""
    done = {row["batch"] for row in await connection.fetch("select batch from effects where job = $1", lease.job.id)}
    return [batch for batch in range(lease.job.payload["batches"]) if batch not in done]


async def violations(connection: Any) -> list[str]:
    """Every violated guarantee, described; empty if there is none."""
    jobs = await connection.fetch("select * from collection_tasks order by id")
    moves = await connection.fetch("select * from transitions order by tick")
    effects = await connection.fetch("select * from effects order by tick")
    return [*_of_moves(moves), *_of_effects(effects, moves), *_of_rows(jobs, effects, moves)]


def _of_moves(moves: list[asyncpg.Record]) -> Iterator[str]:
    """Final states stay; one running write job per source; first in, first out."""
    holder: dict[str, int] = {}
    for move in moves:
        job, source = move["job"], move["source"]
        if move["old"] in FINAL:
            yield f"job {job} went from {move['old']} to {move['new']}"
        if move["passed"] is not None:
            yield f"job {job} of {source} was taken before job {move['passed']}"
        if move["task_type"] not in WRITES:
            continue
        if move["new"] in RUNS and holder.setdefault(source, job) != job:
            yield f"jobs {holder[source]} and {job} of {source} ran at once"
        if move["new"] not in RUNS and holder.get(source) == job:
            del holder[source]


def _of_effects(effects: list[asyncpg.Record], moves: list[asyncpg.Record]) -> Iterator[str]:
    """Each batch once, and only within the lease it names, before any request to cancel."""
    begins = {(move["job"], move["next_lease"]): move["tick"] for move in moves if move["new"] == "running"}
    ends: dict[tuple[int, int], int] = {}
    for move in moves:
        if move["old"] == "running":
            ends.setdefault((move["job"], move["lease"]), move["tick"])
    seen = set()
    for effect in effects:
        batch, lease = (effect["job"], effect["batch"]), (effect["job"], effect["lease"])
        if batch in seen:
            yield f"batch {batch[1]} of job {batch[0]} was committed twice"
        seen.add(batch)
        if not begins.get(lease, effect["tick"]) < effect["tick"] < ends.get(lease, effect["tick"] + 1):
            yield f"batch {batch[1]} of job {batch[0]} was committed outside lease {lease[1]}"


def _of_rows(jobs: list[asyncpg.Record], effects: list[asyncpg.Record], moves: list[asyncpg.Record]) -> Iterator[str]:
    """Progress equals the committed work; completed means all of it."""
    begun = {move["job"]: move["next_lease"] for move in moves if move["new"] == "running"}
    of_job = defaultdict(list, {job: list(mine) for job, mine in _by_job(effects)})
    for job in jobs:
        mine = of_job[job["id"]]
        counted = mine if job["task_type"] == "clear_data" else [e for e in mine if e["lease"] == begun.get(job["id"])]
        rows = sum(effect["rows"] for effect in counted)  # a collect job that starts over counts from zero
        if job["records_processed"] != rows:
            yield f"job {job['id']} says {job['records_processed']} rows and committed {rows}"
        wanted = job["payload"].get("batches")
        if job["status"] == "completed" and wanted and {e["batch"] for e in mine} != set(range(wanted)):
            yield f"job {job['id']} is completed with batches {sorted(e['batch'] for e in mine)}"
        if (job["finished_at"] is not None) != (job["status"] in FINAL):
            yield f"job {job['id']} is {job['status']} and finished_at is {job['finished_at']}"


def _by_job(effects: Iterable[asyncpg.Record]) -> Iterator[tuple[int, Iterator[asyncpg.Record]]]:
    return groupby(sorted(effects, key=lambda effect: effect["job"]), lambda effect: effect["job"])
