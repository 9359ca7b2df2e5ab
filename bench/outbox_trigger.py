"""The cost of the outbox for a writer: its triggers on writes of 10,000 rows, and the doorbell on many small commits.

Writes of 10,000 rows are compared by the server's CPU time: by wall time single pairs differ by a fifth on an idle
machine, and the excluded disk wait is the same with and without triggers.

Small commits are made by pgbench, whose own cost is small, in the running product, whose relay reads the outbox all
the while. Kinds of wake-up alternate in one run: none and ours nine times each, in alternating order, and in every
third round a plain NOTIFY in every transaction. The result is the median of the pairs.
"""

from __future__ import annotations

import asyncio
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import asyncpg
from _running import NO_FEEDS, line, running

from planetwire.supervise.embedded_postgres import find_binaries

ROWS, BULK_RUNS = 10_000, 9
CLIENTS, WARM_S, SECONDS, ROUNDS = (16, 32), 1, 2, 9
BULK_GOAL, DOORBELL_GOAL = 1.10, 0.95
DERIVES = {"planetwire.derives": "on"}  # no worker derives rows of these facts during the measurements
SMALL = bool(os.environ.get("PLANETWIRE_BENCH_SMALL"))
PGBENCH = find_binaries() / "pgbench"

FILL = """insert into collected_data (source, external_key, kind, title, data, lat, lon)
select 'usgs_quakes', n::text, 'k', 'Title ' || n, jsonb_build_object('mag', n % 9, 'place', 'somewhere ' || n), 1, 2
from generate_series(1, $1) n"""
CHANGE = "update collected_data set data = data || jsonb_build_object('mag', $1::int), collected_at = clock_timestamp()"
REPAIR = "update collected_data set title = title || $1::int"  # as typed into psql
WRITES = {"insert": (FILL, ROWS), "update": (CHANGE, None), "repair": (REPAIR, None)}  # None: the number of the run
ONE = """\\set key random(1, 1000000000000000)
insert into collected_data (source, external_key, kind) values ('usgs_quakes', :key, 'k') on conflict do nothing;
"""
RING = """create or replace function planet_ring(channel text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$ begin {} end $$"""
OURS = "select pg_get_functiondef('planet_ring(text)'::regprocedure)"


def cpu_s(connection: asyncpg.Connection) -> float:
    """CPU time of the connection's server process, by the kernel's scheduler."""
    return int(Path(f"/proc/{connection.get_server_pid()}/schedstat").read_text().split()[0]) / 1e9


async def bulk(dsn: str) -> dict[str, list[float]]:
    """Seconds of an insert and of updates that change every row; alternating with and without the change triggers."""
    connection = await asyncpg.connect(dsn, server_settings=DERIVES)
    names = [f"tr_planet_collected_data_changed_{event}" for event in ("insert", "update", "delete", "truncate")]
    took: dict[str, list[float]] = {}
    for run in range(BULK_RUNS + 1):
        for on in (True, False) if run % 2 else (False, True):
            state = "enable always" if on else "disable"
            for name in names:
                await connection.execute(f"alter table collected_data {state} trigger {name}")
            await connection.execute("truncate collected_data")
            for what, (statement, value) in WRITES.items():
                began, worked = time.perf_counter(), cpu_s(connection)
                await connection.execute(statement, run if value is None else value)
                if run:  # the first warms the caches
                    took.setdefault(f"{what} {on}", []).append(time.perf_counter() - began)
                    took.setdefault(f"{what} {on} cpu", []).append(cpu_s(connection) - worked)
    for name in names:
        await connection.execute(f"alter table collected_data enable always trigger {name}")
    await connection.close()
    return took


async def execute(dsn: str, *statements: str) -> None:
    connection = await asyncpg.connect(dsn)
    for statement in statements:
        await connection.execute(statement, timeout=120)
    await connection.close()


async def fetch(dsn: str, query: str) -> str:
    connection = await asyncpg.connect(dsn)
    try:
        return str(await connection.fetchval(query))
    finally:
        await connection.close()


def commits(dsn: str, script: Path, clients: int, seconds: int) -> float:
    """Commits per second of so many clients."""
    done = subprocess.run(
        [PGBENCH, "-n", "-M", "prepared", "-c", str(clients), "-j", "2", "-T", str(seconds), "-f", script, dsn],
        check=True,
        env=os.environ | {"PGOPTIONS": " ".join(f"-c {name}={value}" for name, value in DERIVES.items())},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    found = re.search(r"tps = ([\d.]+)", done.stdout)
    assert found, done.stdout
    return float(found[1])


def small(dsn: str, clients: int) -> dict[str, list[float]]:
    """Commits per second by kind of wake-up, alternating."""
    kinds = {
        "none": RING.format("null;"),
        "ours": asyncio.run(fetch(dsn, OURS)),
        "notify": RING.format("perform pg_notify(channel, '');"),
    }
    rates: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "one.sql"
        script.write_text(ONE)
        for number in range(1 if SMALL else ROUNDS):
            order = list(kinds) if number % 2 == 0 else list(reversed(kinds))
            for kind in order if number % 3 == 0 else [kind for kind in order if kind != "notify"]:
                asyncio.run(execute(dsn, kinds[kind], "truncate collected_data"))
                commits(dsn, script, clients, WARM_S)  # the relay is now as busy as it gets
                rates.setdefault(kind, []).append(commits(dsn, script, clients, SECONDS))
    asyncio.run(execute(dsn, kinds["ours"]))
    return rates


def main() -> None:
    met = []
    with running("up", "--only", "earth", **NO_FEEDS) as made:
        took = asyncio.run(bulk(made.dsn))
        for what in WRITES:
            ratios = [a / b for a, b in zip(took[f"{what} True"], took[f"{what} False"], strict=True)]
            bare, ours = (statistics.median(took[f"{what} {on}"]) * 1000 for on in (False, True))
            less, more = (statistics.median(took[f"{what} {on} cpu"]) for on in (False, True))
            detail = (
                f"{more * 1000:.0f} ms of CPU, without triggers {less * 1000:.0f}; by the clock {ours / bare:.2f}, "
                f"{ours:.0f} and {bare:.0f} ms, pairs {min(ratios):.2f} to {max(ratios):.2f}"
            )
            met.append(line(f"{what} of {ROWS} rows, share of without triggers", more / less, BULK_GOAL, detail))
        for clients in CLIENTS:
            rates = small(made.dsn, clients)
            best = {kind: statistics.median(found) for kind, found in rates.items()}
            pairs = [ours / none for ours, none in zip(rates["ours"], rates["none"], strict=True)]
            detail = (
                f"{best['ours']:,.0f} commits/s, without wake-up {best['none']:,.0f}; plain NOTIFY "
                f"{best['notify']:,.0f}, {best['notify'] / best['none']:.2f} of without; pairs "
                f"{min(pairs):.2f} to {max(pairs):.2f}"
            )
            name = f"{clients} writers, share of without wake-up"
            met.append(line(name, statistics.median(pairs), DOORBELL_GOAL, detail, at_most=False))
    sys.exit(0 if all(met) else 1)


if __name__ == "__main__":
    main()
