"""The city registry: complete, agreeing with the airport database, and found under any spelling."""

from __future__ import annotations

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import airportsdata
import pytest

from planetwire.cities import BY_KEY, CITIES, by_icao, fold, resolve

AIRPORTS = airportsdata.load("ICAO")


def test_there_are_fifty_cities_with_unique_keys_ranks_and_airports() -> None:
    """S182."""
    assert len(CITIES) == 50
    assert len({city.icao for city in CITIES}) == 50
    assert [city.rank for city in CITIES] == list(range(1, 51))
    assert all(city.key == city.key.lower() and "_" not in city.key for city in CITIES)
    assert len([city for city in CITIES if city.use_fahrenheit]) == 11


@pytest.mark.parametrize("city", CITIES, ids=lambda city: city.key)
def test_airport_code_place_and_zone_agree_with_the_airport_database(city) -> None:
    """S182."""
    airport = AIRPORTS[city.icao]
    assert abs(airport["lat"] - city.lat_deg) < 0.001
    assert abs(airport["lon"] - city.lon_deg) < 0.001
    assert airport["iata"] == city.iata
    assert airport["tz"] == city.timezone
    assert ZoneInfo(city.timezone)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("hong kong", "hong kong"),
        ("hong-kong", "hong kong"),
        ("Hong_Kong", "hong kong"),
        ("hong%20kong", "hong kong"),
        ("  HONG   KONG ", "hong kong"),
        ("hk", "hong kong"),
        ("香港", "hong kong"),
        ("xianggang", "hong kong"),
        ("VHHH", "hong kong"),
        ("hkg", "hong kong"),
        ("São Paulo", "sao paulo"),
        ("sao-paulo", "sao paulo"),
        ("newyork", "new york"),
        ("nyc", "new york"),
        ("RKSS", "seoul"),
        ("lau fau shan", "shenzhen"),
        ("münchen", "munich"),
    ],
)
def test_names_resolve_alike_however_they_are_written(name: str, key: str) -> None:
    """S150."""
    city = resolve(name)
    assert city is not None
    assert city.key == key


@pytest.mark.parametrize("name", ["", " ", "atlantis", "-", "x" * 10_000, "hong kong;", "\x00"])
def test_unknown_names_resolve_to_nothing(name: str) -> None:
    """S197."""
    assert resolve(name) is None


def test_every_city_is_found_by_its_own_names() -> None:
    """S150."""
    for city in CITIES:
        for name in (city.key, city.display_name, city.display_name_zh, city.icao, city.iata, *city.aliases):
            assert resolve(name) is city, name
        assert by_icao(city.icao) is city
        assert fold(city.display_name) == city.key


@pytest.mark.parametrize(
    ("key", "day", "hours"),
    [
        ("new york", date(2026, 3, 8), 23.0),
        ("new york", date(2026, 11, 1), 25.0),
        ("wellington", date(2026, 9, 27), 23.0),
        ("wellington", date(2026, 4, 5), 25.0),
        ("tokyo", date(2026, 3, 8), 24.0),
        ("sao paulo", date(2018, 11, 4), 23.0),
    ],
)
def test_a_local_day_is_as_long_as_the_zone_says(key: str, day: date, hours: float) -> None:
    """S128."""
    city = BY_KEY[key]
    assert (city.day_end(day) - city.day_start(day)).total_seconds() == hours * 3600


def test_a_midnight_that_clocks_skip_begins_the_day_at_the_skip() -> None:
    """S128."""
    city = BY_KEY["sao paulo"]  # on 2018-11-04 the clocks went from 00:00 to 01:00
    start = city.day_start(date(2018, 11, 4))
    assert start == datetime(2018, 11, 4, 3, tzinfo=UTC)
    assert city.local(start).date() == date(2018, 11, 4)


def test_the_settlement_runway_is_known_in_either_order() -> None:
    """S145."""
    shanghai = BY_KEY["shanghai"]
    assert shanghai.is_settlement_runway("17L/35R")
    assert shanghai.is_settlement_runway("35R/17L")
    assert not shanghai.is_settlement_runway("16R/34L")
    assert not BY_KEY["london"].is_settlement_runway("09/27")
