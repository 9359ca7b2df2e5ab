"""What a hostile body costs a declared source is bounded: counted in calls and records, not timed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from counted import SLACK, calls
from declarations import AT, declared, faults_of, feed_of
from planetwire.collect.feeds import FactFeed
from planetwire.collect.formats.records import MAX_RECORD_BYTES, MAX_RECORDS
from planetwire.collect.http.marks import check_marks
from planetwire.declared.faults import DeclarationFaults
from planetwire.declared.feed import CELLS_MAX
from planetwire.declared.formats.json_source import WHOLE_BYTES_MAX
from planetwire.declared.model import FIELDS_MAX
from planetwire.errors import FeedError

ID = {"id": "$.id"}


def json_feed(records: str = "$[*]", path: str = "$.x", **other: Any) -> FactFeed:
    fields = {**ID, "x": {"path": path, "type": "any"}}
    return feed_of(fields=fields, records=records, place=None, **other)


def table(kind: str, **other: Any) -> FactFeed:
    return feed_of(kind=kind, fields={"id": "id"}, place=None, **other)


def xml(path: str = ".//x") -> FactFeed:
    return feed_of(kind="http_xml", records="//item", fields={"id": "@id", "x": path}, place=None)


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"x": value}
    return value


BODIES: dict[str, tuple[FactFeed, Callable[[int], bytes]]] = {
    "records": (json_feed(), lambda n: orjson.dumps([{"id": i, "x": i} for i in range(n)])),
    "one key": (json_feed(), lambda n: orjson.dumps([{"id": 1, "x": i} for i in range(n)])),
    "read as a whole": (json_feed("$.a.b[*]"), lambda n: orjson.dumps({"a": {"b": [{"id": i} for i in range(n)]}})),
    "deep descent": (json_feed(path="$..y"), lambda n: orjson.dumps([{"id": i, "x": nested(20)} for i in range(n)])),
    "wide filter": (
        json_feed(path="$.x[?count(@.*) > 9]"),
        lambda n: orjson.dumps([{"id": 1, "x": [{"a": i} for i in range(n)]}]),
    ),
    "broken records": (json_feed(), lambda n: b"[" + b",".join(b'{"id":%d,"x":oops}' % i for i in range(n)) + b"]"),
    "rows": (table("http_csv"), lambda n: b"id\n" + b"".join(b"%d\n" % i for i in range(n))),
    "wrong rows": (table("http_csv"), lambda n: b"id\n" + b"".join(b"%d,\n" % i for i in range(n)) + b"1\n"),
    "open quotes": (table("http_csv"), lambda n: b"id\n" + b"".join(b'"%d\n' % i for i in range(n))),
    "cells": (table("http_text_table"), lambda n: b"id x\n" + b"".join(b"%d 1\n" % i for i in range(n))),
    "elements": (xml(), lambda n: b"<a>" + b"".join(b'<item id="%d"><x/></item>' % i for i in range(n)) + b"</a>"),
    "nothing found": (xml(".//y[@a='b']"), lambda n: b'<a><item id="1">' + b"<x><y/></x>" * n + b"</item></a>"),
}


@pytest.mark.parametrize("name", BODIES)
def test_twice_the_body_costs_at_most_twice_the_work(name: str) -> None:
    feed, body = BODIES[name]
    for _ in range(2):  # caches of the first round
        feed.parse(body(10), AT)
    once, twice = (calls(lambda size=size: _tried(feed, body(size))) for size in (400, 800))  # type: ignore[misc]
    assert twice <= 2 * once * SLACK, (once, twice)


def _tried(feed: FactFeed, body: bytes) -> None:
    try:
        feed.parse(body, AT)
    except FeedError as error:
        assert error.code == "bad_body"


@pytest.mark.parametrize("depth", [90, 200, 900, 30_000])
def test_depth_costs_a_record_and_never_the_reader(depth: int) -> None:
    for records in ("$[*]", "$.a.b[*]", "$..r"):
        body = b'{"id":1,"x":' + b'{"x":' * depth + b"1" + b"}" * depth + b"}"
        whole = {"$[*]": b"[%b]", "$.a.b[*]": b'{"a":{"b":[%b]}}', "$..r": b'[{"r":%b}]'}[records] % body
        for path in ("$.x", "$..y", "$..*"):
            try:
                parsed = json_feed(records, path).parse(whole, AT)
            except FeedError as error:
                assert error.code == "bad_body"
            else:
                assert len(parsed.rows) + len(parsed.rejects) <= depth + 1


def test_a_body_has_at_most_so_many_records_in_every_format() -> None:
    count = MAX_RECORDS + 1
    bodies = {
        json_feed(): b"[" + b"{}," * count + b"{}]",
        json_feed("$.a.b[*]"): b'{"a":{"b":[' + b"{}," * count + b"{}]}}",
        table("http_csv"): b"id\n" + b"1\n" * count,
        table("http_text_table"): b"id\n" + b"1\n" * count,
        xml(): b"<a>" + b"<item/>" * count + b"</a>",
    }
    for feed, body in bodies.items():
        with pytest.raises(FeedError, match="records in one body"):
            feed.parse(body, AT)


def test_a_record_has_a_size_and_a_declaration_has_a_number_of_fields() -> None:
    big = b'[{"id":1,"x":"' + b"x" * MAX_RECORD_BYTES + b'"},{"id":2}]'
    parsed = json_feed().parse(big, AT)
    assert [one.code for one in parsed.rejects] == ["too_large"] and len(parsed.rows) == 1
    wide = {**ID, **{f"f{n}": "$.x" for n in range(FIELDS_MAX)}}
    with pytest.raises(DeclarationFaults) as caught:
        declared(fields=wide, place=None)
    assert [one.code for one in caught.value.faults] == ["bad_value"]


def test_many_fields_of_many_records_are_bounded_together() -> None:
    """A small body of empty records must not become hundreds of megabytes of nulls."""
    wide = {**ID, **{f"f{n}": "$.x" for n in range(FIELDS_MAX - 1)}}
    feed, most = feed_of(fields=wide, place=None), CELLS_MAX // FIELDS_MAX
    assert len(feed.parse(orjson.dumps([{"id": n} for n in range(most)]), AT).rows) == most
    with pytest.raises(FeedError, match="so many fields"):
        feed.parse(orjson.dumps([{"id": n} for n in range(most + 1)]), AT)


def test_a_path_that_needs_the_body_as_a_whole_takes_a_smaller_one() -> None:
    body = b'{"a":{"b":[' + b" " * WHOLE_BYTES_MAX + b"]}}"
    with pytest.raises(FeedError, match="at most"):
        json_feed("$.a.b[*]").parse(body, AT)


def test_a_body_of_sixteen_mebibytes_is_read_in_its_places() -> None:
    """As many values as the client lets pass."""
    size = 16 * 1024 * 1024
    one = b'{"id":%d,"x":"' + b"x" * 500 + b'"}'
    body = b"[" + b",".join(one % n for n in range(size // 540)) + b"]"
    assert size * 0.9 < len(body) <= size
    check_marks(body, size)
    parsed = json_feed().parse(body, AT)
    assert parsed.complete and len(parsed.rows) == size // 540


def test_a_long_text_of_a_declaration_is_refused_unread() -> None:
    assert [one.code for one in faults_of("# x\n" * 20_000).faults] == ["too_large"]
