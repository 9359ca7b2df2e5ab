"""Arbitrary JSON either becomes a patch within all bounds or an InputError with a code. Nothing else happens."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from long_form import examples
from planetwire.cities import BY_KEY
from planetwire.collect.formats.obs_time import AGE_MAX, FUTURE_MAX
from planetwire.collect.push.ingest import normalise
from planetwire.datasets.registry import observed_sources
from planetwire.errors import InputError
from planetwire.facts.observations.wire import wire_body
from planetwire.observing import PLATE_PREFIX, Series

SOURCES = observed_sources()

NOW = datetime(2026, 5, 26, 10, 3, tzinfo=UTC)
KEYS = st.sampled_from(
    ["temp", "temp_c", "max_so_far", "current_max_so_far", "unit", "obs_time", "source", "station_code", "icao",
     "station_label", "series_key", "runway_points", "amos", "hourly", "local_date", "city_local_date"]
)  # fmt: skip
TEMPS = st.one_of(
    st.integers(), st.floats(), st.booleans(), st.none(), st.text(max_size=8), st.floats(-100, 70).map(str)
)
JSON = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20), st.sampled_from(sorted(BY_KEY))
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)),
    max_leaves=12,
)
TIMES = st.one_of(
    JSON, st.datetimes().map(str), st.integers(1779600000, 1779800000), st.datetimes(timezones=st.just(UTC)).map(str)
)
POINT = st.fixed_dictionaries(
    {},
    optional={
        "runway": st.one_of(st.sampled_from(["17L/35R", " 1 / 2 ", "x" * 30]), JSON),
        "rwy": JSON,
        "temp": TEMPS,
        "target_runway_max": TEMPS,
        "tdz_temp": TEMPS,
        "mid_temp": TEMPS,
        "end_temp": TEMPS,
        "is_settlement": JSON,
    },
)
POINTS = st.one_of(st.lists(POINT, max_size=20), JSON)
AMOS = st.fixed_dictionaries(
    {}, optional={"temp": TEMPS, "icao": JSON, "runway_obs": st.fixed_dictionaries({"point_temperatures": POINTS})}
)
INNER = st.dictionaries(KEYS, JSON, max_size=8).flatmap(
    lambda base: st.fixed_dictionaries(
        {},
        optional={
            "temp": TEMPS,
            "temp_c": TEMPS,
            "max_so_far": TEMPS,
            "unit": st.sampled_from(["c", "°F", "celsius"]),
            "obs_time": TIMES,
            "runway_points": POINTS,
            "amos": st.one_of(AMOS, JSON),
        },
    ).map(lambda rest: {**base, **rest})
)
PATCH = st.fixed_dictionaries(
    {"city": st.one_of(st.sampled_from(sorted(BY_KEY)), JSON)},
    optional={
        "type": st.one_of(st.sampled_from(["city_patch", "city_observation_patch.v1"]), JSON),
        "schema_version": st.one_of(st.just(1), JSON),
        "source": st.one_of(st.sampled_from(["metar", "amos"]), JSON),
        "obs_time": TIMES,
        "changes": st.one_of(INNER, JSON),
        "payload": st.one_of(INNER, JSON),
    },
)


def check(raw: object) -> None:
    try:
        patch = normalise(SOURCES, raw, NOW)
    except InputError as error:
        assert error.status == 400
        assert error.code.islower()
        assert len(error.message) < 400
        return
    assert patch.city in BY_KEY
    assert patch.obs_time is None or NOW - AGE_MAX <= patch.obs_time <= NOW + FUTURE_MAX
    assert patch.points
    for series_key, temp_c in patch.points:
        assert series_key.startswith(PLATE_PREFIX) or series_key in set(Series)
        assert math.isfinite(temp_c)
        assert -90 <= temp_c <= 60
    payload = patch.payload
    assert payload["unit"] == "celsius"
    assert payload["max_so_far"] is None or payload["max_so_far"] >= payload["temp"]
    assert len(orjson.dumps(payload)) <= 3 * 1024
    assert orjson.loads(wire_body(patch, 2, 1, "abcdef012345", is_latest=True))["payload"]["temp"] == payload["temp"]


@given(JSON)
@settings(max_examples=examples(100), deadline=None)
def test_any_json_is_a_patch_or_an_error_with_a_code(raw: object) -> None:
    """S159, S189."""
    check(raw)


@given(PATCH)
@settings(max_examples=examples(300), deadline=None)
def test_anything_shaped_like_a_patch_is_a_patch_or_an_error_with_a_code(raw: object) -> None:
    """S159, S189, S209."""
    check(raw)


def test_the_largest_patch_stays_within_the_payload_bound() -> None:
    """S209: sixteen runways with long names, and texts at their limits."""
    point = {"temp": -89.99, "tdz_temp": -89.99, "mid_temp": -89.99, "end_temp": -89.99}
    points = [{"runway": f"{n:016}", **point} for n in range(16)]
    inner = {"temp": -89.99, "station_code": "X" * 99, "station_label": "é" * 99, "runway_points": points}
    check({"city": "buenos aires", "changes": inner})
