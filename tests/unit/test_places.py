"""Where a fact without coordinates lies: what it asks for, and what a name is taken for."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planetwire.cities import fold
from planetwire.datasets.registry import layers
from planetwire.facts import gazetteer_geonames
from planetwire.facts.gazetteer_geonames import GeonamesGazetteer
from planetwire.facts.places import EARTH_M, LEAST_CONFIDENCE, Found, Placed, moved, resolve
from planetwire.layers.places import asked
from planetwire.model import Fact, PlaceAsked

GAZETTEER = GeonamesGazetteer()  # read once for all tests


def fact(data: dict[str, Any], lat: float | None = None, lon: float | None = None) -> Fact:
    return Fact("k", "kind", "title", data, lat, lon)


def at(name: str) -> tuple[float, float, float] | None:
    placed = resolve(PlaceAsked(name), GAZETTEER)
    return None if placed is None else (round(placed.lat, 1), round(placed.lon, 1), placed.confidence)


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        ({"lat": 1, "lon": 2}, (1.0, 2.0)),
        ({"lat": 0, "lng": 0}, (0.0, 0.0)),
        ({"latitude": -90.0, "longitude": 190.0}, (-90.0, -170.0)),
        ({"coordinates": [2, 1, 30]}, (1.0, 2.0)),
        ({"geometry": {"type": "Point", "coordinates": [2, 1]}}, (1.0, 2.0)),
        ({"lat": 91, "lon": 2, "latitude": 1, "longitude": 2}, (1.0, 2.0)),
    ],
)
def test_coordinates_in_the_data_are_taken_as_given(data: dict[str, Any], wanted: tuple[float, float]) -> None:
    """S22."""
    found = asked(fact({**data, "place": "Paris"}), "place")
    assert found is not None and (found.lat, found.lon) == wanted
    assert resolve(found, GAZETTEER) == Placed("given", *wanted, None, 1.0, "data")


@pytest.mark.parametrize(
    "data",
    [{"lat": 91, "lon": 2}, {"lat": "1", "lon": "2"}, {"lat": True, "lon": True}, {"lat": float("nan"), "lon": 1},
     {"coordinates": [1]}, {"coordinates": "1,2"}, {"coordinates": [None, None]}, {"geometry": 7},
     {"lat": 10**400, "lon": 1}],
)  # fmt: skip
def test_what_is_no_place_on_the_earth_is_none(data: dict[str, Any]) -> None:
    assert asked(fact(data), "place") is None
    assert asked(fact({**data, "place": "Paris"}), "place") == PlaceAsked("Paris")


def test_a_fact_with_coordinates_asks_for_nothing_and_one_of_two_is_none() -> None:
    assert asked(fact({"place": "Paris", "lat": 3, "lon": 4}, 1.0, 2.0), "place") is None
    assert asked(fact({"place": "Paris"}, 1.0), "place") == PlaceAsked("Paris")
    assert asked(fact({"place": "Paris"}, float("nan"), 2.0), "place") == PlaceAsked("Paris")


def test_a_name_is_asked_for_with_its_country_and_nothing_without_a_name() -> None:
    assert asked(fact({"place": " Paris ", "country": "FR"}), "place") == PlaceAsked("Paris, FR")
    assert asked(fact({"city": "Oslo", "place": ""}), "place", "city") == PlaceAsked("Oslo")
    nameless: list[dict[str, Any]] = [{}, {"place": 7}, {"place": "  "}, {"country": "FR"}]
    for data in nameless:
        assert asked(fact(data), "place") is None


def test_satellites_move_and_ask_for_no_place_and_every_other_layer_of_facts_does() -> None:
    asking = {
        layer.id: layer.derive(fact({"place": "Tokyo", "city": "Tokyo"})).place is not None
        for layer in layers()
        if layer.derive
    }
    assert asking == {"satellites": False, "earthquakes": True, "weather_stations": True}


@pytest.mark.parametrize(
    ("name", "lat", "lon"),
    [
        ("Paris", 48.9, 2.3), ("paris", 48.9, 2.3), ("Paris, Texas", 33.7, -95.6), ("Paris, TX, USA", 33.7, -95.6),
        ("London, Canada", 43.0, -81.2), ("Shanghai", 31.2, 121.5), ("上海", 31.2, 121.5), ("München", 48.1, 11.6),
        ("muenchen, germany", 48.1, 11.6), ("SÃO  PAULO", -23.5, -46.6), ("Fukushima, Honshu, Japan", 37.8, 140.5),
        ("Tbilisi, Georgia", 41.7, 44.8), ("Atlanta, Georgia", 33.7, -84.4), ("Ridgecrest, CA", 35.6, -117.7),
        ("北京，中国", 39.9, 116.4),
    ],
)  # fmt: skip
def test_a_town_is_found_by_its_names_and_by_what_it_lies_in(name: str, lat: float, lon: float) -> None:
    """S22."""
    found = at(name)
    assert found is not None and found[:2] == (lat, lon)
    assert LEAST_CONFIDENCE <= found[2] <= 0.95


@pytest.mark.parametrize(
    "name",
    ["", ",", "Springfield", "Cambridge", "Victoria", "Georgia", "London, Ontario", "Paris, Mars", "Atlantyda Dolna",
     "off the coast of Honshu", "x" * 5_000, "Paris, " * 100, "5 km QQ of Paris", "km N of Paris", "\x00", "%"],
)  # fmt: skip
def test_what_could_be_several_places_or_is_none_stays_unresolved(name: str) -> None:
    """S22: a wrong point is worse than none."""
    assert at(name) is None


def test_a_name_of_several_towns_is_the_largest_s_and_the_less_sure_the_more_live_in_the_others() -> None:
    sure = {name: found[2] for name in ("Paris, France", "Paris", "Birmingham", "Santiago") if (found := at(name))}
    assert list(sure.values()) == sorted(sure.values(), reverse=True) and len(set(sure.values())) == 4
    birmingham = at("Birmingham")
    assert birmingham is not None and birmingham[:2] == (52.5, -1.9)


def test_beside_a_town_is_so_far_from_it_in_that_direction() -> None:
    """As the feed of earthquakes says it."""
    town, beside = (resolve(PlaceAsked(name), GAZETTEER) for name in ("Ridgecrest, CA", "12 km NNE of Ridgecrest, CA"))
    assert town is not None and beside is not None
    north_m = math.radians(beside.lat - town.lat) * EARTH_M
    east_m = math.radians(beside.lon - town.lon) * EARTH_M * math.cos(math.radians(town.lat))
    assert math.hypot(north_m, east_m) == pytest.approx(12_000, rel=0.01)
    assert math.degrees(math.atan2(east_m, north_m)) == pytest.approx(22.5, abs=0.5)
    assert (beside.precision_m or 0) - (town.precision_m or 0) == pytest.approx(2_400, abs=101)
    miles = resolve(PlaceAsked("10 mi S of Ridgecrest, CA"), GAZETTEER)
    assert miles is not None and (town.lat - miles.lat) * math.pi / 180 * EARTH_M == pytest.approx(16_093, rel=0.01)


@given(st.floats(-90, 90), st.floats(-180, 180), st.floats(0, 9_999_000), st.floats(0, 360))
def test_whoever_moves_stays_on_the_earth(lat: float, lon: float, distance_m: float, bearing_deg: float) -> None:
    there = moved(lat, lon, distance_m, bearing_deg)
    assert -90 <= there[0] <= 90 and -180 <= there[1] <= 180


@given(st.text(max_size=60))
def test_any_text_is_a_place_or_none(name: str) -> None:
    placed = resolve(PlaceAsked(name), GAZETTEER)
    if placed is not None:
        assert -90 <= placed.lat <= 90 and -180 <= placed.lon <= 180 and 0.5 <= placed.confidence <= 1


def test_a_guess_below_the_bound_is_none() -> None:
    class Guess:
        def __init__(self, confidence: float) -> None:
            self.confidence = confidence

        def find(self, name: str) -> Found:
            return Found(1.0, 2.0, 3_000.0, self.confidence)

    assert resolve(PlaceAsked("x"), Guess(LEAST_CONFIDENCE)) == Placed("geocode", 1.0, 2.0, 3_000.0, 0.5, "geonames")
    assert resolve(PlaceAsked("x"), Guess(LEAST_CONFIDENCE - 0.001)) is None


def test_the_gazetteer_is_read_once_however_many_ask_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[int] = []

    class Counted(gazetteer_geonames._Index):
        def __init__(self) -> None:
            reads.append(1)
            self.towns, self._hashes, self._owners, self.areas = (
                one for one in (index.towns, index._hashes, index._owners, index.areas)
            )

    index = GAZETTEER._read()
    monkeypatch.setattr(gazetteer_geonames, "_Index", Counted)
    fresh = GeonamesGazetteer()
    assert reads == [], "not before a name is asked for"
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(fresh.find, ["Tokyo"] * 32))
    assert len(reads) == 1 and len({one and one.lat for one in found}) == 1


@given(st.lists(st.text(st.characters(exclude_characters="\0")), min_size=1))
def test_names_that_are_folded_together_are_those_folded_one_by_one(names: list[str]) -> None:
    assert gazetteer_geonames._folded(names) == [fold(name) for name in names]


def test_an_accent_that_becomes_a_space_is_no_part_of_a_name() -> None:
    """GeoNames has towns whose names begin with a free-standing Greek accent."""
    assert fold("\u0384A\u03ba\u03ba\u03c1\u03b1") == "a\u03ba\u03ba\u03c1\u03b1"
    assert at("\u0384A\u03ba\u03ba\u03c1\u03b1") is not None
