"""Declared sources of CSV and of tables of text: headers, columns by name, and how a body ends."""

from __future__ import annotations

from typing import Any

import pytest

from declarations import AT, facts, feed_of
from planetwire.collect.feeds import FactFeed
from planetwire.errors import FeedError

NDBC = """\
#STN     LAT      LON  YYYY MM DD hh mm WDIR WSPD   GST WVHT  DPD APD MWD   PRES  PTDY  ATMP  WTMP  DEWP  VIS   TIDE
#text    deg      deg   yr mo day hr mn degT  m/s   m/s   m   sec sec degT   hPa   hPa  degC  degC  degC  nmi     ft
13002  21.000  -23.000 2026 12 01 11 00   40   7.0   MM   MM   MM  MM  MM 1013.5    MM  25.1    MM    MM   MM     MM
41001  34.700  -72.700 2026 12 01 11 50   MM    MM   MM  2.1   99 5.9  MM 1019.0  -0.4    MM  23.4  99.0   MM     MM
"""
BUOYS: dict[str, Any] = {
    "source": "buoys",
    "kind": "http_text_table",
    "table": {"header": 1, "skip": 2},
    "nulls": ["MM", 99.0],
    "fields": {
        "station": "STN",
        "lat": {"path": "LAT", "type": "degrees"},
        "lon": {"path": "LON", "type": "degrees"},
        "at": {"path": ["YYYY", "MM", "DD", "hh", "mm"], "format": "%Y %m %d %H %M"},
        "wind": {"path": "WSPD", "unit": "m/s"},
        "water_c": {"path": "WTMP", "unit": "degC"},
        "dew_c": {"path": "DEWP", "unit": "degC"},
        "period_s": {"path": "DPD", "unit": "s"},
    },
    "key": ["station"],
    "time": "at",
}


def csv_feed(**other: Any) -> FactFeed:
    fields = {"id": "id", "temp": {"path": "temp", "unit": "degC"}}
    return feed_of(**{"kind": "http_csv", "fields": fields, "place": None, **other})


def rows(feed: FactFeed, body: bytes) -> dict[str, Any]:
    return {one.external_key: one.data["temp"] for one in facts(feed.parse(body, AT))}


def test_buoys_are_read_by_the_names_of_the_header() -> None:
    """Report 70: `MM` and `99.0` are nothing. Month and minute are `MM` and `mm`."""
    parsed = feed_of(**BUOYS).parse(NDBC.encode(), AT)
    first, second = facts(parsed)
    assert parsed.complete and not parsed.rejects and not parsed.notes
    assert (first.external_key, first.lat, first.lon) == ("13002", 21.0, -23.0)
    assert first.observed_at is not None and first.observed_at.isoformat() == "2026-12-01T11:00:00+00:00"
    assert first.data == {"station": "13002", "wind": 7.0, "water_c": None, "dew_c": None, "period_s": None}
    assert second.data["water_c"] == 23.4 and second.data["dew_c"] is None and second.data["period_s"] is None


def test_columns_at_fixed_places_need_no_header_and_may_end_early() -> None:
    table = {"columns": {"id": [0, 4], "temp": [5, 10]}, "header": 0, "skip": 1, "comment": "#"}
    feed = csv_feed(kind="http_text_table", table=table)
    assert rows(feed, b"title\nAB12  12.5 x\n# note\nCD\nEF34 -0.5\n") == {"AB12": 12.5, "CD": None, "EF34": -0.5}


@pytest.mark.parametrize("head", [b"id,temp,x", b"x,temp,id", b"\xef\xbb\xbfid,x,temp", b" id , temp,x"])
def test_columns_are_found_by_name_in_any_order_and_behind_a_byte_order_mark(head: bytes) -> None:
    """Reports 63, 69."""
    names = [name.strip() for name in head.decode("utf-8-sig").split(",")]
    line = ",".join({"id": "A", "temp": "7.5", "x": "?"}[name] for name in names)
    assert rows(csv_feed(), head + b"\r\n" + line.encode() + b"\r\n") == {"A": 7.5}


def test_lines_before_the_header_and_comments_are_passed_over() -> None:
    """The cache of METAR reports begins with five such lines."""
    body = b"No errors\nNo warnings\n\n3 ms\nid,temp\n# of yesterday\nA,1\n"
    assert rows(csv_feed(csv={"skip": 3, "comment": "#"}), body) == {"A": 1.0}


def test_another_delimiter_quotation_marks_and_a_given_header() -> None:
    feed = csv_feed(csv={"delimiter": ";", "header": ["id", "note", "temp"]})
    assert rows(feed, b'A;"one; two";1\nB;"he said ""hm""";2\n') == {"A": 1.0, "B": 2.0}


def test_a_row_of_another_width_costs_itself() -> None:
    parsed = csv_feed().parse(b"id,temp\nA,1\nB\nC,3,4\nD,5\n", AT)
    assert [one.external_key for one in facts(parsed)] == ["A", "D"] and parsed.complete
    assert [(one.code, one.offset) for one in parsed.rejects] == [("broken", 1), ("broken", 2)]


@pytest.mark.parametrize(("end", "whole"), [(b"C,3\n", True), (b"C,3", False), (b"C", False)])
def test_a_body_that_may_delete_is_whole_only_with_its_last_line_end(end: bytes, whole: bool) -> None:
    assert csv_feed(missing="gone").parse(b"id,temp\nA,1\n" + end, AT).complete is whole


@pytest.mark.parametrize(("end", "whole"), [(b"C,3\n", True), (b"C,3", True), (b"C", False)])
def test_a_window_is_whole_with_a_last_line_of_the_right_width(end: bytes, whole: bool) -> None:
    assert csv_feed().parse(b"id,temp\nA,1\n" + end, AT).complete is whole


@pytest.mark.parametrize(
    "body",
    [b"Invalid MAP_KEY.\n", b"id,temperature\nA,1\n", b"<!DOCTYPE html><html>", b"\n\n", b"<html>\nid,temp\nA,1\n"],
)
def test_a_text_that_is_no_such_table_is_a_bad_body(body: bytes) -> None:
    """Reports 55, 77: an error with status 200 is no empty table, and the old data stay."""
    if not body.strip():
        assert not csv_feed().parse(body, AT).rows
        return
    with pytest.raises(FeedError) as caught:
        csv_feed().parse(body, AT)
    assert caught.value.code == "bad_body"


def test_an_empty_table_has_no_rows_and_is_whole() -> None:
    parsed = csv_feed(missing="gone").parse(b"id,temp\n", AT)
    assert parsed.complete and not parsed.rows and not parsed.rejects


def test_the_body_of_a_table_without_its_column_names_the_column() -> None:
    with pytest.raises(FeedError, match="no column temp"):
        csv_feed().parse(b"id,air\nA,1\n", AT)
