"""Random writes to facts and derived tables of every kind: by jobs, plain SQL, COPY, MERGE, TRUNCATE, from psql."""

from __future__ import annotations

import asyncio
import itertools
import random
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import asyncpg

from ledger_tools import queue_on, wish
from planetwire.database.postgres import Connection, Pool
from planetwire.datasets.registry import layer_registry
from planetwire.errors import BackendError
from planetwire.facts.derived_postgres import Projection
from planetwire.facts.facts_postgres import PostgresFactStore
from planetwire.model import Batch, Fact, JobStatus, TaskType
from planetwire.supervise.embedded_postgres import find_binaries

PSQL = find_binaries() / "psql"
SOURCES = ("celestrak_gp", "usgs_quakes", "celestrak_tle", "nobody")
KEYS = 60  # per source: few, so that writes collide
# Another writer was first, or a deadlock: the transaction and its changes are rolled back.
REFUSED = (asyncpg.UniqueViolationError, asyncpg.DeadlockDetectedError, asyncpg.ForeignKeyViolationError, BackendError)

# A child of the facts, like a partition: statements addressed to it fire its own triggers.
FAR = """
create table collected_data_far () inherits (collected_data);
alter table collected_data_far add primary key (id), add unique (source, external_key);
select planet_watch_tree('public.collected_data');
"""

PUT = """insert into collected_data as f (source, external_key, kind, title, data, lat, lon)
select $1, key, 'k', 'T' || $3::int, jsonb_build_object('v', $3::int), ($3::int % 90), 0 from unnest($2::text[]) key
on conflict (source, external_key) do update set title = excluded.title, data = excluded.data, lat = excluded.lat"""
ADD = PUT.partition("on conflict")[0] + "on conflict do nothing"
MERGE = """merge into collected_data f
using (select key from unnest($2::text[]) key) n on f.source = $1 and f.external_key = n.key
when matched and $3::int % 3 = 0 then delete
when matched then update set title = 'M' || $3::int, data = jsonb_build_object('v', $3::int)
when not matched then insert (source, external_key, kind, title, data) values ($1, n.key, 'k', 'M' || $3::int, '{}')"""
MOVE = """with gone as (
    delete from collected_data where source = $1 and external_key = any ($2) returning external_key, kind, data
) insert into collected_data (source, external_key, kind, title, data)
select 'usgs_quakes', 'moved-' || external_key, kind, 'W' || $3::int, data from gone on conflict do nothing"""
CHANGE = (
    "update collected_data set data = jsonb_build_object('v', $3::int) where source = $1 and external_key = any ($2)"
)
SAME = "update collected_data set title = title, data = data where source = $1 and ($2::text[] is null or $3::int > 0)"
DELETE = "delete from collected_data where source = $1 and external_key = any ($2) and $3::int > 0"
RENAME = """update collected_data set source = case source when 'usgs_quakes' then 'celestrak_gp' else 'usgs_quakes' end
where source = $1 and external_key = any ($2) and $3::int > 0"""

PLACE = """insert into resolved_locations (source, fact_key, method, lat, lon)
select 'usgs_quakes', key, 'manual', $2::int % 90, 1 from unnest($1::text[]) key
on conflict (source, fact_key) do update set lat = excluded.lat"""
UNPLACE = "delete from resolved_locations where fact_key = any ($1) and $2::int > 0"
ORBIT = """insert into satellite_orbits (source, fact_key, norad_id, name)
select 'celestrak_gp', key, 1 + $2::int, 'o' from unnest($1::text[]) key
on conflict (source, fact_key) do update set norad_id = excluded.norad_id"""
# Of facts that exist: no derived row outlives its fact.
THING = """insert into earth_interactables (id, layer, source, fact_key, kind, title, subtitle, properties)
select 'by-hand:' || source || ':' || external_key, 'by-hand', source, external_key, 'k', 'H' || $2::int, '',
    jsonb_build_object('v', $2::int)
from collected_data where external_key = any ($1) for key share
on conflict (id) do update set title = excluded.title, properties = excluded.properties"""
RETITLE = "update earth_interactables set title = 'E' || $2::int where fact_key = any ($1)"
REID = "update earth_interactables set id = id || '+' where fact_key = any ($1) and length(id) < 60 and $2::int > 0"
FORGET = "delete from earth_interactables where fact_key = any ($1) and $2::int > 0"
HINT = "insert into earth_refresh_hints (layer, action) values ($1, 'manual_refresh')"

Write = Callable[[Connection], Awaitable[object]]


@dataclass
class Writer:
    """One program that writes at random. `done` counts its commits, by kind."""

    pool: Pool
    dsn: str
    rng: random.Random
    number: int
    done: Counter[str] = field(default_factory=Counter)
    _count: Any = field(default_factory=lambda: itertools.count(1))

    async def run(self, until: Callable[[], bool]) -> None:
        shapes: list[tuple[Callable[[], Awaitable[object]], int]] = [
            (self.plain, 40),
            (self.derived, 25),
            (self.several, 10),
            (self.copy, 6),
            (self.far, 6),
            (self.rolled_back, 4),
            (self.as_replica, 3),
            (self.hint, 2),
            (self.job, 2),
            (self.truncate, 1),
            (self.psql, 1),
        ]
        while not until():
            shape = self.rng.choices([s for s, _ in shapes], [weight for _, weight in shapes])[0]
            try:
                await shape()
                self.done[shape.__name__] += 1
            except REFUSED:
                self.done["refused"] += 1

    def keys(self) -> list[str]:
        return [str(key) for key in self.rng.sample(range(KEYS), self.rng.choice((1, 1, 1, 3, 20)))]

    def _plain(self) -> tuple[str, str, list[str], int]:
        statement = self.rng.choice((PUT, PUT, PUT, ADD, MERGE, MOVE, CHANGE, CHANGE, SAME, DELETE, RENAME))
        return statement, self.rng.choice(SOURCES), self.keys(), next(self._count)

    async def plain(self) -> None:
        await self.pool.execute(*self._plain())

    async def derived(self) -> None:
        statement = self.rng.choice((PLACE, PLACE, UNPLACE, ORBIT, THING, THING, RETITLE, RETITLE, REID, FORGET))
        await self.pool.execute(statement, self.keys(), next(self._count))

    async def several(self) -> None:
        """A transaction with pauses between its statements, as programs do."""
        async with self.pool.acquire() as connection, connection.transaction():
            for _ in range(self.rng.randint(2, 4)):
                await connection.execute(*self._plain())
                await connection.execute("select pg_sleep($1)", self.rng.random() * 0.01)

    async def copy(self) -> None:
        n = next(self._count)
        records = [(self.rng.choice(SOURCES), f"copy-{self.number}-{n}-{row}", "k") for row in range(5)]
        async with self.pool.acquire() as connection:
            await connection.copy_records_to_table(
                "collected_data", records=records, columns=["source", "external_key", "kind"]
            )
            if self.rng.random() < 0.7:
                await connection.execute(
                    "delete from collected_data where external_key = any ($1)", [r[1] for r in records]
                )

    async def far(self) -> None:
        key = f"far-{self.number}-{self.rng.randrange(8)}"
        statement = self.rng.choice(
            (
                "insert into collected_data_far (id, source, external_key, kind) values"
                " (nextval('collected_data_id_seq'), 'usgs_quakes', $1, 'k')",
                "update collected_data_far set data = jsonb_build_object('v', id) where external_key = $1",
                "update collected_data_far set source = 'celestrak_gp' where external_key = $1",
                "delete from collected_data_far where external_key = $1",
                "delete from collected_data where external_key = $1",
            )
        )
        await self.pool.execute(statement, key)

    async def rolled_back(self) -> None:
        """Leaves nothing, neither rows nor changes."""
        async with self.pool.acquire() as connection:
            transaction = connection.transaction()
            await transaction.start()
            try:
                await connection.execute(*self._plain())
                await connection.execute("savepoint here")
                await connection.execute(*self._plain())
                await connection.execute("rollback to here")
            finally:
                await transaction.rollback()

    async def as_replica(self) -> None:
        async with self.pool.acquire() as connection, connection.transaction():
            await connection.execute("set local session_replication_role = replica")
            await connection.execute(*self._plain())

    async def hint(self) -> None:
        await self.pool.execute(HINT, self.rng.choice(("satellites", "earthquakes", "interactables")))

    async def job(self) -> None:
        """A collect job as the worker runs it: facts and derived rows in fenced batches."""
        source = self.rng.choice(SOURCES[:2])
        queue = queue_on(self.pool)
        facts = PostgresFactStore(self.pool, Projection(layer_registry().derivers))
        await queue.submit(wish(TaskType.COLLECT, source))
        for lease in await queue.claim(f"w{self.number}", ["collect"], 1):
            for _ in range(2):
                n = next(self._count)
                batch = Batch([Fact(key, "k", f"J{n}", {"v": n, "mag": n % 7}, n % 90, 2) for key in self.keys()])
                async with queue.batch(lease) as tx:
                    await facts.upsert(tx, lease.job.source or "", batch, lease.job.id)
                    tx.progress(len(batch.facts))
            await queue.finish(lease, JobStatus.COMPLETED)

    async def truncate(self) -> None:
        table = self.rng.choice(("collected_data", "collected_data_far", "resolved_locations", "earth_interactables"))
        await self.pool.execute(f"truncate {table}")

    async def psql(self) -> None:
        """A repair script by somebody who does not know this program."""
        n = next(self._count)
        script = (
            f"begin; update collected_data set title = 'P{n}' where external_key in ('1', '2', '3');"
            f"delete from collected_data where source = 'usgs_quakes' and external_key = '{self.rng.randrange(KEYS)}';"
            "commit;\n\\copy collected_data (source, external_key, kind) from stdin\n"
            f"usgs_quakes\tpsql-{self.number}-{n}\tk\n\\.\n"
        )
        process = await asyncio.create_subprocess_exec(
            PSQL, "-qXd", self.dsn, stdin=asyncio.subprocess.PIPE, stdout=sys.stderr, stderr=asyncio.subprocess.DEVNULL
        )
        await process.communicate(script.encode())
        assert process.returncode == 0
