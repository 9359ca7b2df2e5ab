"""Snapshots of layers: the cache, who may fill it, what a client gets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import orjson
import pytest
import pytest_asyncio
from fastapi import FastAPI
from jsonschema import Draft202012Validator

from fakes import MemoryEventLog
from planetwire.errors import BackendError
from planetwire.layers.registry import EarthLayerAdapterRegistry
from planetwire.model import Cursor
from planetwire.runtime.clock import ManualClock
from planetwire.web.access.auth import Guard
from planetwire.web.earth.layer_snapshots import LayerSnapshots
from planetwire.web.earth.visualization import router
from planetwire.web.http.problems import install
from planetwire.web.snapshots import encoded, encodings
from planetwire.web.snapshots.encodings import ENCODINGS, Encoding
from planetwire.web.stores.cache_memory import MemoryCache

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
PATH = "/api/v1/visualization/satellites"
SPEC = Path(__file__).resolve().parents[2] / "spec"
LAYERS_SCHEMA = Draft202012Validator(orjson.loads((SPEC / "http/layers.v1.schema.json").read_bytes()))


class FakeFacts:
    """The two reads of FactStore that snapshots use; can be held between query and answer, and can fail."""

    def __init__(self) -> None:
        self.rows: dict[str, list[bytes]] = {}
        self.success: dict[str, datetime] = {}
        self.reads = 0
        self.failing = False
        self.asked = asyncio.Event()
        self.go_on = asyncio.Event()
        self.go_on.set()

    def put(self, source: str, count: int, title: str = "") -> None:
        self.rows[source] = [orjson.dumps({"id": f"{source}:{n}", "title": title}) for n in range(count)]

    async def features(self, sources: Sequence[str], limit: int | None) -> tuple[Sequence[bytes], int]:
        if self.failing:
            raise BackendError("the database is away")
        self.reads += 1
        rows = [row for source in sources for row in self.rows.get(source, [])]  # the query sees this …
        self.asked.set()
        await self.go_on.wait()  # … and the answer arrives later
        return rows[:limit], len(rows)

    async def last_success(self, sources: Sequence[str]) -> Mapping[str, datetime]:
        if self.failing:
            raise BackendError("the database is away")
        return {source: self.success[source] for source in sources if source in self.success}


class Made:
    """Everything behind the routes, with handles for the tests."""

    def __init__(self, *, simulated: bool = False) -> None:
        self.facts = FakeFacts()
        self.log = MemoryEventLog()
        self.cache = MemoryCache()
        self.clock = ManualClock(NOW)
        self.snapshots = LayerSnapshots(
            self.facts,  # type: ignore[arg-type]
            EarthLayerAdapterRegistry(),
            self.log,
            self.cache,
            self.clock,
            simulated=simulated,
        )
        app = FastAPI()
        install(app)
        app.include_router(router(self.snapshots, Guard("admin", "ingest", b"key")))
        self.http = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test")

    async def get(self, path: str = PATH, **headers: str) -> httpx.Response:
        return await self.http.get(path, headers={"accept-encoding": "identity", **headers})

    async def change(self, layer: str = "satellites") -> None:
        event = self.log.append(f"layer:{layer}", layers=[layer])
        await self.snapshots.forget([event])


@pytest_asyncio.fixture
async def made() -> AsyncIterator[Made]:
    made = Made()
    yield made
    await made.http.aclose()
    await made.snapshots.aclose()


async def test_a_snapshot_names_the_cursor_and_all_features(made: Made) -> None:
    """S61, Q3; contracts §3."""
    made.facts.put("celestrak_gp", 3)
    made.facts.put("celestrak_tle", 1)
    made.facts.success["celestrak_gp"] = NOW - timedelta(hours=1)
    await made.change()
    answer = await made.get()
    assert answer.status_code == 200
    body = answer.json()
    assert {key: body[key] for key in body if key != "features"} == {
        "layer": "satellites",
        "epoch": made.log.epoch,
        "revision": 1,
        "generated_at": "2026-11-30T12:00:00Z",
        "state": "live",
        "count": 4,
        "total": 4,
        "truncated": False,
    }
    assert [feature["id"] for feature in body["features"]][-1] == "celestrak_tle:0"
    assert answer.headers["etag"].startswith(f'"{made.log.epoch}:1:')
    assert answer.headers["vary"] == "Accept-Encoding"


async def test_zero_rows_are_200_and_an_empty_list(made: Made) -> None:
    """S66."""
    answer = await made.get()
    assert (answer.status_code, answer.json()["features"], answer.json()["state"]) == (200, [], "empty")


async def test_an_unknown_layer_is_404_and_a_bad_limit_400(made: Made) -> None:
    """S67: 5xx only for our own failure."""
    unknown = await made.get("/api/v1/visualization/moons")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "unknown_layer")
    for text in ("0", "-1", "x", "1.5", "", "99999999999", "٣"):
        bad = await made.get(f"{PATH}?limit={text}")
        assert (bad.status_code, bad.json()["code"]) == (400, "bad_limit"), text


async def test_no_number_of_limits_costs_a_whole_layer_its_place(made: Made) -> None:
    made.facts.put("celestrak_gp", 3)
    await made.get()
    reads = made.facts.reads
    for limit in range(1, 400):
        assert (await made.get(f"{PATH}?limit={limit}")).status_code == 200
    after = made.facts.reads
    assert after == reads + 399
    await made.get()
    assert made.facts.reads == after, "the whole layer is still there"
    await made.get(f"{PATH}?limit=399")
    assert made.facts.reads == after, "a few of the others are too"
    await made.get(f"{PATH}?limit=1")
    assert made.facts.reads == after + 1, "but not all of them"


async def test_limits_are_read_one_at_a_time_and_follow_the_layer(made: Made) -> None:
    made.facts.put("celestrak_gp", 5)
    made.facts.go_on.clear()
    asking = [asyncio.create_task(made.get(f"{PATH}?limit={limit}")) for limit in (1, 2, 3, 3)]
    await made.facts.asked.wait()
    for _ in range(50):
        await asyncio.sleep(0)
    assert made.facts.reads == 1
    made.facts.go_on.set()
    assert [answer.json()["count"] for answer in await asyncio.gather(*asking)] == [1, 2, 3, 3]
    assert made.facts.reads == 3
    made.facts.put("celestrak_gp", 2)
    await made.change()
    assert (await made.get(f"{PATH}?limit=3")).json()["count"] == 2


async def test_a_limit_cuts_and_says_so(made: Made) -> None:
    """Contracts §3."""
    made.facts.put("celestrak_gp", 5)
    body = (await made.get(f"{PATH}?limit=2")).json()
    assert (body["count"], body["total"], body["truncated"]) == (2, 5, True)
    body = (await made.get()).json()
    assert (body["count"], body["total"], body["truncated"]) == (5, 5, False)


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
async def test_an_unchanged_layer_is_read_and_compressed_once(
    encoding: Encoding, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Contracts §3: snapshots from the cache, each coding once a revision."""
    compressed: list[str] = []
    monkeypatch.setattr(
        encoded, "compress", lambda body, asked: compressed.append(asked) or encodings.compress(body, asked)
    )
    made.facts.put("celestrak_gp", 50)
    plain = await made.get()
    packed = [await made.get(**{"accept-encoding": encoding}) for _ in range(3)]
    packed += await asyncio.gather(*(made.get(**{"accept-encoding": encoding}) for _ in range(3)))
    assert (made.facts.reads, compressed) == (1, [encoding])
    assert {answer.headers["content-encoding"] for answer in packed} == {encoding}
    assert all(answer.content == plain.content for answer in packed)
    assert {answer.headers["etag"] for answer in packed} != {plain.headers["etag"]}
    assert len({answer.headers["etag"] for answer in packed}) == 1


async def test_each_coding_has_a_tag_of_the_same_epoch_and_revision(made: Made) -> None:
    """Contracts §3: a strong tag names bytes, so what one coding's reader has is no answer in another."""
    await made.change()
    tags = {name: (await made.get(**{"accept-encoding": name})).headers["etag"] for name in ENCODINGS}
    assert len(set(tags.values())) == 3
    assert {tag.rpartition(":")[0] for tag in tags.values()} == {f'"{made.log.epoch}:1'}
    for name in ENCODINGS:
        for asked in ENCODINGS:
            answer = await made.get(**{"accept-encoding": asked, "if-none-match": tags[name]})
            assert (answer.status_code, answer.headers["vary"]) == (304 if name == asked else 200, "Accept-Encoding")


async def test_another_coding_is_kept_as_old_as_what_it_was_made_of(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S29: the event is in the log and not heard of here yet: nobody may find the old rows under it."""
    kept: list[tuple[str, int]] = []
    put = made.cache.put

    async def noting(name: str, generation: int, cursor: Cursor, body: bytes) -> bool:
        kept.append((name, cursor.revision))
        return await put(name, generation, cursor, body)

    monkeypatch.setattr(made.cache, "put", noting)
    await made.get()
    made.log.append("layer:satellites", layers=["satellites"])
    await made.get(**{"accept-encoding": "gzip"})
    assert kept == [("earth:layer:satellites:stale|identity|", 0), ("earth:layer:satellites:stale|gzip|", 0)]


async def test_many_who_ask_in_every_coding_cause_one_read(made: Made) -> None:
    """Single flight on a miss, the coding's as well as the reading's."""
    made.facts.put("celestrak_gp", 2)
    made.facts.go_on.clear()
    asked = [asyncio.create_task(made.get(**{"accept-encoding": name})) for name in ENCODINGS * 10]
    await made.facts.asked.wait()
    made.facts.go_on.set()
    answers = await asyncio.gather(*asked)
    assert made.facts.reads == 1
    assert len({answer.content for answer in answers}) == 1
    assert len({answer.headers["etag"] for answer in answers}) == 3


async def test_who_refuses_every_coding_is_told_so(made: Made) -> None:
    """RFC 9110: 406, before anything is read."""
    answer = await made.get(**{"accept-encoding": "identity;q=0"})
    assert (answer.status_code, answer.json()["code"], made.facts.reads) == (406, "no_acceptable_encoding", 0)


async def test_who_has_the_body_gets_304_without_one(made: Made) -> None:
    """Contracts §3."""
    made.facts.put("celestrak_gp", 2)
    etag = (await made.get()).headers["etag"]
    again = await made.get(**{"if-none-match": f'"other", W/{etag}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
    await made.change()
    assert (await made.get(**{"if-none-match": etag})).status_code == 200


async def test_many_who_ask_at_once_cause_one_read(made: Made) -> None:
    """Single flight on a miss."""
    made.facts.put("celestrak_gp", 2)
    made.facts.go_on.clear()
    asked = [asyncio.create_task(made.get()) for _ in range(10)]
    await made.facts.asked.wait()
    asked[0].cancel()
    made.facts.go_on.set()
    answers = await asyncio.gather(*asked[1:])
    assert made.facts.reads == 1
    assert {answer.status_code for answer in answers} == {200}


async def test_a_reader_that_began_before_an_invalidation_cannot_fill_the_cache(made: Made) -> None:
    """S29: the reader is held between query and store; the rows change and the event goes out meanwhile."""
    made.facts.put("celestrak_gp", 2, "old")
    made.facts.go_on.clear()
    slow = asyncio.create_task(made.get())
    await made.facts.asked.wait()
    made.facts.put("celestrak_gp", 1, "new")
    await made.change()
    late = asyncio.create_task(made.get())  # must not join the reader that began before
    made.facts.go_on.set()
    old, new = (await slow).json(), (await late).json()
    assert (old["revision"], old["features"][0]["title"]) == (0, "old")
    assert (new["revision"], new["features"][0]["title"]) == (1, "new")
    assert (await made.get()).json() == new
    assert made.facts.reads == 2


async def test_an_event_of_one_layer_leaves_the_others_cached(made: Made) -> None:
    """S27, S74: and one of a layer that this process does not know leaves all of them."""
    await made.get()
    await made.get("/api/v1/visualization/earthquakes")
    await made.change("earthquakes")
    await made.change("canary")
    await made.get()
    await made.get("/api/v1/visualization/earthquakes")
    assert made.facts.reads == 3
    assert (await made.get("/api/v1/visualization/earthquakes")).json()["revision"] == 1


async def test_a_failing_database_is_503_and_what_is_cached_is_still_served(made: Made) -> None:
    """S67."""
    made.facts.put("celestrak_gp", 2)
    made.facts.failing = True
    assert (await made.get()).status_code == 503
    made.facts.failing = False
    assert (await made.get()).status_code == 200
    made.facts.failing = True
    made.clock.advance(60)
    assert (await made.get()).status_code == 200


async def test_a_layer_becomes_stale_by_time_and_live_by_a_success_alone(made: Made) -> None:
    """Contracts §3: states; no event tells of either."""
    made.facts.put("usgs_quakes", 1)
    made.facts.success["usgs_quakes"] = NOW

    async def state() -> str:
        body = (await made.get("/api/v1/visualization/earthquakes")).json()
        entry = next(item for item in (await made.get("/api/v1/layers")).json()["items"] if item["id"] == "earthquakes")
        assert entry["state"] == body["state"]
        return str(body["state"])

    assert await state() == "live"
    made.clock.advance(3600)
    assert await state() == "stale"
    made.facts.success["usgs_quakes"] = NOW + timedelta(hours=1)
    made.clock.advance(10)
    assert await state() == "live"


async def test_layers_are_listed_before_any_feed_succeeded_and_without_a_database(made: Made) -> None:
    """Contracts §3."""
    answer = (await made.get("/api/v1/layers")).json()
    LAYERS_SCHEMA.validate(answer)
    items = answer["items"]
    assert [(item["id"], item["state"], item["count"]) for item in items] == [
        ("satellites", "empty", 0),
        ("earthquakes", "empty", 0),
        ("weather_stations", "empty", 0),
        ("interactables", "empty", 0),
    ]
    assert all(all(item["provenance"].values()) for item in items)
    assert items[0]["sources"] == ["celestrak_gp"]
    await made.change()
    made.facts.failing = True
    answer = (await made.get("/api/v1/layers")).json()
    LAYERS_SCHEMA.validate(answer)
    items = answer["items"]
    assert [(item["state"], item["count"]) for item in items] == [("unavailable", None), *[("empty", 0)] * 3]


async def test_the_count_is_read_again_only_after_a_change(made: Made) -> None:
    made.facts.put("celestrak_gp", 4)
    await made.get("/api/v1/layers")
    reads = made.facts.reads
    await made.get("/api/v1/layers")
    assert made.facts.reads == reads
    made.facts.put("celestrak_gp", 5)
    await made.change()
    items = (await made.get("/api/v1/layers")).json()["items"]
    assert items[0]["count"] == 5


async def test_simulated_feeds_are_called_so() -> None:
    """Architecture D10."""
    made = Made(simulated=True)
    made.facts.put("celestrak_gp", 1)
    made.facts.success["celestrak_gp"] = NOW
    assert (await made.get()).json()["state"] == "simulated"
    await made.http.aclose()
    await made.snapshots.aclose()
