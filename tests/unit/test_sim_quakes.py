"""The simulated earthquake bulletin: its form, its statistics, and how events change over time."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import orjson
import pytest

from planetwire.demo.providers.answer import Query
from planetwire.demo.providers.plates import BELTS, belt_at, place_of, point_on
from planetwire.demo.providers.quakes import HISTORY_EVERY, SLOT_S, Quakes, born

START_S = datetime(2026, 3, 20, 12, 0, tzinfo=UTC).timestamp()
DAY_S = 86_400
FEATURE_KEYS = [
    "mag", "place", "time", "updated", "tz", "url", "detail", "felt", "cdi", "mmi", "alert", "status", "tsunami", "sig",
    "net", "code", "ids", "sources", "types", "nst", "dmin", "rms", "gap", "magType", "type", "title",
]  # fmt: skip


def feed(quakes: Quakes, name: str, now_s: float) -> dict[str, Any]:
    answer = quakes.answer(f"/earthquakes/feed/v1.0/summary/{name}.geojson", Query({}), now_s)
    assert answer.status == 200
    collection: dict[str, Any] = orjson.loads(answer.body)
    return collection


@pytest.fixture(scope="module")
def day_later() -> tuple[Quakes, float]:
    return Quakes(1, START_S), START_S + DAY_S


def test_summary_has_the_providers_shape(day_later: tuple[Quakes, float]) -> None:
    quakes, now_s = day_later
    collection = feed(quakes, "all_day", now_s)
    assert list(collection) == ["type", "metadata", "features", "bbox"]
    assert list(collection["metadata"]) == ["generated", "url", "title", "status", "api", "count"]
    assert collection["metadata"]["count"] == len(collection["features"])
    assert collection["metadata"]["title"] == "USGS All Earthquakes, Past Day"
    for one in collection["features"]:
        assert list(one) == ["type", "properties", "geometry", "id"]
        properties = one["properties"]
        assert list(properties) == FEATURE_KEYS
        assert one["id"] == properties["net"] + properties["code"]
        assert f",{one['id']}," in properties["ids"]
        assert properties["time"] <= properties["updated"] <= now_s * 1000
        lon, lat, _ = one["geometry"]["coordinates"]
        assert -180 <= lon <= 180 and -90 <= lat <= 90
    times = [one["properties"]["time"] for one in collection["features"]]
    assert times == sorted(times, reverse=True)


def test_new_events_come_every_twenty_to_sixty_seconds() -> None:
    times = [born(1, slot).time_ms / 1000 for slot in range(45_000_000, 45_000_500)]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert min(gaps) >= 20 and max(gaps) <= 60


def test_history_before_the_start_is_as_sparse_as_the_real_feed() -> None:
    at_start = feed(Quakes(1, START_S), "all_day", START_S)["features"]
    assert 0.9 < len(at_start) / (DAY_S / SLOT_S / HISTORY_EVERY) <= 1.02
    assert len(feed(Quakes(1, START_S), "all_hour", START_S + 3_600)["features"]) > 70


def test_ten_times_fewer_events_for_each_magnitude() -> None:
    sizes = [quake.mag for quake in (born(1, slot) for slot in range(40_000)) if quake.belt.net == "ci" and quake.mag]
    ratio = sum(size >= 1.6 for size in sizes) / sum(size >= 0.6 for size in sizes)
    assert 0.08 < ratio < 0.12


def test_smaller_feeds_are_parts_of_the_larger(day_later: tuple[Quakes, float]) -> None:
    quakes, now_s = day_later
    everything = {one["id"] for one in feed(quakes, "all_day", now_s)["features"]}
    strong = feed(quakes, "2.5_day", now_s)["features"]
    assert 10 < len(strong) < len(everything) / 2
    assert {one["id"] for one in strong} <= everything
    assert all(one["properties"]["mag"] >= 2.5 for one in strong)
    month = feed(quakes, "significant_month", now_s)["features"]
    assert month and all(one["properties"]["sig"] >= 600 for one in month)


def test_events_are_corrected_reviewed_withdrawn_and_renamed() -> None:
    quakes = Quakes(1, START_S)
    first: dict[str, dict[str, Any]] = {}
    for now_s in range(int(START_S) + 60, int(START_S) + 14_400, 60):
        for one in feed(quakes, "all_hour", now_s)["features"]:
            first.setdefault(one["id"], one)
    later = feed(quakes, "all_day", START_S + 28_800)["features"]
    known = {one for event in later for one in event["properties"]["ids"].strip(",").split(",")}
    both = [(first[event["id"]], event) for event in later if event["id"] in first]
    same = [(a, b) for a, b in both if a["properties"]["status"] == "automatic"]
    assert sum(a["properties"]["mag"] != b["properties"]["mag"] for a, b in same) > 50
    assert all(b["properties"]["status"] == "reviewed" for _, b in same)
    assert all(b["properties"]["updated"] > a["properties"]["updated"] for a, b in same)
    assert 1 <= len(set(first) - known) < 30, "withdrawn"
    renamed = [event for event in later if event["id"] not in first and event["properties"]["ids"].count(",") == 3]
    assert any(set(event["properties"]["ids"].strip(",").split(",")) & set(first) for event in renamed)


def test_magnitude_place_and_depth_are_missing_now_and_then() -> None:
    quakes = Quakes(1, START_S)
    reports = [
        one
        for now_s in range(int(START_S) + 1_000, int(START_S) + 20_000, 170)
        for one in feed(quakes, "all_hour", now_s)["features"]
    ]
    assert any(one["properties"]["mag"] is None for one in reports)
    assert any(one["properties"]["place"] is None for one in reports)
    assert any(one["geometry"]["coordinates"][2] is None for one in reports)
    assert any(
        one["geometry"]["coordinates"][2] < 0 for one in reports if one["geometry"]["coordinates"][2] is not None
    )
    assert any(one["properties"]["type"] == "quarry blast" for one in reports)


def test_unchanged_events_are_the_same_body() -> None:
    quakes = Quakes(1, START_S)
    path = "/earthquakes/feed/v1.0/summary/all_hour.geojson"
    bodies = [quakes.answer(path, Query({}), START_S + 600 + second) for second in range(0, 60, 2)]
    changes = sum(a is not b for a, b in pairwise(bodies))
    assert 1 <= changes < 15
    assert quakes.answer("/earthquakes/feed/v1.0/summary/some_day.geojson", Query({}), START_S).status == 404


def test_two_servers_of_one_seed_agree_about_what_both_show() -> None:
    early, late = Quakes(1, START_S - DAY_S), Quakes(1, START_S)
    a = {one["id"]: one for one in feed(early, "all_day", START_S + 600)["features"]}
    b = {one["id"]: one for one in feed(late, "all_day", START_S + 600)["features"]}
    assert set(b) < set(a)
    assert all(a[one] == b[one] for one in b)


def test_places_are_worded_by_distance_and_bearing() -> None:
    belt = next(one for one in BELTS if one.net == "ci")
    assert place_of(belt, 35.72, -117.67) == "11 km N of Ridgecrest, CA"
    assert place_of(belt, 35.62, -117.67) == "Ridgecrest, CA"
    ridge = next(one for one in BELTS if "Ridge" in one.towns[0][0] and one.sea)
    assert place_of(ridge, 24.0, -44.0) == "northern Mid-Atlantic Ridge"
    tonga = next(one for one in BELTS if "Tonga" in one.towns[0][0])
    assert place_of(tonga, -17.7, 179.5).endswith("km E of Levuka, Fiji")
    assert belt_at(0.0) is BELTS[0] and belt_at(0.999999) is BELTS[-1]
    assert -180 <= point_on(tonga, 0.99, -300)[1] < 180
