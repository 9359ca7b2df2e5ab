"""Derived rows: made in the transaction of their facts, gone with them, left alone when nothing changed."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from ledger_tools import claim_one, queue_on, row_of, wish
from planetwire.database.postgres import Pool
from planetwire.facts.derived_postgres import Projection
from planetwire.facts.facts_postgres import PostgresFactStore
from planetwire.jobs.tasks.clear_data import ClearDataTask
from planetwire.layers.registry import EarthLayerAdapterRegistry
from planetwire.model import Batch, Fact, Lease, TaskType
from planetwire.outbox.tables import WATCHED

REGISTRY = EarthLayerAdapterRegistry()
READ_IN_PASSING = """select sum(seq_tup_read) from pg_stat_xact_user_tables
where relname in ('collected_data', 'earth_interactables', 'satellite_orbits')"""
DERIVED = ("satellite_orbits", "resolved_locations", "earth_interactables")


def satellite(number: int, name: str = "", **data: Any) -> Fact:
    elements = {"NORAD_CAT_ID": number, "MEAN_MOTION": 15.0, "ECCENTRICITY": 0.001, "OBJECT_ID": "1998-067A", **data}
    return Fact(str(number), "satellite", name or f"SAT {number}", elements)


def quake(key: str, magnitude: float = 5.0) -> Fact:
    return Fact(key, "earthquake", f"near {key}", {"mag": magnitude, "depth_km": 10.0}, 38.0, 142.0)


class Run:
    """Collect jobs of a source with the shipped layers."""

    def __init__(self, pool: Pool, source: str = "celestrak_gp") -> None:
        self.pool, self.source = pool, source
        self.queue = queue_on(pool)
        self.facts = PostgresFactStore(pool, Projection(REGISTRY.derivers))
        self.lease: Lease | None = None

    async def put(self, *facts: Fact, **options: Any) -> None:
        if self.lease is None:
            await self.queue.submit(wish(source=self.source))
            self.lease = await claim_one(self.queue)
        async with self.queue.batch(self.lease) as tx:
            await self.facts.upsert(tx, self.source, Batch(facts, **options), self.lease.job.id)

    async def whole(self, *facts: Fact) -> None:
        await self.put(*facts, complete=True, sweep_keys=frozenset(fact.external_key for fact in facts))

    async def changes(self) -> list[tuple[str, str, int]]:
        rows = await self.pool.fetch(
            "delete from earth_data_change_events returning table_name, operation, records_processed"
        )
        return sorted(tuple(row) for row in rows)


async def keys(pool: Pool, table: str) -> list[str]:
    rows = await pool.fetch(f"select fact_key from {table} order by fact_key")
    return [row[0] for row in rows]


async def test_a_batch_brings_its_derived_rows_with_it(pg_pool: Pool) -> None:
    """S9, S22."""
    run = Run(pg_pool)
    await run.put(satellite(25544, "ISS (ZARYA)"), satellite(5, MEAN_MOTION=1.0027, ECCENTRICITY=0.0001))
    row = await pg_pool.fetchrow("select * from earth_interactables where fact_key = '25544'")
    assert row["id"] == "satellites:celestrak_gp:25544"
    assert (row["kind"], row["title"], row["subtitle"]) == ("satellite", "ISS (ZARYA)", "NORAD 25544 · 1998-067A")
    orbits = await pg_pool.fetch("select fact_key, norad_id, regime from satellite_orbits order by norad_id")
    assert [tuple(orbit) for orbit in orbits] == [("5", 5, "GEO"), ("25544", 25544, "LEO")]
    assert await run.changes() == [
        ("collected_data", "INSERT", 2),
        ("earth_interactables", "INSERT", 2),
        ("satellite_orbits", "INSERT", 2),
    ]


async def test_a_batch_is_looked_up_by_key_also_by_a_plan_that_was_made_for_small_tables(pg_pool: Pool) -> None:
    """A batch costs what it holds, whatever the source holds already."""
    facts = PostgresFactStore(pg_pool, Projection(REGISTRY.derivers))
    async with pg_pool.acquire() as connection:
        tx: Any = SimpleNamespace(connection=connection, progress=lambda *_, **__: None)
        for first in (1, 2, 3, 4, 5, 6, 7, 8, 1_001, 3_001):  # the plan is settled after a few
            batch = Batch([satellite(n) for n in range(first, first + (1 if first < 9 else 2_000))])
            async with connection.transaction():
                await facts.upsert(tx, "celestrak_gp", batch, None)
                if first == 1:
                    await connection.execute("analyze collected_data, earth_interactables")
                read = await connection.fetchval(READ_IN_PASSING)
                assert not read
    assert len(await keys(pg_pool, "satellite_orbits")) == 4_008


async def test_a_batch_that_rolls_back_leaves_neither(pg_pool: Pool) -> None:
    run = Run(pg_pool)
    await run.put()
    assert run.lease is not None
    with pytest.raises(ValueError, match="crash"):
        async with run.queue.batch(run.lease) as tx:
            await run.facts.upsert(tx, run.source, Batch([satellite(1)]), run.lease.job.id)
            raise ValueError("crash")
    for table in ("collected_data", *DERIVED):
        assert await pg_pool.fetchval(f"select count(*) from {table}") == 0


async def test_what_did_not_change_is_not_written(pg_pool: Pool) -> None:
    """S9: new elements move the orbit; the row of search stays as it is."""
    run = Run(pg_pool)
    await run.whole(satellite(1), satellite(2))
    await run.changes()
    await run.whole(satellite(1), satellite(2))
    assert await run.changes() == []
    await run.whole(satellite(1), satellite(2, MEAN_ANOMALY=3.0))
    assert await run.changes() == [("collected_data", "UPDATE", 1), ("satellite_orbits", "UPDATE", 1)]
    await run.whole(satellite(1), satellite(2, "NEW NAME", MEAN_ANOMALY=3.0))
    assert [change[0] for change in await run.changes()] == [
        "collected_data",
        "earth_interactables",
        "satellite_orbits",
    ]


async def test_elements_that_say_nothing_any_more_take_the_orbit_away(pg_pool: Pool) -> None:
    run = Run(pg_pool)
    await run.put(satellite(1), satellite(2))
    await run.put(satellite(1, MEAN_MOTION=None))
    assert await keys(pg_pool, "satellite_orbits") == ["2"]
    assert await keys(pg_pool, "earth_interactables") == ["1", "2"]


async def test_text_that_postgresql_cannot_hold_costs_nothing(pg_pool: Pool) -> None:
    run = Run(pg_pool)
    await run.put(replace(satellite(1), external_key="1\x00", title="A\x00B"))
    assert await pg_pool.fetchval("select title from earth_interactables where fact_key = '1'") == "AB"


async def test_a_sweep_and_a_tombstone_take_the_derived_rows_with_the_facts(pg_pool: Pool) -> None:
    run = Run(pg_pool)
    await run.whole(*(satellite(n) for n in range(1, 6)))
    run.lease = None
    await pg_pool.execute("update collection_tasks set status = 'completed', finished_at = now()")
    await run.whole(*(satellite(n) for n in range(1, 5)))
    await run.put(tombstones=frozenset({"1"}))
    for table in ("earth_interactables", "satellite_orbits"):
        assert await keys(pg_pool, table) == ["2", "3", "4"]


@pytest.mark.parametrize(
    "repair",
    [
        "delete from collected_data where source = 'celestrak_gp'",
        "truncate collected_data",
        "truncate collected_data cascade",
        "set session_replication_role = replica; delete from collected_data; reset session_replication_role",
        "update collected_data set source = 'elsewhere'",
    ],
)
async def test_whoever_deletes_facts_deletes_their_derived_rows(repair: str, pg_pool: Pool) -> None:
    """S80, S9: also TRUNCATE, and also in a session that runs as a replica; the browser hears of each table."""
    run = Run(pg_pool)
    await run.put(satellite(1), satellite(2))
    await pg_pool.execute(
        "insert into resolved_locations (source, fact_key, method, lat, lon)"
        " values ('celestrak_gp', '1', 'manual', 1, 2)"
    )
    await run.changes()
    await pg_pool.execute(repair)
    for table in DERIVED:
        assert await pg_pool.fetchval(f"select count(*) from {table}") == 0
    told = {(table, operation) for table, operation, _ in await run.changes()}
    assert {(table, "DELETE") for table in DERIVED} < told


async def test_facts_typed_in_by_hand_are_found_after_the_next_run(pg_pool: Pool) -> None:
    """S80; also those that were there before an upgrade."""
    run = Run(pg_pool, "usgs_quakes")
    await pg_pool.execute(
        "insert into collected_data (source, external_key, kind, title, data) values"
        " ('usgs_quakes', 'hand', 'earthquake', 'typed in', '{\"mag\": \"big\"}'),"
        " ('usgs_quakes', 'odd', 'earthquake', 'no object', '7')"
    )
    await run.put(quake("us1"), quake("hand2"), complete=True)
    assert await keys(pg_pool, "earth_interactables") == ["hand", "hand2", "odd", "us1"]


async def test_clear_data_leaves_nothing_of_the_source_and_all_of_the_others(pg_pool: Pool) -> None:
    """S75, S77, S78: facts first, then what the layers own; orphans too."""
    satellites, quakes = Run(pg_pool), Run(pg_pool, "usgs_quakes")
    await satellites.put(*(satellite(n) for n in range(1, 30)))
    await quakes.put(quake("us1"))
    await pg_pool.execute("update collection_tasks set status = 'completed', finished_at = now()")
    await pg_pool.execute(
        "insert into earth_interactables (id, layer, source, fact_key)"
        " select 'orphan ' || n, 'satellites', 'celestrak_gp', 'x' || n from generate_series(1, 25) n"
    )
    queue = queue_on(pg_pool)
    await queue.submit(wish(TaskType.CLEAR_DATA, "celestrak_gp"))
    lease = await claim_one(queue)
    await ClearDataTask(queue, satellites.facts, REGISTRY.owned_tables, chunk_rows=10)(lease)
    assert await keys(pg_pool, "satellite_orbits") == []
    assert await keys(pg_pool, "earth_interactables") == ["us1"]
    assert (await row_of(pg_pool, lease.job.id))["phase"] == "clear_derived"


async def test_a_place_put_right_by_hand_is_the_one_shown(pg_pool: Pool) -> None:
    """S79."""
    run = Run(pg_pool, "usgs_quakes")
    await run.put(quake("us1"))
    await run.changes()
    await pg_pool.execute(
        "insert into resolved_locations (source, fact_key, method, lat, lon, locked)"
        " values ('usgs_quakes', 'us1', 'manual', 1.5, 2.5, true)"
    )
    assert await run.changes() == [("resolved_locations", "INSERT", 1)]
    features, _ = await run.facts.features(["usgs_quakes"], None)
    assert b'"lat":1.5,"lon":2.5' in features[0]


async def test_changes_of_interactables_carry_the_ids_of_up_to_500_rows(pg_pool: Pool) -> None:
    """S65, Q21."""

    async def told(statement: str) -> list[tuple[str, int, Any]]:
        await pg_pool.execute(statement)
        rows = await pg_pool.fetch(
            "with gone as (delete from earth_data_change_events returning *)"
            " select operation, records_processed, row_ids from gone order by id"
        )
        return [tuple(row) for row in rows]

    add = "insert into earth_interactables (id, layer, source, fact_key) select 'l:s:' || n, 'l', 's', n"
    assert await told(add + " from generate_series(1, 2) n") == [("INSERT", 2, ["l:s:1", "l:s:2"])]
    assert await told("update earth_interactables set title = 'x' where fact_key = '1'") == [("UPDATE", 1, ["l:s:1"])]
    assert await told("update earth_interactables set title = title") == []
    assert await told("update earth_interactables set id = 'l:s:9' where fact_key = '1'") == [
        ("DELETE", 1, ["l:s:1"]),
        ("UPDATE", 1, ["l:s:9"]),
    ]
    moved = await told("update earth_interactables set source = 't' where fact_key = '2'")
    assert moved == [("UPDATE", 1, ["l:s:2"])] * 2
    assert await told("delete from earth_interactables where fact_key = '2'") == [("DELETE", 1, ["l:s:2"])]
    ((_, count, ids),) = await told(add + " from generate_series(1000, 1499) n")
    assert (count, len(ids)) == (500, 500)
    assert await told(add + " from generate_series(2000, 2500) n") == [("INSERT", 501, None)]
    assert await told("update earth_interactables set title = 'y'") == [("UPDATE", 1002, None)]
    await told("update earth_interactables set source = 't' where fact_key::int between 1000 and 1009")
    both = await told("update earth_interactables set title = 'z'")
    assert sorted((count, len(ids or ())) for _, count, ids in both) == [(10, 10), (992, 0)]
    assert await told("truncate earth_interactables") == [("DELETE", 1002, None)]


async def test_every_table_of_the_registry_exists_and_is_watched_and_every_watched_one_reaches_a_layer(
    pg_pool: Pool,
) -> None:
    """S71, S73, S75, S79."""
    watched = {table.name for table in WATCHED}
    for adapter in REGISTRY.all():
        for table in {name for name, _ in adapter.feeds} | set(adapter.owned_tables):
            assert table in watched
            assert await pg_pool.fetchval("select to_regclass($1)", table) is not None
            names = {
                row[0]
                for row in await pg_pool.fetch(
                    "select attname from pg_attribute where attrelid = to_regclass($1) and attnum > 0", table
                )
            }
            assert {"id", "source"} <= names
            assert table == "collected_data" or "fact_key" in names
    for table in watched:
        assert REGISTRY.layers_of(table, None), f"no layer hears of {table}"


@pytest.mark.parametrize("named", ["celestrak_tle", "celestrak_gp"])
async def test_a_clearing_deletes_exactly_what_it_names_whoever_asked_for_it(named: str, pg_pool: Pool) -> None:
    """Two names of one source are two sets of rows: facts and what was derived of them."""
    runs = {source: Run(pg_pool, source) for source in ("celestrak_gp", "celestrak_tle")}
    for number, run in enumerate(runs.values()):
        await run.put(*(satellite(10 * number + n) for n in range(1, 8)))
        await pg_pool.execute("update collection_tasks set status = 'completed', finished_at = now()")
    await pg_pool.execute("insert into collection_tasks (task_type, source) values ('clear_data', $1)", named)
    queue = queue_on(pg_pool)
    lease = await claim_one(queue)
    assert lease.job.source == named
    await ClearDataTask(queue, runs[named].facts, REGISTRY.owned_tables, chunk_rows=3)(lease)
    for table in ("collected_data", "satellite_orbits", "earth_interactables"):
        left = await pg_pool.fetch(f"select source, count(*) from {table} group by source")
        assert [tuple(row) for row in left] == [(({*runs} - {named}).pop(), 7)], table
