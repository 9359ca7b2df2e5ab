"""Readings of runway sensors: which bodies are read, what a bad record costs, and what becomes of the good ones."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from planetwire.collect.feeds import check_feed
from planetwire.collect.push.ingest import normalise
from planetwire.datasets.registry import observed_sources
from planetwire.datasets.weather_stations.feed_runway import RunwayObs
from planetwire.errors import FeedError, SetupError
from planetwire.model import Parsed
from planetwire.settings import FeedSettings

SOURCES = observed_sources()

AT = datetime(2026, 5, 26, 10, 3, tzinfo=UTC)
READING: dict[str, Any] = {
    "airport": "ZSPD", "runway": "17L/35R", "time": "2026-05-26T10:02:00Z", "tdz_temp_c": 21.5, "mid_temp_c": 21.3,
    "end_temp_c": 21.2, "wind_dir_deg": 120, "wind_speed_mps": 4.1,
}  # fmt: skip


def parsed(*records: object, key: str | None = "readings") -> Parsed:
    body: object = list(records) if key is None else {key: list(records), "station_count": 1}
    return RunwayObs().parse(orjson.dumps(body), AT)


def row(**changes: object) -> dict[str, Any]:
    [one] = parsed(READING | changes).rows
    assert isinstance(one, dict)
    return one


def code(**changes: object) -> str:
    found = parsed(READING | changes)
    assert list(found.rows) == []
    return found.rejects[0].code


def test_a_reading_becomes_a_row_with_every_place_of_its_runway() -> None:
    """S183."""
    assert row() == {
        "station": "ZSPD", "city": None, "runway": "17L/35R", "obs_time": "2026-05-26T10:02:00Z", "temp_c": 21.5,
        "tdz_temp_c": 21.5, "mid_temp_c": 21.3, "end_temp_c": 21.2, "wind": {"dir_deg": 120, "speed_mps": 4.1},
        "flags": [], "corrected": False,
    }  # fmt: skip


@pytest.mark.parametrize("key", ["readings", "data", None])
def test_the_list_may_be_the_body_or_lie_under_one_of_two_names(key: str | None) -> None:
    found = parsed(READING, READING | {"runway": "16R/34L"}, key=key)
    assert (len(found.rows), list(found.rejects), found.complete) == (2, [], True)


def test_one_reading_alone_is_a_body() -> None:
    assert len(RunwayObs().parse(orjson.dumps(READING), AT).rows) == 1


def test_names_are_read_in_either_case_and_as_instruments_write_them() -> None:
    """Text for numbers, UTC without a zone, and what stands for nothing."""
    found = parsed(
        {"ICAO": "zspd", "RNO": "17l - 35r", "OTIME": "2026-05-26 10:02:00", "TDZ_TEMP": " 21.5 ", "MID_TEMP": "///",
         "END_TEMP": "-", "D10": "120", "F10": "4.10"}, key="data"
    )  # fmt: skip
    [one] = found.rows
    assert one == row(mid_temp_c=None, end_temp_c=None)


@pytest.mark.parametrize(
    ("time", "read"),
    [
        (1_779_789_720, "2026-05-26T10:02:00Z"),
        (1_779_789_720_000, "2026-05-26T10:02:00Z"),
        ("2026-05-26T18:02:00+08:00", "2026-05-26T10:02:00Z"),
        ("2026-05-26T10:02", "2026-05-26T10:02:00Z"),
    ],
)
def test_times_are_read_as_they_come(time: object, read: str) -> None:
    assert row(time=time)["obs_time"] == read


@pytest.mark.parametrize(
    "changes",
    [
        {"time": None}, {"time": "yesterday"}, {"time": 1e300}, {"time": "0001-01-01T00:00:00+14:00"}, {"time": True},
        {"runway": None}, {"runway": "00/18"}, {"runway": "37/19"}, {"runway": "17L/35R/09"}, {"runway": "x" * 5_000},
        {"airport": None}, {"airport": "Z" * 9}, {"airport": "../x", "city": "atlantis"},
        {"tdz_temp_c": 99, "mid_temp_c": None, "end_temp_c": None},
        {"tdz_temp_c": "warm", "mid_temp_c": [], "end_temp_c": {}},
    ],
)  # fmt: skip
def test_a_record_that_is_no_reading_is_one_counted_reject(changes: dict[str, object]) -> None:
    """The record beside it lives."""
    assert code(**changes) == "no_reading"
    both = parsed(READING | changes, READING)
    assert (len(both.rows), len(both.rejects)) == (1, 1)


@pytest.mark.parametrize("other", [None, 7, "x", [], [READING]])
def test_what_is_no_record_costs_itself(other: object) -> None:
    found = parsed(other, READING)
    assert (len(found.rows), len(found.rejects)) == (1, 1)


def test_a_broken_record_costs_itself_and_not_the_body() -> None:
    body = orjson.dumps({"readings": [READING, READING | {"runway": "16R/34L"}, READING | {"runway": "18/36"}]})
    found = RunwayObs().parse(body.replace(b'"runway":"16R/34L"', b'"runway":16R/34L'), AT)
    assert (len(found.rows), len(found.rejects), found.complete) == (2, 1, True)


@pytest.mark.parametrize(("value", "read"), [(-90, -90.0), (60, 60.0), (0, 0.0), (-0.4, -0.4), (60.1, None)])
def test_a_temperature_out_of_bounds_is_null_with_a_flag_where_another_is_good(value: float, read: float) -> None:
    one = row(mid_temp_c=value)
    assert one["mid_temp_c"] == read
    assert one["flags"] == ([] if read is not None else ["mid_temp_c_out_of_range"])


def test_the_point_s_temperature_is_its_own_or_the_first_of_its_places() -> None:
    assert row(temp_c=20.0)["temp_c"] == 20.0
    assert row(tdz_temp_c=None)["temp_c"] == 21.3
    assert row(tdz_temp_c=0.0)["temp_c"] == 0.0


@pytest.mark.parametrize(
    ("changes", "wind"),
    [
        ({"wind_speed_mps": None, "wind_speed_kt": 10}, {"dir_deg": 120, "speed_mps": 5.14}),
        ({"wind_dir_deg": None}, {"dir_deg": None, "speed_mps": 4.1}),
        ({"wind_speed_mps": None}, None),
        ({"wind_speed_mps": 121}, None),
        ({"wind_dir_deg": 361}, None),
        ({"wind_speed_mps": -1}, None),
    ],
)
def test_wind_is_read_within_bounds_and_never_costs_the_reading(changes: dict[str, object], wind: object) -> None:
    one = row(**changes)
    assert (one["wind"], one["temp_c"]) == (wind, 21.5)
    assert bool(one["flags"]) == (wind is None and changes != {"wind_speed_mps": None})


def test_sensors_that_are_out_are_no_error() -> None:
    found = parsed(READING | {"tdz_temp_c": None, "mid_temp_c": "//", "end_temp_c": "N/A"})
    assert (len(found.rows), list(found.rejects)) == (1, [])
    patches, skipped = RunwayObs().patches([one for one in found.rows if isinstance(one, dict)])
    assert (patches, skipped["no_temp"]) == ([], 1)


def test_the_later_of_two_readings_of_one_runway_and_time_wins() -> None:
    found = parsed(READING, READING | {"tdz_temp_c": 22.0})
    assert ([one["temp_c"] for one in found.rows], found.notes) == ([22.0], {"duplicates": 1})  # type: ignore[index]


@pytest.mark.parametrize("body", [b"<html>busy</html>", b"", b"Service unavailable", b'{"error":"x"}', b'{"data":7}'])
def test_what_is_no_list_of_readings_is_a_bad_body_or_a_reject(body: bytes) -> None:
    try:
        found = RunwayObs().parse(body, AT)
    except FeedError as error:
        assert error.code == "bad_body"
    else:
        assert (list(found.rows), len(found.rejects)) == ([], 1)


def test_all_runways_of_an_airport_and_time_are_one_patch_and_the_settling_one_is_its_temperature() -> None:
    """S144, S145, S183: what the ingest makes of it has every runway, and the one that stands for the city."""
    found = parsed(
        READING | {"runway": "35R/17L", "city": "Shanghai"},
        READING | {"runway": "16R/34L", "tdz_temp_c": 23.0},
        READING | {"time": "2026-05-26T10:01:00Z"},
        READING | {"airport": "RKPK", "runway": "18L/36R", "tdz_temp_c": 25.0},
        READING | {"airport": "KJFK"},
    )
    patches, skipped = RunwayObs().patches([one for one in found.rows if isinstance(one, dict)])
    assert [(one["obs_time"][14:16], one["city"]) for one in patches] == [
        ("01", "shanghai"), ("02", "busan"), ("02", "shanghai"),
    ]  # fmt: skip
    assert skipped["no_city"] == 1
    read = [normalise(SOURCES, one, AT) for one in patches]
    assert [one.source for one in read] == ["runway_obs"] * 3
    assert [one.payload["temp"] for one in read] == [21.5, None, 21.5]
    points = [(p["runway"], p["temp"], p["is_settlement"]) for p in read[2].payload["runway_points"]]
    assert points == [("35R/17L", 21.5, True), ("16R/34L", 23.0, False)]
    assert read[2].payload["series_key"] == "runway"
    assert read[2].payload["source_cadence_sec"] == 60


def test_a_city_that_is_named_wins_over_the_airport_s_code() -> None:
    one = row(airport="RKSS", city="seoul")
    [patch] = RunwayObs().patches([one])[0]
    assert (patch["city"], patch["payload"]["station_code"]) == ("seoul", "RKSS")
    alone = row(airport=None, city="首尔")
    assert RunwayObs().patches([alone])[0][0]["payload"]["station_code"] == "RKSI"


def test_more_runways_than_a_patch_takes_cost_the_last_ones_alone() -> None:
    names = [f"{number:02}{side}" for number in range(1, 11) for side in "LR"]
    found = parsed(*(READING | {"runway": name} for name in (*names, "17L/35R")))
    patches, skipped = RunwayObs().patches([one for one in found.rows if isinstance(one, dict)])
    assert skipped["over_runways"] == 5
    points = normalise(SOURCES, patches[0], AT).payload["runway_points"]
    assert (len(points), points[0]["runway"]) == (16, "17L/35R")


def test_without_an_address_it_cannot_be_switched_on() -> None:
    """There is nobody to ask by default."""
    check_feed(RunwayObs(), FeedSettings())
    check_feed(RunwayObs(), FeedSettings(enabled=False))
    check_feed(RunwayObs(), FeedSettings(enabled=True, url="http://127.0.0.1:9/x"))
    with pytest.raises(SetupError, match="PLANETWIRE_FEEDS__RUNWAY_OBS__URL"):
        check_feed(RunwayObs(), FeedSettings(enabled=True))


def test_the_request_names_the_hours_beside_the_operator_s_own_query() -> None:
    assert RunwayObs().url("http://h/x", (), 2) == "http://h/x?hours=2"
    assert RunwayObs().url("http://h/x?key=1", (), 24) == "http://h/x?key=1&hours=24"
