"""A field's value as publishers write it, and what a fact then holds; the numbers are those of public reports."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import Any

import pytest

from declarations import AT, facts, feed_of, field, value

UNREADABLE = object()


def read(raw: Any, **other: Any) -> Any:
    """The value, or UNREADABLE where it was counted as such."""
    body = json.dumps([{"id": 1, "x": raw}]).encode()
    parsed = field(**other).parse(body, AT)
    return UNREADABLE if parsed.notes.get("unreadable_x") else facts(parsed)[0].data["x"]


@pytest.mark.parametrize(
    ("raw", "nulls"),
    [
        ("MM", ["MM"]),  # NDBC now
        ("99.00", [99.0]),  # NDBC in archives
        ("99.0", ["99.00"]),
        ("999", [99, 999]),
        ("9999.0", [9999]),
        ("//", ["//"]),
        (-999999, [-999999]),  # USGS water services
        (-999999.0, ["-999999"]),
        ("-999999", [-999999]),
        ("N/A", ["N/A"]),
        ("", []),
        ("  ", []),
        (None, []),
        ("NaN", []),
        ("nan", []),
        ("-inf", []),
    ],
)
def test_what_stands_for_nothing_is_null_and_is_not_counted(raw: Any, nulls: list[Any]) -> None:
    """Reports 68, 70, 71."""
    parsed = field(type="number", nulls=nulls).parse(json.dumps([{"id": 1, "x": raw}]).encode(), AT)
    assert facts(parsed)[0].data["x"] is None and not parsed.notes


def test_a_null_of_the_source_holds_for_every_field() -> None:
    feed = feed_of(fields={"id": "$.id", "a": "$.a", "b": {"path": "$.b", "type": "number"}}, nulls=["MM"], place=None)
    assert facts(feed.parse(b'[{"id":1,"a":"MM","b":"MM"}]', AT))[0].data == {"id": 1, "a": None, "b": None}


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (0, 0),
        (-0.5, -0.5),
        ("3", 3.0),  # Kp as a text
        ("2.67", 2.67),
        (" 7 ", 7.0),
        ("+1.5e3", 1500.0),
        (".5", 0.5),
        ("1,5", UNREADABLE),
        ("12 km", UNREADABLE),
        ("٣", UNREADABLE),  # digits are ASCII
        (True, UNREADABLE),
        ([1], UNREADABLE),
        ({"v": 1}, UNREADABLE),
        (10**400, UNREADABLE),
        ("9" * 400, UNREADABLE),
    ],
)
def test_a_number_is_a_number_or_a_text_that_is_one(raw: Any, expected: Any) -> None:
    """Reports 59, 60: 0 is a value, and thirds are not lost. What is there and is no number is counted."""
    assert read(raw, type="number") == expected


def test_zero_is_a_value_and_not_a_gap() -> None:
    """Report 59."""
    got = value(0, type="number")
    assert got == 0 and got is not None


def test_a_comma_is_the_decimal_mark_where_the_declaration_says_so() -> None:
    assert value("-1,5", type="number", decimal=",") == -1.5


@pytest.mark.parametrize(
    ("raw", "unit", "to", "expected"),
    [
        (62, "F", None, 50 / 3),
        (71, "degF", None, 65 / 3),
        (32, "°F", None, 0.0),
        (-40, "F", None, -40.0),
        (300, "K", None, 26.85),
        (-3.2999999999999545, "wmoUnit:degC", None, -3.3),  # api.weather.gov
        (-3.2999999999999545, "unit:degC", None, -3.3),
        (185, "dC", None, 18.5),
        (10, "kt", None, 10 * 1852 / 3600),
        (36, "km/h", None, 10.0),
        (1013.25, "mb", None, 1013.25),
        (29.92, "inHg", None, 29.92 * 33.8638866667),
        (101325, "Pa", None, 1013.25),
        (35, "km", None, 35_000.0),
        (35, "km", "km", 35),
        (0.25, "ratio", None, 25.0),
        (20, "degC", "degF", 68.0),
    ],
)
def test_a_value_is_kept_in_our_unit(raw: float, unit: str, to: str | None, expected: float) -> None:
    """Reports 33, 34."""
    other = {} if to is None else {"to": to}
    assert value(raw, unit=unit, **other) == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("fahrenheit", range(-60, 131))
def test_degrees_fahrenheit_survive_the_way_there_and_back(fahrenheit: int) -> None:
    """Report 78: nothing is rounded before it is shown."""
    celsius = value(fahrenheit, unit="degF")
    assert round(value(celsius, unit="degC", to="degF"), 6) == fahrenheit


def test_float_noise_of_a_conversion_is_gone() -> None:
    """Report 34."""
    assert value(300.0, unit="K") == 26.85 and value(14, unit="degF") == -10.0


def test_a_record_may_name_its_unit_and_an_unknown_one_costs_the_value() -> None:
    """Report 33."""
    fields = {"id": "$.id", "x": {"path": "$.t.value", "unit_path": "$.t.unitCode"}}
    feed = feed_of(fields=fields, place=None)
    given = [("wmoUnit:degC", 5), ("unit:degF", 41), ("wmoUnit:parsec", 5), (None, 5), ("wmoUnit:degC", None)]
    body = json.dumps([{"id": n, "t": {"unitCode": u, "value": v}} for n, (u, v) in enumerate(given)]).encode()
    parsed = feed.parse(body, AT)
    assert [one.data["x"] for one in facts(parsed)] == [5, 5, None, None, None]
    assert parsed.notes == {"unreadable_x": 2}


@pytest.mark.parametrize(("raw", "expected"), [(5, 5), (-999.0, UNREADABLE), (100.1, UNREADABLE), (None, None)])
def test_a_value_outside_its_range_is_none_and_counted(raw: Any, expected: Any) -> None:
    assert read(raw, type="number", min=-50, max=100) == expected


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ([35, 41.5], 35 + 41.5 / 60),  # JMA
        ([139, 45.0], 139.75),
        ([-33, 30], -33.5),
        ([-0.0, 30], -0.5),
        ([10, 30, 36], 10.51),
        ([35, 61], UNREADABLE),
        ([35, -1], UNREADABLE),
        ([], UNREADABLE),
        (["35", "41.5"], 35 + 41.5 / 60),
        ("12.5N", 12.5),
        ("12.5S", -12.5),
        ("87.5W", -87.5),
        ("87.5° w", -87.5),
        ("-8.25", -8.25),
        ("north", UNREADABLE),
    ],
)
def test_degrees_come_in_several_forms(raw: Any, expected: Any) -> None:
    """Report 61."""
    got = read(raw, type="degrees")
    assert got is expected if expected is UNREADABLE else got == pytest.approx(expected)


@pytest.mark.parametrize(
    ("raw", "expected"), [(True, True), (0, False), ("yes", True), ("N", False), ("maybe", UNREADABLE), (2, UNREADABLE)]
)
def test_yes_and_no_are_read_in_words_and_numbers(raw: Any, expected: Any) -> None:
    assert read(raw, type="boolean") is expected


def test_words_are_replaced_and_others_stay_so_two_scales_are_kept_apart() -> None:
    """Report 56: `n` of one satellite beside `78` of another."""
    words = {"l": "low", "n": "nominal", "h": "high", "1": "one", "true": "yes"}
    assert [value(raw, values=words) for raw in ("n", "78", 1, True, "x")] == ["nominal", "78", "one", "yes", "x"]


@pytest.mark.parametrize(
    ("raw", "other", "expected"),
    [
        ("2026-11-29T12:00:00Z", {}, "2026-11-29T12:00:00Z"),
        ("2026-11-29T12:00:00", {}, "2026-11-29T12:00:00Z"),  # SWPC: UTC without Z
        ("2026-11-29 12:00:00.000", {}, "2026-11-29T12:00:00Z"),
        ("2026-11-29T20:00:00+08:00", {}, "2026-11-29T12:00:00Z"),
        ("2026-11-29T20:00+0800", {}, "2026-11-29T12:00:00Z"),
        ("2026-11-29 12:00:00.123456789 +0000 UTC", {}, "2026-11-29T12:00:00.123Z"),  # Go
        ("20261129T1200Z", {}, "2026-11-29T12:00:00Z"),
        ("2026-11-29", {}, "2026-11-29T00:00:00Z"),
        (1_780_000_000, {"format": "unix"}, "2026-05-28T20:26:40Z"),
        ("1780000000", {"format": "unix"}, "2026-05-28T20:26:40Z"),
        (" 1780000000500 ", {"format": "unix_ms"}, "2026-05-28T20:26:40.500Z"),
        (1_780_000_000_500, {"format": "unix_ms"}, "2026-05-28T20:26:40.500Z"),
        (1_780_000_000, {"format": "unix_ms"}, UNREADABLE),  # seconds where milliseconds belong
        (1_780_000_000_500, {"format": "unix"}, UNREADABLE),
        ("202611292000", {"format": "%Y%m%d%H%M", "zone": "Asia/Hong_Kong"}, "2026-11-29T12:00:00Z"),
        (202611292000, {"format": "%Y%m%d%H%M", "zone": "Asia/Hong_Kong"}, "2026-11-29T12:00:00Z"),
        ("29/11/2026 21:00", {"format": "%d/%m/%Y %H:%M", "zone": "Asia/Tokyo"}, "2026-11-29T12:00:00Z"),
        ("29 Nov 2026", {"format": "%d %b %Y"}, "2026-11-29T00:00:00Z"),
        ("2026-13-40", {}, UNREADABLE),
        ("0001-01-01T00:00:00Z", {}, UNREADABLE),
        ("9999-12-31T23:59:59-23:59", {}, UNREADABLE),
        ("yesterday", {}, UNREADABLE),
        ("", {}, None),
    ],
)
def test_times_are_utc_whatever_their_form(raw: Any, other: Any, expected: Any) -> None:
    assert read(raw, type="time", **other) == expected


@pytest.mark.parametrize(
    ("local", "zone", "expected"),
    [
        ("2026-03-08T01:59:00", "America/New_York", "2026-03-08T06:59:00Z"),
        ("2026-03-08T02:30:00", "America/New_York", "2026-03-08T07:30:00Z"),  # the clocks skip it
        ("2026-03-08T03:00:00", "America/New_York", "2026-03-08T07:00:00Z"),
        ("2026-11-01T01:30:00", "America/New_York", "2026-11-01T05:30:00Z"),  # the first of two
        ("2026-11-01T01:30:00-05:00", "America/New_York", "2026-11-01T06:30:00Z"),  # it says which
        ("2026-04-05T01:45:00", "Australia/Lord_Howe", "2026-04-04T14:45:00Z"),
        ("2026-07-01T12:00:00", "Asia/Kathmandu", "2026-07-01T06:15:00Z"),
    ],
)
def test_local_times_follow_the_clocks_of_their_zone(local: str, zone: str, expected: str) -> None:
    """Reports 36, 38: an hour that comes twice has two keys in UTC, one that does not exist is no duplicate day."""
    assert value(local, type="time", zone=zone) == expected


def test_date_and_time_may_lie_in_columns_of_their_own() -> None:
    """FIRMS: `521` is 05:21 and `0` is midnight."""
    at = {"path": ["$.acq_date", "$.acq_time"], "pad": [0, 4], "format": "%Y-%m-%d %H%M"}
    feed = feed_of(fields={"id": "$.id", "at": at}, time="at", place=None)
    times = ["521", 521, "0", 0, "1305", None]
    body = json.dumps([{"id": n, "acq_date": "2026-11-29", "acq_time": t} for n, t in enumerate(times)]).encode()
    found = [one.observed_at and (one.observed_at.hour, one.observed_at.minute) for one in facts(feed.parse(body, AT))]
    assert found == [(5, 21), (5, 21), (0, 0), (0, 0), (13, 5), None]


def test_a_time_that_lies_too_far_ahead_costs_its_record_and_no_later_one() -> None:
    """Report 72: one packet nine hours ahead must not block the rest."""
    at = {"path": "$.at", "type": "time", "ahead": "10min"}
    feed = feed_of(fields={"id": "$.id", "at": at}, time="at", place=None)
    body = json.dumps([{"id": 1, "at": "2026-12-01T21:00:00Z"}, {"id": 1, "at": "2026-12-01T11:59:00Z"}]).encode()
    parsed = feed.parse(body, AT)
    assert [one.observed_at for one in facts(parsed)] == [datetime(2026, 12, 1, 11, 59, tzinfo=UTC)]
    assert [one.code for one in parsed.rejects] == ["bad_time"]


def test_a_long_text_is_cut_and_a_value_is_never_a_list() -> None:
    assert len(value("x" * 5_000)) == 2_000 and read([1, 2]) is UNREADABLE
    assert all(math.isfinite(one) for one in (value(1e308), value(-1.5)))


def test_numbers_that_a_browser_would_round_are_not_taken_for_numbers() -> None:
    """An id of nineteen digits is read as a text, or not at all."""
    assert read(2**60, type="number") is UNREADABLE and value(2**60, type="text") == str(2**60)
