"""Facts typed in by hand with all that PostgreSQL takes: snapshots, cards, search, collects and bridges go on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import httpx
import orjson
import pytest

from fix_earth import Earth
from ledger_tools import claim_one, queue_on, wish
from planetwire.database.postgres import Pool
from planetwire.datasets.registry import layer_registry, owned_tables
from planetwire.facts import derived_postgres
from planetwire.facts.by_hand import ByHand
from planetwire.facts.by_hand_postgres import PostgresByHandFacts
from planetwire.facts.derived_postgres import Projection
from planetwire.facts.facts_postgres import PostgresFactStore
from planetwire.facts.objects_postgres import PostgresObjectStore
from planetwire.facts.stations_postgres import PostgresStations
from planetwire.model import Batch, Derivation, Derived, Fact
from planetwire.outbox.wakeup_memory import MemoryWakeup
from planetwire.runtime.clock import SystemClock
from planetwire.text import plain_json

REGISTRY = layer_registry()
DEPTH = 400
HUGE = 12345678901234567890123456789012345678901
TYPED: dict[str, dict[str, str]] = {  # by key: column → SQL
    "big": {"data": f"""'{{"mag": 1e400, "depth_km": -1e400, "x": [1e999, {HUGE}]}}'"""},
    "tiny": {"data": """'{"mag": 1e-400}'"""},
    "nan": {"lat": "'NaN'", "lon": "'NaN'"},
    "infinite": {"lat": "'Infinity'", "lon": "'-Infinity'", "observed_at": "'infinity'", "valid_until": "'-infinity'"},
    "far": {"lat": "1e300", "lon": "-1e300", "observed_at": "'294276-01-01'", "valid_until": "'4713-01-01 BC'"},
    "long ago": {"observed_at": "'-infinity'", "collected_at": "'infinity'", "created_at": "'infinity'"},
    "early": {"observed_at": "'0044-03-15 BC'", "collected_at": "'4713-01-02 BC'"},
    "scalar": {"data": "'5'"},
    "text": {"data": "to_jsonb(repeat('x', 300000))"},
    "nothing": {"data": "'null'"},
    "deep": {"data": f"(repeat('[', {DEPTH}) || repeat(']', {DEPTH}))::jsonb"},
    "deeper": {"data": """(repeat('{"a":', 3000) || '1' || repeat('}', 3000))::jsonb"""},
    "names": {"data": """'{"mag": {"a": 1}, "OBJECT_ID": [], "MEAN_MOTION": true, "NaN": "NaN"}'"""},
    "title": {"title": "(select string_agg(md5(n::text), '') from generate_series(1, 60000) n)"},
    "kind": {"kind": "repeat('k', 100000)"},
    "orbit": {"data": """'{"NORAD_CAT_ID": 1, "MEAN_MOTION": 1e-200, "ECCENTRICITY": 0.5}'"""},
    "number": {"data": """'{"NORAD_CAT_ID": 1e300, "MEAN_MOTION": 15, "ECCENTRICITY": 0.1, "BSTAR": 1e308}'"""},
    "freshness": {"data": """'{"fresh_s": 1e400, "wait_s": -1e400, "stale_s": 1e400}'"""},
    "": {},
    "k\u2028\U0001f30d": {},
}  # fmt: skip
SOURCES = ("usgs_quakes", "celestrak_gp", "city_observation")
TOKENS = (
    b":NaN",
    b":Infinity",
    b":-Infinity",
    b'"lat":"NaN"',
    b'"lat":"Infinity"',
    b'"lon":"NaN"',
    b'"lon":"-Infinity"',
)


async def type_in(pool: Pool) -> None:
    for source in SOURCES:
        for key, columns in TYPED.items():
            names = {"kind": "'earthquake'"} | columns
            await pool.execute(
                f"insert into collected_data (source, external_key, {', '.join(names)})"
                f" values ('{source}', $1, {', '.join(names.values())})",
                key,
            )
    await pool.execute(
        "insert into earth_interactables"
        " (id, layer, source, fact_key, lat, lon, alt_m, severity, properties, updated_at)"
        " values ('earthquakes:usgs_quakes:nan', 'earthquakes', 'usgs_quakes', 'nan', 'NaN', 'Infinity', 'NaN', 'NaN',"
        " '{\"a\": 1e400}', 'infinity')"
    )
    await pool.execute(
        "insert into satellite_orbits (source, fact_key, norad_id, name, epoch, inclination, raan)"
        " values ('celestrak_gp', 'nan', 5, 'NaN', 'infinity', 'NaN', 'Infinity')"
    )


def refused(token: str) -> Any:
    raise AssertionError(f"{token} in JSON")


def strict(body: bytes) -> Any:
    """As a browser reads it, and no number of it is infinite."""

    def finite(digits: str) -> float:
        value = float(digits)
        assert abs(value) < float("inf"), digits[:20]
        return value

    assert not any(token in body for token in TOKENS)
    return json.loads(body, parse_constant=refused, parse_float=finite, parse_int=lambda digits: int(finite(digits)))


def by_hand(pool: Pool) -> ByHand:
    return ByHand(PostgresByHandFacts(pool, Projection(REGISTRY.derivers)), MemoryWakeup(), SystemClock())


async def collect(pool: Pool, source: str, facts: Sequence[Fact], derivers: Any = REGISTRY.derivers) -> None:
    queue = queue_on(pool)
    await queue.submit(wish(source=source))
    lease = await claim_one(queue)
    store = PostgresFactStore(pool, Projection(derivers))
    async with queue.batch(lease) as tx:
        await store.upsert(tx, source, Batch(facts, complete=True), lease.job.id)
    await pool.execute(
        "update collection_tasks set status = 'completed', finished_at = now() where id = $1", lease.job.id
    )


async def test_what_was_typed_in_stops_no_later_collect_of_its_source(pg_pool: Pool) -> None:
    """Its derived rows are caught up at the end of a run: a fact at fault is passed by, the others are found."""
    await type_in(pg_pool)
    for source in SOURCES:
        await collect(pg_pool, source, [Fact("good", "k", "Kyoto", {"mag": 5.0}, 1.0, 2.0)])
        derived = await pg_pool.fetchval(
            "select count(*) from earth_interactables i where source = $1 and layer <> 'interactables'", source
        )
        assert derived == len(TYPED) + 1
    numbers = await pg_pool.fetch("select lat, lon, alt_m, severity from earth_interactables where fact_key <> 'nan'")
    assert all(value is None or abs(value) < float("inf") for row in numbers for value in row)


async def test_what_was_typed_in_is_derived_by_hand_too(pg_pool: Pool) -> None:
    await type_in(pg_pool)
    await by_hand(pg_pool).step()
    assert await pg_pool.fetchval("select count(*) from derived_pending") == 0
    assert await pg_pool.fetchval("select count(*) from earth_interactables") >= len(SOURCES) * len(TYPED)


async def test_snapshots_of_it_are_json_without_a_number_that_is_none(pg_pool: Pool) -> None:
    await type_in(pg_pool)
    features, total = await PostgresFactStore(pg_pool).features(SOURCES, None)
    assert total == len(features) == len(SOURCES) * len(TYPED)
    read = {one["id"]: one for one in map(strict, features)}
    assert all(isinstance(one["data"], dict) for one in read.values())
    for key in ("nan", "infinite", "far"):
        assert (read[f"usgs_quakes:{key}"]["lat"], read[f"usgs_quakes:{key}"]["lon"]) == (None, None)
    assert read["usgs_quakes:big"]["data"]["mag"] is None
    assert read["usgs_quakes:big"]["data"]["x"] == [None, float(HUGE)]
    for key in ("infinite", "far", "long ago", "early"):
        assert read[f"usgs_quakes:{key}"]["observed_at"] is None
    await by_hand(pg_pool).step()
    objects, _ = await PostgresObjectStore(pg_pool).features(None, None)
    assert all(strict(one) for one in objects)


async def test_every_card_and_search_answers(earth: Earth) -> None:
    """Also for objects and orbits that were themselves typed in."""
    await type_in(earth.pool)
    await by_hand(earth.pool).step()
    layers = {"usgs_quakes": "earthquakes", "celestrak_gp": "satellites", "city_observation": "weather_stations"}
    async with httpx.AsyncClient(base_url=earth.url) as client:
        for source, layer in layers.items():
            for key in TYPED:
                answer = await client.get(f"/api/v1/objects/{layer}:{source}:{key}")
                assert answer.status_code == 200, (source, key, answer.text[:200])
                strict(answer.content)
            snapshot = await client.get(f"/api/v1/visualization/{layer}")
            assert snapshot.status_code == 200
            assert not any(token in snapshot.content for token in TOKENS)
        assert (await client.get("/api/v1/search", params={"q": "norad"})).status_code == 200
        assert (await client.get("/api/v1/layers")).status_code == 200
        assert (await client.get("/api/v1/diagnostics")).status_code == 200
    card = (await PostgresObjectStore(earth.pool, owned_tables()).card("satellites:celestrak_gp:nan")) or {}
    assert card["orbit"] is None or (card["orbit"]["name"], card["orbit"]["raan"]) == ("NaN", None)


async def test_the_stations_of_the_globe_go_on_beside_it(pg_pool: Pool) -> None:
    await type_in(pg_pool)
    stations = PostgresStations(pg_pool, PostgresFactStore(pg_pool), "city_observation")
    ages = await stations.ages()
    assert "nan" in ages and "early" not in ages and all(ago_s >= 0 for ago_s in ages.values())
    await pg_pool.execute("update collected_data set observed_at = now() where external_key = 'freshness'")
    assert list(await stations.age([])) == ["freshness"]


async def test_a_fact_that_cannot_be_derived_or_stored_is_put_aside_alone(
    pg_pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault of ours, or a value that no column takes: the other facts of the batch, and of the pages, are written."""
    monkeypatch.setattr(derived_postgres, "CATCH_UP_ROWS", 3)

    def derive(fact: Fact) -> Derived:
        if "bad" in fact.external_key:
            raise ZeroDivisionError
        return Derived()

    def derivers(source: str) -> Any:
        return [Derivation("earthquakes", derive)]

    await pg_pool.execute(
        "insert into collected_data (source, external_key, kind) select 's', k, 'k' from"
        " unnest('{a,b,bad1,bad2,bad3,bad4,c,d}'::text[]) k"
    )
    unstorable = "".join(chr(0x4E00 + n) for n in range(3_000))  # too long for the index, and no two alike
    await collect(pg_pool, "s", [Fact(key, "k", "", {}) for key in ("bad5", "e", unstorable, "f")], derivers)
    facts = await pg_pool.fetchval("select count(*) from collected_data")
    derived = await pg_pool.fetch("select fact_key from earth_interactables order by fact_key")
    assert (facts, [row[0] for row in derived]) == (11, ["a", "b", "c", "d", "e", "f"])


def test_json_of_any_depth_and_size_is_read_and_written_without_exception() -> None:
    for raw in (b"1e400", b"9" * 5_000, b"[" * 100_000, b"[" * 900 + b"]" * 900, b'"\\ud800"', b"NaN", b"\xff", b""):
        orjson.loads(plain_json.dumps(plain_json.loads(raw)))
    for value in ({1: object()}, {"\ud800": "\udfff"}, [10**40, float("nan"), 10**400], {"a": {2, 3}}):
        orjson.loads(plain_json.dumps(value))
