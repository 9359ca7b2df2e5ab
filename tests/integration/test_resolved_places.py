"""Places of facts without coordinates: looked up, left alone where somebody said better, and told to the map."""

from __future__ import annotations

import asyncio
import json
from importlib.resources import files
from typing import Any

import pytest

from fix_earth import Earth
from ledger_tools import claim_one, queue_on, until, wish
from planetwire.database.postgres import Pool
from planetwire.datasets.registry import layer_registry
from planetwire.facts.by_hand import ByHand
from planetwire.facts.by_hand_postgres import PostgresByHandFacts
from planetwire.facts.derived_postgres import Projection
from planetwire.facts.objects_postgres import PostgresObjectStore
from planetwire.jobs.tasks.clear_data import ClearDataTask
from planetwire.model import Batch, Fact, TaskType
from planetwire.outbox.wakeup_memory import MemoryWakeup
from planetwire.runtime.clock import SystemClock
from planetwire.runtime.ending import end_all
from planetwire.wiring.facts import _gazetteer, deriving_facts

REGISTRY = layer_registry()
SOURCE = "usgs_quakes"
TYPED = """insert into collected_data (source, external_key, kind, title, data, lat, lon)
values ('usgs_quakes', $1, 'earthquake', $1, $2::jsonb, $3, $4)"""
CHANGES = """with gone as (delete from earth_data_change_events returning *)
select table_name, operation, records_processed from gone order by 1, 2"""
RIDGECREST = {"mag": 4.0, "place": "12 km NNE of Ridgecrest, CA"}


def quake(key: str, lat: float | None = None, lon: float | None = None, **data: Any) -> Fact:
    return Fact(key, "earthquake", key, {"mag": 4.0, **data}, lat, lon)


def by_hand(pool: Pool) -> ByHand:
    facts = PostgresByHandFacts(pool, Projection(REGISTRY.derivers, _gazetteer()), page=500)
    return ByHand(facts, MemoryWakeup(), SystemClock())


class Run:
    """One collect job of the earthquakes, as the program wires it."""

    def __init__(self, pool: Pool) -> None:
        self.pool, self.queue, self.facts = pool, queue_on(pool), deriving_facts(pool, REGISTRY)

    async def put(self, *facts: Fact) -> list[tuple[str, str, int]]:
        """What changed by it, but for the facts and what search holds of them."""
        if not hasattr(self, "lease"):
            await self.queue.submit(wish(source=SOURCE))
            self.lease = await claim_one(self.queue)
        async with self.queue.batch(self.lease) as tx:
            await self.facts.upsert(tx, SOURCE, Batch(facts), self.lease.job.id)
        return [one for one in await changes(self.pool) if one[0] == "resolved_locations"]


async def changes(pool: Pool) -> list[tuple[str, str, int]]:
    return [tuple(row) for row in await pool.fetch(CHANGES)]


async def places(pool: Pool) -> dict[str, tuple[Any, ...]]:
    rows = await pool.fetch("select fact_key, method, lat, lon, resolver from resolved_locations order by fact_key")
    return {row[0]: (row[1], round(row[2], 1), round(row[3], 1), row[4]) for row in rows}


async def typed(pool: Pool, key: str, data: object, lat: float | None = None, lon: float | None = None) -> None:
    await pool.execute(TYPED, key, data, lat, lon)


PARIS = ("geocode", 48.9, 2.3, "geonames")


async def test_a_job_brings_the_places_of_its_facts_in_their_transaction_and_writes_none_again(pg_pool: Pool) -> None:
    """S22: what has coordinates asks for nothing."""
    run = Run(pg_pool)
    facts = (
        quake("named", place="Paris"),
        quake("given", latitude=1.5, longitude=190.0),
        quake("own", 5.0, 6.0, place="Paris"),
        quake("nobody knows", place="off the coast of somewhere"),
    )
    assert await run.put(*facts) == [("resolved_locations", "INSERT", 2)]
    assert await places(pg_pool) == {"given": ("given", 1.5, -170.0, "data"), "named": PARIS}
    row = await pg_pool.fetchrow("select * from resolved_locations where fact_key = 'named'")
    assert (row["confidence"], row["precision_m"], row["locked"]) == (pytest.approx(0.818, abs=0.03), 16_500.0, False)
    written = "select xmin::text from resolved_locations order by id"
    before = await pg_pool.fetch(written)
    assert await run.put(*(quake(f.external_key, f.lat, f.lon, **f.data, mag_type="mb") for f in facts)) == []
    assert await pg_pool.fetch(written) == before, "the same values are not even written"
    features, _ = await run.facts.features([SOURCE], None)
    shown = {one["title"]: (one["lat"], one["lon"]) for one in map(json.loads, features)}
    assert shown["given"] == (1.5, -170.0) and shown["own"] == (5.0, 6.0) and shown["nobody knows"] == (None, None)
    assert shown["named"] == (row["lat"], row["lon"])
    card = await PostgresObjectStore(pg_pool).card(f"earthquakes:{SOURCE}:named")
    assert card is not None
    assert [card[f"place_{name}"] for name in ("method", "precision_m", "confidence", "resolver")] == [
        "geocode", 16_500.0, row["confidence"], "geonames",
    ]  # fmt: skip


async def test_a_place_follows_its_fact_and_is_never_deleted_for_coordinates_that_came(pg_pool: Pool) -> None:
    """S22, S64: a delete would clear the layer before it is loaded again."""
    run = Run(pg_pool)
    await run.put(quake("a", place="Paris"), quake("b", place="Paris"))
    assert await run.put(quake("a", place="Tokyo")) == [("resolved_locations", "UPDATE", 1)]
    assert (await places(pg_pool))["a"] == ("geocode", 35.7, 139.7, "geonames")
    assert await run.put(quake("a", 7.0, 190.0, place="Tokyo")) == [("resolved_locations", "UPDATE", 1)]
    assert (await places(pg_pool))["a"] == ("given", 7.0, -170.0, "data")
    assert await run.put(quake("a", 7.0, 190.0, place="Tokyo", mag_type="mb")) == []
    assert await run.put(quake("a", 8.0, 9.0)) == [("resolved_locations", "UPDATE", 1)]
    assert await run.put(quake("a", place="nowhere at all")) == [("resolved_locations", "DELETE", 1)]
    assert await places(pg_pool) == {"b": PARIS}


@pytest.mark.parametrize(
    "row",
    [
        "'manual', 1, 2, null, false",
        "'manual', 1, 2, 'geonames', false",
        "'geocode', 1, 2, 'geonames', true",
        "'given', 1, 2, 'data', true",
        "'geocode', 1, 2, 'another program', false",
        "'geocode', 1, 2, null, false",
    ],
)
async def test_what_somebody_put_right_or_locked_or_resolved_himself_is_never_overwritten(
    row: str, pg_pool: Pool
) -> None:
    """S22: whatever becomes of the fact, as long as it is there."""
    await pg_pool.execute(
        "insert into resolved_locations (source, fact_key, method, lat, lon, resolver, locked)"
        f" values ('{SOURCE}', 'a', {row})"
    )
    run = Run(pg_pool)
    await changes(pg_pool)
    before = await places(pg_pool)
    for fact in (quake("a", place="Paris"), quake("a", 7.0, 8.0), quake("a", lat=3, lon=4), quake("a")):
        assert await run.put(fact, quake("other", place="Tokyo", mag=len(fact.data))) in (
            [],
            [("resolved_locations", "INSERT", 1)],
        )
    await typed(pg_pool, "c", {"place": "Paris"})
    await pg_pool.execute('update collected_data set data = \'{"place": "Tokyo"}\'')
    await by_hand(pg_pool).step()
    assert (await places(pg_pool))["a"] == before["a"]
    assert (await places(pg_pool))["c"][1:3] == (35.7, 139.7)


async def test_what_is_unlocked_again_is_looked_up_again_with_its_fact(pg_pool: Pool) -> None:
    run = Run(pg_pool)
    await run.put(quake("a", place="Paris"))
    await pg_pool.execute("update resolved_locations set lat = 0, lon = 0, locked = true")
    await run.put(quake("a", place="Paris", mag_type="mb"))
    assert (await places(pg_pool))["a"][1:3] == (0.0, 0.0)
    await pg_pool.execute("update resolved_locations set locked = false")
    await pg_pool.execute("insert into derived_pending (source, fact_key) values ($1, 'a')", SOURCE)
    await by_hand(pg_pool).step()
    assert await places(pg_pool) == {"a": PARIS}


async def test_what_is_typed_in_gets_its_place_and_what_cannot_have_one_costs_nobody_else(pg_pool: Pool) -> None:
    """S22, S80: bounded, whatever somebody types."""
    for key, data in {
        "a": RIDGECREST, "b": 7, "c": {"place": {"deep": 1}}, "d": {"place": "x" * 100_000},
        "e": {"place": ["Paris"]}, "f": {"coordinates": [1e308, 2]}, "g": {"coordinates": [2, 1]},
        "h": {"place": "Paris", "country": "FR"},
    }.items():  # fmt: skip
        await typed(pg_pool, key, data)
    await typed(pg_pool, "nan", {"place": "Tokyo"}, float("nan"), float("inf"))
    await by_hand(pg_pool).step()
    assert await places(pg_pool) == {
        "a": ("geocode", 35.7, -117.6, "geonames"), "g": ("given", 1.0, 2.0, "data"), "h": PARIS,
        "nan": ("geocode", 35.7, 139.7, "geonames"),
    }  # fmt: skip
    assert await pg_pool.fetchval("select count(*) from earth_interactables") == 9
    assert await pg_pool.fetchval("select count(*) from derived_pending") == 0


async def test_the_place_goes_with_its_fact_and_with_a_clearing_also_a_locked_one(pg_pool: Pool) -> None:
    """S75."""
    run = Run(pg_pool)
    await run.put(quake("a", place="Paris"), quake("b", place="Tokyo"), quake("c", place="Oslo"))
    await pg_pool.execute("delete from collected_data where external_key = 'a'")
    assert list(await places(pg_pool)) == ["b", "c"]
    await pg_pool.execute("update resolved_locations set locked = true where fact_key = 'b'")
    await pg_pool.execute("update collection_tasks set status = 'completed', finished_at = now()")
    await run.queue.submit(wish(TaskType.CLEAR_DATA, SOURCE))
    await ClearDataTask(run.queue, run.facts, REGISTRY.owned_tables)(await claim_one(run.queue))
    assert await places(pg_pool) == {}


async def test_facts_of_an_earlier_version_are_noted_where_a_place_may_be_missing(pg_pool: Pool) -> None:
    """The migration: satellites move, and what has coordinates asks for none."""
    await Run(pg_pool).put(quake("a", place="Paris"))
    await pg_pool.execute("delete from resolved_locations")
    await pg_pool.execute(
        "insert into collected_data (source, external_key, kind, lat, lon) values"
        " ('celestrak_gp', '1', 'satellite', null, null), ('elsewhere', '1', 'k', 1, 2)"
    )
    await pg_pool.execute("insert into satellite_orbits (source, fact_key, norad_id) values ('celestrak_gp', '1', 1)")
    await pg_pool.execute("delete from derived_pending")
    text = (files("planetwire._schema") / "0024_places_again.postgres.sql").read_text()
    await pg_pool.execute(text)
    assert [tuple(row) for row in await pg_pool.fetch("select source, fact_key from derived_pending")] == [
        (SOURCE, None)
    ]
    await changes(pg_pool)
    await by_hand(pg_pool).step()
    assert await changes(pg_pool) == [("resolved_locations", "INSERT", 1)], "and nothing else is written"
    assert await places(pg_pool) == {"a": PARIS}


async def messages(earth: Earth, after: int) -> list[Any]:
    rows = await earth.pool.fetch("select message from earth_broadcasts where revision > $1 order by revision", after)
    return [row[0] for row in rows]


@pytest.mark.parametrize("writer", ["psql", "resolver"])
async def test_its_own_write_alone_is_an_outbox_row_and_a_reload_of_the_layer(writer: str, earth: Earth) -> None:
    """S22, S64: no fact changes; a person's row, and one that was looked up, each reach the browser as an event."""
    pool = earth.pool
    await typed(pool, "a", {"place": "Paris"})
    await by_hand(pool).step()
    await pool.execute("delete from resolved_locations")

    async def quiet() -> bool:
        return not await pool.fetchval("select exists (select from earth_data_change_events where consumed_at is null)")

    await until(quiet)
    at = await pool.fetchval("select coalesce(max(revision), 0) from earth_broadcasts")
    if writer == "psql":
        await pool.execute(
            "insert into resolved_locations (source, fact_key, method, lat, lon, locked)"
            " values ('usgs_quakes', 'a', 'manual', 1, 2, true)"
        )
    else:
        await pool.execute("insert into derived_pending (source, fact_key) values ('usgs_quakes', 'a')")
        loop = asyncio.ensure_future(by_hand(pool).run())
        await until(lambda: _there(pool))
        await end_all([loop])
    await until(lambda: _told(earth, at))
    [message] = await messages(earth, at)
    assert (message["layers"], message["refresh_strategy"], message["table"], message["operation"]) == (
        ["earthquakes"], "reload", "resolved_locations", "INSERT",
    )  # fmt: skip
    rows = await pool.fetch(
        "select table_name, operation, source, records_processed from earth_data_change_events"
        " where id > (select max(id) - 1 from earth_data_change_events)"
    )
    assert [tuple(row) for row in rows] == [("resolved_locations", "INSERT", SOURCE, 1)]


async def _there(pool: Pool) -> bool:
    return bool(await pool.fetchval("select exists (select from resolved_locations)"))


async def _told(earth: Earth, after: int) -> bool:
    return bool(await messages(earth, after))
