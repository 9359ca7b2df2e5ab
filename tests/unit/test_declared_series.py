"""Declared sources of readings: temperatures of the Terminal's cities, as the ingest takes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from declarations import AT, declared, faults_of
from planetwire.collect.feeds import ObservationFeed
from planetwire.collect.push.ingest import normalise
from planetwire.datasets.registry import layers
from planetwire.declared.layer import merged
from planetwire.declared.read import Declared, read
from planetwire.observing import Freshness, Sources

SERIES = Path(__file__).resolve().parents[2] / "spec" / "sources" / "series.v1.yaml"
HKO = """\ufeffDate time,Automatic Weather Station,Air Temperature(degree Celsius)
202612011950,HK Observatory,18.6
202612011950,Lau Fau Shan,N/A
202612011950,Elsewhere,17.0
202612011940,HK Observatory,18.4
"""
FIELDS: dict[str, Any] = {
    "at": {"path": "$.at", "type": "time"},
    "code": "$.code",
    "town": "$.town",
    "temp": {"path": "$.t", "unit": "degF"},
}


def feed_of_readings(made: Declared) -> ObservationFeed:
    return made.dataset.observation_feeds[0]


def by_city(**other: Any) -> Declared:
    series = {"city": "town", "station": "code", "temperature": "temp", **other}
    return declared(fields=FIELDS, key=["code"], time="at", place=None, layer=None, series=series)


def test_readings_are_patches_that_the_ingest_takes() -> None:
    """HKO: local time of Hong Kong, a byte order mark, `N/A`; a silent station and one of no city give no patch."""
    made = read(SERIES.read_text(encoding="utf-8"))
    feed = feed_of_readings(made)
    parsed = feed.parse(HKO.encode(), AT)
    assert parsed.complete and not parsed.rejects and len(parsed.rows) == 4
    patches, skipped = feed.patches([row for row in parsed.rows if isinstance(row, dict)])
    assert skipped == {"no_city": 1, "no_temp": 1}
    assert [one["obs_time"] for one in patches] == ["2026-12-01T11:40:00Z", "2026-12-01T11:50:00Z"]
    taken = [normalise(Sources([feed.observed]), one, AT) for one in patches]
    assert [(one.city, one.source, one.payload["temp"]) for one in taken] == [
        ("hong kong", "my_weather", 18.4),
        ("hong kong", "my_weather", 18.6),
    ]
    assert taken[0].payload["series_key"] == "reference" and taken[0].payload["source_cadence_sec"] == 600
    assert made.joins == made.dataset.layer.id and "my_weather" in made.dataset.layer.readings_of
    assert not made.dataset.fact_feeds


def test_several_sources_of_readings_are_all_of_the_one_layer() -> None:
    first, second = by_city().dataset.layer, read(SERIES.read_text(encoding="utf-8")).dataset.layer
    layer = next(one for one in merged([*layers(), first, second]) if one.id == first.id)
    assert {"city_bikes", "my_weather", *layers_of_readings()} == set(layer.readings_of)


def layers_of_readings() -> set[str]:
    return {source for one in layers() for source in one.readings_of}


def test_cities_are_named_by_a_field_and_fahrenheit_becomes_celsius() -> None:
    feed = feed_of_readings(by_city())
    rows = [{"at": "2026-12-01T11:00:00Z", "code": "KLGA", "town": town, "t": 50} for town in ("NYC", "Atlantis", 5)]
    parsed = feed.parse(json.dumps(rows[:1] + [row | {"code": row["town"]} for row in rows[1:]]).encode(), AT)
    patches, skipped = feed.patches([row for row in parsed.rows if isinstance(row, dict)])
    assert [(one["city"], one["payload"]["temp"]) for one in patches] == [("new york", 10.0)]
    assert skipped == {"no_city": 2}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"t": 500}, "out_of_range"),
        ({"at": None}, "bad_time"),
        ({"code": None}, "bad_key"),
        ({"at": "x"}, "bad_time"),
    ],
)
def test_a_record_that_is_no_reading_is_one_reject(change: Any, code: str) -> None:
    good = {"at": "2026-12-01T11:00:00Z", "code": "KLGA", "town": "nyc", "t": 50}
    parsed = feed_of_readings(by_city()).parse(json.dumps([good | change, good | {"code": "X"}]).encode(), AT)
    assert [one.code for one in parsed.rejects] == [code] and len(parsed.rows) == 1


def test_stations_with_long_names_stay_apart() -> None:
    good = {"at": "2026-12-01T11:00:00Z", "town": "nyc", "t": 50}
    rows = [good | {"code": f"A station of a very long name, number {n}"} for n in (1, 2)]
    parsed = feed_of_readings(by_city()).parse(json.dumps(rows).encode(), AT)
    codes = {row["station"] for row in parsed.rows if isinstance(row, dict)}
    assert len(codes) == 2 and all(len(code) <= 16 for code in codes)


def test_freshness_is_that_of_the_declaration() -> None:
    limits = {"cadence": "1min", "fresh": "2min", "grace": "1min", "stale": "10min"}
    profile = Sources([feed_of_readings(by_city(freshness=limits)).observed]).profile("city_bikes")
    ages = (60, 119, 121, 599, 601)
    assert [profile.freshness(age) for age in ages] == [
        Freshness.FRESH, Freshness.FRESH, Freshness.DELAYED, Freshness.DELAYED, Freshness.STALE,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("unit: degC", "unit: hPa", "no_unit"),
        (", unit: degC", "", "no_unit"),
        ("hong kong,", "hong kon,", "unknown_city"),
        ("  station: station", "  station: stations", "no_field"),
        ("  cities:", "  city: station\n  cities:", "no_city"),
        ("series: reference", "series: runway", "unknown_word"),
        ("time: at", "layer: earthquakes", "no_time"),
    ],
)
def test_a_series_that_cannot_be_is_refused(old: str, new: str, code: str) -> None:
    text = SERIES.read_text(encoding="utf-8")
    assert old in text and code in [one.code for one in faults_of(text.replace(old, new, 1)).faults]
