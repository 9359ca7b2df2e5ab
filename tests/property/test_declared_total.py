"""Whatever a declaration or a body holds, it is read or refused in our words; nothing else is ever raised."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from declarations import AT, SMALLEST, feed_of
from long_form import examples
from planetwire.collect.feeds import FactFeed, ObservationFeed
from planetwire.declared.faults import DeclarationFaults
from planetwire.declared.formats.paths import BadPath, getter
from planetwire.declared.formats.xml_source import getter as xml_getter
from planetwire.declared.read import read
from planetwire.declared.report import examine, render
from planetwire.errors import FeedError
from planetwire.model import Fact, Parsed

ROOT = Path(__file__).resolve().parents[2]
FULL = (ROOT / "spec/sources/full.v1.yaml").read_text(encoding="utf-8")
SERIES = (ROOT / "spec/sources/series.v1.yaml").read_text(encoding="utf-8")
QUAKES = (ROOT / "src/planetwire/demo/samples/usgs_summary.geojson").read_bytes()

FIELDS: dict[str, Any] = {
    "id": "$.id",
    "x": {"path": "$.x", "unit": "degF", "nulls": ["MM", -99]},
    "at": {"path": "$.at", "type": "time"},
    "deep": "$..y",
    "lat": {"path": "$.lat", "type": "degrees"},
    "lon": {"path": "$.lon", "type": "degrees"},
}
XML_FIELDS: dict[str, Any] = {
    "id": "@id",
    "x": {"path": ".//x", "type": "number"},
    "lat": {"path": "a:lat", "type": "degrees"},
}
CSV_FIELDS: dict[str, Any] = {"id": "id", "x": {"path": "x", "unit": "km"}, "lat": {"path": "lat", "type": "degrees"}}
HKO = b"Date time,Automatic Weather Station,Air Temperature(degree Celsius)\n202612010000,HK Observatory,1\n"
PLACELESS: dict[str, Any] = {"place": None}

SEEDS: dict[str, tuple[FactFeed | ObservationFeed, bytes]] = {
    "json": (
        feed_of(fields=FIELDS, time="at", missing="gone"),
        b'[{"id":1,"x":62,"at":"2026-12-01T00:00:00Z","lat":[35,4],"lon":"5W","z":{"y":1}},{"id":2,"x":"MM"}]',
    ),
    "json below names": (feed_of(records="$.a.b[*]"), b'{"a":{"b":[{"id":1,"lat":1,"lon":2},{"id":2}]}}'),
    "json table": (feed_of(header_row=True, fields={"id": "$.a"}, **PLACELESS), b'[["a","b"],[1,2],[3,null]]'),
    "geojson": (read(FULL).feed, QUAKES),
    "csv": (feed_of(kind="http_csv", fields=CSV_FIELDS, missing="gone", **PLACELESS), b'id,x,lat\nA,1.5,"12N"\nB,,\n'),
    "series": (read(SERIES).feed, HKO),
    "split table": (feed_of(kind="http_text_table", fields=CSV_FIELDS, **PLACELESS), b"#id x lat\nA 1 2\nB MM 3\n"),
    "fixed table": (
        feed_of(
            kind="http_text_table", table={"columns": {"id": [0, 2], "x": [2, 5], "lat": [5, 9]}}, fields=CSV_FIELDS,
            **PLACELESS,
        ),
        b"header\nA  1  2\nB  x  y\n",
    ),
    "xml": (
        feed_of(kind="http_xml", records="//item", fields=XML_FIELDS, **PLACELESS),
        b'<?xml version="1.0" encoding="UTF-8"?><r xmlns:a="b"><item id="1"><x>5</x><a:lat>1</a:lat></item><item/></r>',
    ),
}  # fmt: skip

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)


def plain(parsed: Parsed) -> None:
    """What every result must be."""
    rows = [row.data | {"lat": row.lat, "lon": row.lon} if isinstance(row, Fact) else row for row in parsed.rows]
    assert orjson.loads(orjson.dumps(rows)) == rows
    keys = [row.external_key for row in parsed.rows if isinstance(row, Fact)]
    assert len(set(keys)) == len(keys)
    assert all(len(one.sample) <= 200 and one.reason and one.code for one in parsed.rejects)


def tried(name: str, body: bytes) -> None:
    try:
        plain(SEEDS[name][0].parse(body, AT))
    except FeedError as error:
        assert error.code == "bad_body"


@pytest.mark.parametrize("name", SEEDS)
@settings(max_examples=examples(60), deadline=None)
@given(body=st.binary(max_size=400))
def test_arbitrary_bytes_are_rows_or_a_bad_body(name: str, body: bytes) -> None:
    tried(name, body)


@pytest.mark.parametrize("name", SEEDS)
@settings(max_examples=examples(80), deadline=None)
@given(data=st.data())
def test_a_damaged_body_is_rows_or_a_bad_body(name: str, data: st.DataObject) -> None:
    body = bytearray(SEEDS[name][1])
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(body) - 1)) if body else 0
        body[at : at + data.draw(st.integers(0, 6))] = data.draw(st.binary(max_size=6))
    tried(name, bytes(body[: data.draw(st.integers(0, len(body)))]))


@settings(max_examples=examples(150), deadline=None)
@given(values=st.dictionaries(st.sampled_from(["id", "x", "at", "lat", "lon", "z"]), json_values))
def test_a_record_with_any_values_costs_at_most_itself(values: dict[str, Any]) -> None:
    feed = SEEDS["json"][0]
    parsed = feed.parse(json.dumps([values, {"id": "other"}]).encode(), AT)
    plain(parsed)
    assert "other" in [row.external_key for row in parsed.rows if isinstance(row, Fact)]


@settings(max_examples=examples(150), deadline=None)
@given(text=st.text(max_size=200) | st.text(alphabet="ab:-[]{}#&*!|>'\" \n,1", max_size=200))
def test_arbitrary_text_is_a_declaration_or_faults_with_places(text: str) -> None:
    try:
        read(text)
    except DeclarationFaults as faults:
        assert faults.faults and all(one.line >= 1 and one.column >= 1 and one.code for one in faults.faults)


@settings(max_examples=examples(150), deadline=None)
@given(data=st.data())
def test_a_declaration_with_anything_in_any_place_is_good_or_has_faults(data: st.DataObject) -> None:
    given_parts = json.loads(json.dumps(SMALLEST))
    parts: list[tuple[Any, Any]] = []
    waiting = [given_parts]
    while waiting:
        one = waiting.pop()
        for key in one if isinstance(one, dict) else range(len(one)):
            parts.append((one, key))
            waiting += [one[key]] if isinstance(one[key], dict | list) else []
    where, key = data.draw(st.sampled_from(range(len(parts))).map(lambda at: parts[at]))
    where[key] = data.draw(json_values)
    try:
        made = read(json.dumps(given_parts))
    except DeclarationFaults as faults:
        assert faults.faults
    else:
        render(examine(made, b'[{"id":1,"lat":1,"lon":1}]', AT))


@settings(max_examples=examples(200), deadline=None)
@given(path=st.text(alphabet="$.@[]*?()'\"abx:0-1,&|!<>=~ /{}", max_size=40), record=json_values)
def test_any_path_is_refused_or_gives_a_value(path: str, record: Any) -> None:
    for make in (lambda: getter("$" + path)(record), lambda: xml_getter(path)):
        try:
            make()
        except BadPath as bad:
            assert str(bad)
