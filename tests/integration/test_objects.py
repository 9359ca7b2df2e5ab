"""Search and object cards over HTTP: ranked by prefix and word, bounded, and never of a thing whose fact is gone."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import pytest_asyncio
from fastapi import FastAPI

from planetwire.database.postgres import Pool
from planetwire.facts.objects_postgres import PostgresObjectStore, Q
from planetwire.layers.registry import EarthLayerAdapterRegistry
from planetwire.web.access.auth import Guard
from planetwire.web.earth.search import router
from planetwire.web.http.problems import install

MANY = 30_000
FACT = (
    "insert into collected_data (source, external_key, kind, title, data, lat, lon, observed_at)"
    " values ($1, $2, $3, $4, $5, $6, $7, '2026-11-30 12:00Z')"
)
OBJECT = (
    "insert into earth_interactables (id, layer, source, fact_key, kind, title, subtitle, lat, lon, severity)"
    " values ($1 || ':' || $2 || ':' || $3, $1, $2, $3, $4, $5, $6, $7, $8, $9)"
)


@pytest_asyncio.fixture
async def client(pg_pool: Pool) -> AsyncIterator[httpx.AsyncClient]:
    app = FastAPI()
    install(app)
    app.include_router(
        router(PostgresObjectStore(pg_pool), EarthLayerAdapterRegistry(), Guard("admin", "ingest", b"key"))
    )
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as made:
        yield made


async def satellite(pool: Pool, key: str, title: str, designator: str = "") -> None:
    await pool.execute(FACT, "celestrak_gp", key, "satellite", title, {"OBJECT_ID": designator}, None, None)
    await pool.execute(
        OBJECT, "satellites", "celestrak_gp", key, "satellite", title, f"NORAD {key} · {designator}", None, None, None
    )


async def quake(pool: Pool, key: str, title: str, magnitude: float) -> None:
    await pool.execute(FACT, "usgs_quakes", key, "earthquake", title, {"mag": magnitude}, 38.0, 142.0)
    await pool.execute(
        OBJECT, "earthquakes", "usgs_quakes", key, "earthquake", title, f"M {magnitude}", 38.0, 142.0, magnitude
    )


async def keys(client: httpx.AsyncClient, q: str, **more: Any) -> list[str]:
    answer = await client.get("/api/v1/search", params={"q": q, **more})
    assert answer.status_code == 200, answer.text
    return [item["key"] for item in answer.json()["items"]]


@pytest_asyncio.fixture
async def things(pg_pool: Pool) -> Pool:
    await satellite(pg_pool, "25544", "ISS (ZARYA)", "1998-067A")
    await satellite(pg_pool, "49044", "ISS (NAUKA)", "2021-066A")
    await satellite(pg_pool, "44713", "STARLINK-1007", "2019-074A")
    await satellite(pg_pool, "99", "COSMOS 25544 DEB", "1970-001B")
    await quake(pg_pool, "us1", "10 km SSW of Honshu, Japan", 4.5)
    await quake(pg_pool, "us2", "off the east coast of Honshu, Japan", 7.1)
    await quake(pg_pool, "us3", "<b>O'Higgins</b> & co", 3.0)
    await quake(pg_pool, "us4", "École, 日本", 2.0)
    return pg_pool


async def test_things_are_found_by_name_number_and_place_best_first(things: Pool, client: httpx.AsyncClient) -> None:
    assert await keys(client, "ISS") == ["49044", "25544"]
    assert await keys(client, "iss zar") == ["25544"]
    assert await keys(client, "25544") == ["25544", "99"]
    assert await keys(client, "1998-067a") == ["25544"]
    assert await keys(client, "starlink-10") == ["44713"]
    assert await keys(client, "1007") == ["44713"]
    assert await keys(client, "Honshu") == ["us2", "us1"]
    assert await keys(client, "honshu 7.1") == ["us2"]
    assert await keys(client, "o'higgins") == ["us3"]
    assert await keys(client, "ÉCOLE") == await keys(client, "日本") == ["us4"]
    assert await keys(client, "no such thing") == []
    assert await keys(client, "honshu", layer="satellites") == []
    assert await keys(client, "25544", limit=1) == ["25544"]


async def test_a_result_says_where_its_thing_is_on_the_globe(things: Pool, client: httpx.AsyncClient) -> None:
    (found, _) = (await client.get("/api/v1/search?q=honshu")).json()["items"]
    assert found == {
        "id": "earthquakes:usgs_quakes:us2",
        "layer": "earthquakes",
        "source": "usgs_quakes",
        "key": "us2",
        "feature": "usgs_quakes:us2",
        "kind": "earthquake",
        "title": "off the east coast of Honshu, Japan",
        "subtitle": "M 7.1",
        "lat": 38.0,
        "lon": 142.0,
        "alt_m": None,
        "severity": 7.1,
    }


@pytest.mark.parametrize("q", ["", "   ", "!?", "' | :*", "x" * 201])
async def test_a_question_without_words_is_refused(q: str, client: httpx.AsyncClient) -> None:
    answer = await client.get("/api/v1/search", params={"q": q})
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_query")


@pytest.mark.parametrize(
    "q", ["a'b", "a\\b", "a:*", "!a", "(a", "a\x00b", "\u0430\u0431", "東京", "a & | b", "ß", "İx"]
)
async def test_no_question_breaks_the_search(q: str, things: Pool, client: httpx.AsyncClient) -> None:
    assert (await client.get("/api/v1/search", params={"q": q})).status_code == 200


async def test_limits_and_layers_are_checked(client: httpx.AsyncClient) -> None:
    for query, status, code in (
        ("q=a&limit=0", 400, "bad_limit"),
        ("q=a&limit=x", 400, "bad_limit"),
        ("q=a&layer=moons", 404, "unknown_layer"),
    ):
        answer = await client.get(f"/api/v1/search?{query}")
        assert (answer.status_code, answer.json()["code"]) == (status, code)


async def test_a_card_has_the_facts_values_their_times_and_their_publisher(
    things: Pool, client: httpx.AsyncClient
) -> None:
    await things.execute(
        "insert into satellite_orbits (source, fact_key, norad_id, regime, apogee_km)"
        " values ('celestrak_gp', '25544', 25544, 'LEO', 420)"
    )
    card = (await client.get("/api/v1/objects/satellites:celestrak_gp:25544")).json()
    assert (card["title"], card["kind"], card["feature"]) == ("ISS (ZARYA)", "satellite", "celestrak_gp:25544")
    assert card["data"] == {"OBJECT_ID": "1998-067A"}
    assert (card["orbit"]["regime"], card["orbit"]["apogee_km"]) == ("LEO", 420)
    assert card["observed_at"] == "2026-11-30T12:00:00Z"
    assert card["collected_at"].endswith("Z")
    assert card["provenance"]["publisher"].startswith("CelesTrak")
    assert (card["layer_title"], card["layer_title_zh"]) == ("Satellites", "卫星")


async def test_a_fact_typed_in_by_hand_has_a_card_at_once(pg_pool: Pool, client: httpx.AsyncClient) -> None:
    """S80."""
    await pg_pool.execute(FACT, "usgs_quakes", "a:b/c d", "earthquake", "typed in", {"mag": 5}, 1.0, 2.0)
    answer = await client.get("/api/v1/objects/" + quote("earthquakes:usgs_quakes:a:b/c d"))
    assert (answer.status_code, answer.json()["title"], answer.json()["lat"]) == (200, "typed in", 1.0)


async def test_a_place_put_right_shows_on_the_card_and_is_where_search_leads(
    things: Pool, client: httpx.AsyncClient
) -> None:
    """S79."""
    await things.execute(
        "insert into resolved_locations (source, fact_key, method, lat, lon)"
        " values ('usgs_quakes', 'us1', 'manual', 1, 2)"
    )
    card = (await client.get("/api/v1/objects/earthquakes:usgs_quakes:us1")).json()
    assert (card["lat"], card["lon"], card["place_method"]) == (1.0, 2.0, "manual")
    items = (await client.get("/api/v1/search", params={"q": "us1"})).json()["items"]
    assert [(item["key"], item["lat"], item["lon"]) for item in items] == [("us1", 1.0, 2.0)]


@pytest.mark.parametrize("name", ["earthquakes:usgs_quakes:none", "x", "::", "moons:usgs_quakes:us1", "a%00b"])
async def test_what_is_not_there_is_not_found(name: str, things: Pool, client: httpx.AsyncClient) -> None:
    answer = await client.get(f"/api/v1/objects/{name}")
    assert (answer.status_code, answer.json()["code"]) == (404, "unknown_object")


async def test_facts_decide_whatever_became_of_the_derived_rows(things: Pool, client: httpx.AsyncClient) -> None:
    """An orphan is neither found nor opened nor listed."""
    await things.execute("alter table collected_data disable trigger planet_derived_follow")
    await things.execute("delete from collected_data where external_key in ('25544', 'us2')")
    assert await things.fetchval("select count(*) from earth_interactables") == 8
    assert await keys(client, "iss") == ["49044"]
    assert await keys(client, "honshu") == ["us1"]
    assert (await client.get("/api/v1/objects/satellites:celestrak_gp:25544")).status_code == 404
    features, total = await PostgresObjectStore(things).features(None, None)
    assert (len(features), total) == (6, 6)
    assert (await PostgresObjectStore(things).features(None, 2))[1] == 6


async def test_a_new_reading_of_the_same_thing_leaves_the_list_of_objects_as_it_is(
    things: Pool, client: httpx.AsyncClient
) -> None:
    """It makes no event of theirs, so at one revision the list must not change. The card has it."""
    objects = PostgresObjectStore(things)
    before, _ = await objects.features(None, None)
    await things.execute("delete from earth_data_change_events")
    await things.execute("update collected_data set observed_at = '2026-12-01 00:00Z', data = '{}'")
    assert {row[0] for row in await things.fetch("select table_name from earth_data_change_events")} == {
        "collected_data"
    }
    after, _ = await objects.features(None, None)
    assert list(after) == list(before)
    card = (await client.get("/api/v1/objects/earthquakes:usgs_quakes:us1")).json()
    assert card["observed_at"].startswith("2026-12-01")


async def test_objects_that_an_event_names_are_fetched_together(things: Pool, client: httpx.AsyncClient) -> None:
    """Q21."""
    ids = ["satellites:celestrak_gp:25544", "earthquakes:usgs_quakes:us1", "gone"]
    items = (await client.get("/api/v1/objects", params={"ids": ids})).json()["items"]
    assert {item["id"] for item in items} == set(ids[:2])
    assert {"id", "layer", "source", "kind", "title", "lat", "lon", "observed_at", "data"} < items[0].keys()
    too_many = await client.get("/api/v1/objects", params={"ids": ["x"] * 101})
    assert (too_many.status_code, too_many.json()["code"]) == (400, "too_many_ids")


@pytest.mark.parametrize("question", ["iss", "starlink-12", "25544"])
async def test_a_search_of_many_objects_reads_an_index_and_few_facts(question: str, pg_pool: Pool) -> None:
    """Bounded by what matches, not by what there is."""
    await pg_pool.execute(
        "insert into collected_data (source, external_key, kind) select 'celestrak_gp', n::text, 'satellite'"
        " from generate_series(1, $1::int) n",
        MANY,
    )
    await pg_pool.execute(
        "insert into earth_interactables (id, layer, source, fact_key, kind, title)"
        " select 'satellites:celestrak_gp:' || n, 'satellites', 'celestrak_gp', n, 'satellite', 'STARLINK-' || n"
        " from generate_series(1, $1::int) n",
        MANY,
    )
    await pg_pool.execute("vacuum analyze collected_data, earth_interactables")
    rows = await pg_pool.fetch(f"explain (analyze, timing off) {Q.search}", question, "x", None, 20, 8)
    plan = "\n".join(row[0] for row in rows)
    assert "earth_interactables_search" in plan, plan
    assert "Seq Scan" not in plan, plan
    looked_up = re.search(r"collected_data f .*loops=(\d+)", plan)
    assert looked_up is None or int(looked_up[1]) <= 120, plan
