"""Snapshots of the terminal from given readings: headline, high, freshness, curves, local days."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from planetwire.cities import BY_KEY
from planetwire.datasets.registry import observed_sources
from planetwire.model import Json
from planetwire.observing import HEADLINE_SERIES, Freshness, Series, headline
from planetwire.runtime.clock import utc_text
from planetwire.web.terminal import snapshot

SOURCES = observed_sources()

NOW = datetime(2026, 5, 26, 10, 0, tzinfo=UTC)
SEOUL = BY_KEY["seoul"]


def reading(series_key: str, temp: float, minutes_ago: float = 0, **over: object) -> Json:
    given = {"source": "metar", "max_so_far": None, "station_code": "RKSI", "station_label": None, "revision": 1}
    return {**given, "series_key": series_key, "temp": temp, "obs_time": NOW - timedelta(minutes=minutes_ago), **over}


def test_the_headline_is_the_newest_reading_that_is_no_reference() -> None:
    """S175, F22, F23."""
    readings = [
        reading("metar", 20.0, 30),
        reading("airport_primary", 21.0, 5),
        reading("reference", 30.0),
        reading("runway:15R/33L", 33.0),
    ]
    assert (headline(readings) or {})["temp"] == 21.0
    assert headline(readings[2:]) is None
    equal = [reading("metar", 1.0, revision=7), reading("runway", 2.0, revision=8)]
    assert (headline(equal) or {})["temp"] == 2.0


def test_reference_sensors_are_the_only_series_without_a_headline() -> None:
    """S142."""
    assert set(Series) - set(HEADLINE_SERIES) == {Series.REFERENCE}


@pytest.mark.parametrize(
    ("source", "age_s", "state"),
    [
        ("amos", 180, "fresh"),
        ("amos", 181, "expected_wait"),
        ("amos", 241, "delayed"),
        ("amos", 901, "stale"),
        ("metar", 600, "fresh"),
        ("metar", 2700, "expected_wait"),
        ("metar", 4500, "delayed"),
        ("metar", 4501, "stale"),
        ("hko", 1200, "expected_wait"),
        ("mgm", 1801, "delayed"),
        ("somebody", 2701, "stale"),
        ("metar", -200, "fresh"),
        ("metar", None, "unknown"),
    ],
)
def test_freshness_follows_the_source(source: str, age_s: float | None, state: str) -> None:
    """S178."""
    assert SOURCES.profile(source).freshness(age_s) is Freshness(state)


def test_an_airport_that_reports_hourly_is_on_time_until_its_next_report_is_due() -> None:
    """S178."""
    new_york = BY_KEY["new york"]
    at = NOW - timedelta(minutes=59)
    observed = {**reading("metar", 4.0), "obs_time": at}
    assert snapshot.scan_row(SOURCES, new_york, NOW, [observed], None)["freshness"] == "expected_wait"
    assert snapshot.scan_row(SOURCES, SEOUL, NOW, [observed], None)["freshness"] == "delayed"


def test_the_limits_that_are_sent_decide_as_the_server_does() -> None:
    """S178: the page counts on by them."""
    for city in (SEOUL, BY_KEY["new york"]):
        sent = snapshot.detail(SOURCES, city, NOW, [], [], None)["freshness_limits"]
        row = snapshot.scan_row(SOURCES, city, NOW, [], None)["freshness_limits"]
        assert {**SOURCES.freshness_limits(), **row} == sent
        for source, limits in sent.items():
            own = SOURCES.profile(source, city.metar_cadence_s)
            states = [
                own.freshness(limits[key] + extra) for key in ("fresh_s", "wait_s", "stale_s") for extra in (0, 1)
            ]
            assert states[0] is Freshness.FRESH
            assert states[3:] == [Freshness.DELAYED, Freshness.DELAYED, Freshness.STALE]


def test_a_city_without_readings_is_listed_with_nulls() -> None:
    """S66, S174, S182."""
    row = snapshot.scan_row(SOURCES, SEOUL, NOW, [], None)
    assert row["city"] == "seoul"
    assert row["temp_symbol"] == "°C"
    assert [row[key] for key in ("current_temp", "current_max_so_far", "obs_time", "source")] == [None] * 4
    assert row["freshness"] == "unknown"
    assert snapshot.detail(SOURCES, SEOUL, NOW, [], [], None)["airport_primary"] is None


def test_zero_degrees_is_a_reading() -> None:
    """F28: 0 °C is not nothing."""
    row = snapshot.scan_row(SOURCES, SEOUL, NOW, [reading("metar", 0.0, 5)], (0.0, NOW))
    assert row["current_temp"] == 0.0
    assert row["current_max_so_far"] == 0.0
    assert snapshot.summary(SOURCES, SEOUL, NOW, [reading("metar", -0.5)], (0.0, NOW))["current"]["temp"] == -0.5


@pytest.mark.parametrize(
    ("key", "now", "day", "start"),
    [
        ("new york", "2026-03-08T12:00Z", "2026-03-08", "2026-03-08T05:00:00Z"),
        ("new york", "2026-11-02T04:59Z", "2026-11-01", "2026-11-01T04:00:00Z"),
        ("new york", "2026-11-02T05:00Z", "2026-11-02", "2026-11-02T05:00:00Z"),
        ("wellington", "2026-04-05T11:59Z", "2026-04-05", "2026-04-04T11:00:00Z"),
        ("lucknow", "2026-05-26T18:30Z", "2026-05-27", "2026-05-26T18:30:00Z"),
    ],
)
def test_a_day_is_the_citys_own(key: str, now: str, day: str, start: str) -> None:
    """S128, F24, F29: 23 and 25 hours, half-hour zones."""
    city, at = BY_KEY[key], datetime.fromisoformat(now)
    assert snapshot.scan_row(SOURCES, city, at, [], None)["local_date"] == day
    assert utc_text(snapshot.day_start(city, at)) == start
    assert snapshot.curve_start(city, at) <= min(snapshot.day_start(city, at), at - timedelta(hours=24))


def test_on_a_day_of_25_hours_the_curve_begins_at_midnight() -> None:
    """S128."""
    new_york, late = BY_KEY["new york"], datetime(2026, 11, 2, 4, 59, tzinfo=UTC)
    assert snapshot.curve_start(new_york, late) == datetime(2026, 11, 1, 4, tzinfo=UTC)


def test_detail_gives_a_curve_to_every_series_and_source() -> None:
    """S101, S127, S128, F23, F26."""
    yesterday = NOW - timedelta(hours=23)
    history = [
        ("metar", "metar", yesterday, 15.0),
        ("metar", "metar", NOW - timedelta(minutes=30), 20.0),
        ("runway", "amos", NOW - timedelta(minutes=2), 21.0),
        ("runway:15R/33L", "amos", NOW - timedelta(minutes=2), 22.0),
        ("metar", "awc_metar", NOW, 20.5),
    ]
    readings = [reading("runway", 21.0, 2, source="amos", station_label="Gimpo")]
    content = snapshot.detail(SOURCES, SEOUL, NOW, readings, history, (22.5, NOW))
    series = content["timeseries"]["series"]
    assert [(s["series_key"], s["source"], s["label"], len(s["points"])) for s in series] == [
        ("metar", "awc_metar", "awc_metar", 1),
        ("metar", "metar", "metar", 2),
        ("runway", "amos", "Gimpo", 1),
    ]
    assert series[1]["points"][0] == (int(yesterday.timestamp() * 1000), 15.0)
    assert [obs["temp"] for obs in content["timeseries"]["metar_today_obs"]] == [20.0, 20.5]
    assert content["timeseries"]["settlement_today_obs"] == content["timeseries"]["metar_today_obs"]
    assert content["runway_plate_history"] == {"15R/33L": [{"time": "2026-05-26T09:58:00Z", "temp": 22.0}]}
    assert content["day_high"] == {"temp": 22.5, "obs_time": "2026-05-26T10:00:00Z"}
    assert content["airport_primary"] == {
        "temp": 21.0,
        "obs_time": "2026-05-26T09:58:00Z",
        "source": "amos",
        "station_code": "RKSI",
        "series_key": "runway",
    }
    assert content["settlement_station"] == {
        "source": "metar",
        "station_code": "RKSI",
        "label": "Incheon",
        "runway": "15R/33L",
    }


def test_a_curve_with_too_many_points_keeps_the_last_of_each_minute() -> None:
    """S209: bounded by time, not by arrival."""
    every_second = [(second * 1_000, float(second)) for second in range(3_600)]
    thinned = snapshot.thin(every_second)
    assert len(thinned) == 60
    assert thinned[0] == (59_000, 59.0)
    assert snapshot.thin(every_second[:1_500]) == every_second[:1_500]


def test_fahrenheit_cities_say_so_and_still_speak_celsius() -> None:
    """S143, Q9."""
    miami = BY_KEY["miami"]
    assert snapshot.scan_row(SOURCES, miami, NOW, [reading("metar", 30.0)], None)["temp_symbol"] == "°F"
    content = snapshot.detail(SOURCES, miami, NOW, [reading("metar", 30.0)], [], None)
    assert content["unit"] == "fahrenheit"
    assert content["airport_primary"]["temp"] == 30.0
