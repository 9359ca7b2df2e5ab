"""What each layer makes of a fact: how it is found, its orbit; and facts that somebody typed in by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planetwire.datasets.registry import layer_registry
from planetwire.datasets.satellites.derive import ORBITS
from planetwire.model import Derived, Fact

REGISTRY = layer_registry()
AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
ISS: dict[str, Any] = {
    "OBJECT_ID": "1998-067A",
    "NORAD_CAT_ID": 25544,
    "MEAN_MOTION": 15.5,
    "ECCENTRICITY": 0.0005,
    "INCLINATION": 51.64,
    "RA_OF_ASC_NODE": 10.0,
    "ARG_OF_PERICENTER": 20.0,
    "MEAN_ANOMALY": 30.0,
    "BSTAR": 0.0001,
}


def derived(source: str, data: dict[str, Any], key: str = "25544", title: str = "ISS (ZARYA)") -> Derived:
    (how,) = REGISTRY.derivers(source)
    return how.derive(Fact(key, "satellite", title, data, None, None, AT))


def orbit_of(made: Derived) -> dict[str, Any]:
    """By column; empty without one."""
    row = made.rows.get(ORBITS.name, ())
    return dict(zip((column.name for column in ORBITS.columns), row, strict=True)) if row else {}


def test_a_satellite_is_found_by_its_numbers_and_has_an_orbit() -> None:
    """S22."""
    made = derived("celestrak_gp", ISS)
    assert made.subtitle == "NORAD 25544 · 1998-067A"
    orbit = orbit_of(made)
    assert [orbit[name] for name in ("norad_id", "name", "epoch", "regime")] == [25544, "ISS (ZARYA)", AT, "LEO"]
    assert orbit["period_min"] == pytest.approx(92.9, abs=0.1)
    assert 400 < orbit["perigee_km"] < orbit["apogee_km"] < 430
    assert derived("celestrak_tle", ISS) == made


@pytest.mark.parametrize(
    ("turns", "ecc", "regime"),
    [(15.5, 0.001, "LEO"), (2.0, 0.01, "MEO"), (1.0027, 0.0002, "GEO"), (2.0, 0.7, "HEO"), (1.0, 0.3, "HEO")],
)
def test_the_regime_is_the_one_that_the_page_colours(turns: float, ecc: float, regime: str) -> None:
    made = derived("celestrak_gp", {**ISS, "MEAN_MOTION": turns, "ECCENTRICITY": ecc})
    assert orbit_of(made)["regime"] == regime


def test_new_elements_of_the_same_satellite_leave_its_identity_as_it_is() -> None:
    """The rows of search are not rewritten by each new epoch."""
    first, second = derived("celestrak_gp", ISS), derived("celestrak_gp", {**ISS, "MEAN_ANOMALY": 31.0})
    assert (first.subtitle, first.properties, first.severity) == (second.subtitle, second.properties, second.severity)
    assert first.rows != second.rows


def test_a_quake_is_found_by_magnitude_and_day_and_weighs_as_much() -> None:
    """S22."""
    made = derived("usgs_quakes", {"mag": 5.44, "mag_type": "mww", "depth_km": 10.0}, "us1", "off Honshu")
    assert made.subtitle == "M 5.4 · 2026-11-30"
    assert (made.severity, made.alt_m, made.rows) == (5.44, -10_000.0, {})


def test_a_weather_station_is_found_by_airport_city_and_code_and_says_which_city_it_is_of() -> None:
    """S22: the card leads from the globe to the city's chart by these two."""
    data = {"airport": "Pudong", "icao": "ZSPD", "city": "shanghai", "name_zh": "上海", "temp_c": 21.0}
    made = derived("city_observation", data, "shanghai", "Shanghai")
    assert made.subtitle == "Pudong · ZSPD · 上海"
    assert made.properties == {"city": "shanghai", "icao": "ZSPD"}
    assert derived("city_observation", {"city": ""}, "x", "X").properties == {"city": None, "icao": None}


ANY_DATA = st.dictionaries(
    st.sampled_from([*ISS, "mag", "depth_km", "mag_type"]),
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.lists(st.none())),
)


@given(source=st.sampled_from(["celestrak_gp", "usgs_quakes"]), data=ANY_DATA)
def test_no_fact_is_too_strange(source: str, data: dict[str, Any]) -> None:
    orbit = orbit_of(derived(source, data))
    if orbit:
        assert 0 <= orbit["norad_id"] < 10**9
        assert all(value == value and abs(value) < 1e300 for value in (orbit["apogee_km"], orbit["perigee_km"]))


def test_a_source_that_nobody_maps_has_no_derived_rows() -> None:
    assert REGISTRY.derivers("nobody") == []
