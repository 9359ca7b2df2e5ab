"""Declared sources of GeoJSON, and what makes a fact of a row: keys, filters, titles, times, what is gone."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import pytest

from declarations import AT, declared, facts, feed_of
from planetwire.collect.feeds import FactFeed
from planetwire.datasets.registry import fact_feeds, layers
from planetwire.declared.layer import merged
from planetwire.declared.read import read
from planetwire.errors import FeedError
from planetwire.layers.registry import EarthLayerAdapterRegistry
from planetwire.model import Fact

FIELDS: dict[str, Any] = {"id": "$.id", "at": {"path": "$.properties.at", "type": "time"}, "mag": "$.properties.mag"}


def geo_feed(**other: Any) -> FactFeed:
    return feed_of(**{"kind": "http_geojson", "fields": FIELDS, "time": "at", "place": None, **other})


def body(*features: Any) -> bytes:
    return orjson.dumps({"type": "FeatureCollection", "features": features})


def feature(id: Any, geometry: Any = None, **properties: Any) -> Any:
    return {"type": "Feature", "id": id, "geometry": geometry, "properties": properties}


def point(lon: float, lat: float) -> Any:
    return {"type": "Point", "coordinates": [lon, lat, 3]}


def shape(kind: str, coordinates: Any) -> Any:
    return {"type": kind, "coordinates": coordinates}


@pytest.mark.parametrize(
    ("geometry", "expected"),
    [
        (point(11.5, 48.1), (48.1, 11.5)),
        (point(190, 0), (0.0, -170.0)),
        (shape("Polygon", [[[0, 0], [2, 0], [2, 4], [0, 4], [0, 0]]]), (2.0, 1.0)),
        (shape("LineString", [[170, 10], [-170, 10]]), (10.0, -180.0)),
        (shape("MultiPoint", [[-179, 0], [179, 2]]), (1.0, -180.0)),
        (None, (None, None)),
        (shape("Point", []), (None, None)),
        (shape("Point", [None, 3]), (None, None)),
        ("Point", (None, None)),
        (shape("Polygon", [[["x"]]]), (None, None)),
    ],
)
def test_a_feature_lies_at_its_point_or_in_the_middle_of_its_bounds(geometry: Any, expected: Any) -> None:
    """Report 57: a polygon is not dropped. Reports 52, 74: no geometry is no place; across ±180° the short way."""
    fact = facts(geo_feed().parse(body(feature("a", geometry)), AT))[0]
    assert (fact.lat, fact.lon) == expected


@pytest.mark.parametrize("geometry", [point(0, 91), point(500, 0), point(181, 95)])
def test_a_place_off_the_earth_costs_its_record(geometry: Any) -> None:
    """Report 39: 91N 181E is no marker."""
    parsed = geo_feed().parse(body(feature("a", geometry), feature("b")), AT)
    assert [one.external_key for one in facts(parsed)] == ["b"]
    assert [one.code for one in parsed.rejects] == ["out_of_range"]


def test_lines_and_areas_keep_their_geometry_and_a_point_among_them_is_refused() -> None:
    layer = {"title": "Cables", "title_zh": "海缆", "kind": "line"}
    line = shape("LineString", [[170.0, 0.0], [-170.0, 0.0]])
    parsed = geo_feed(layer=layer).parse(body(feature("a", line), feature("p", point(1, 1)), feature("n")), AT)
    fact = facts(parsed)[0]
    assert fact.data["geometry"] == line and fact.lat == 0.0 and abs(fact.lon or 0.0) == 180.0
    assert [one.code for one in parsed.rejects] == ["bad_geometry", "bad_geometry"]


def test_of_two_records_with_one_key_the_newer_counts_whatever_their_order() -> None:
    """Report 58, 64: the order of a body means nothing."""
    old, new = feature("a", at="2026-12-01T10:00:00Z", mag=1), feature("a", at="2026-12-01T11:00:00Z", mag=2)
    for records in ([old, new], [new, old]):
        parsed = geo_feed().parse(body(*records), AT)
        assert [one.data["mag"] for one in facts(parsed)] == [2] and parsed.notes == {"duplicates": 1}
    equal = [feature("a", at="2026-12-01T10:00:00Z", mag=n) for n in (1, 2)]
    assert facts(geo_feed().parse(body(*equal), AT))[0].data["mag"] == 2


def test_a_key_of_several_fields_is_one_text_and_a_record_without_one_is_refused() -> None:
    parsed = geo_feed(key=["id", "at"]).parse(
        body(feature(7, at="2026-12-01T10:00:00Z"), feature(8), feature(None), feature("x" * 300), feature("a\nb")), AT
    )
    assert [one.external_key for one in facts(parsed)] == ["7:2026-12-01T10:00:00Z"]
    assert {one.code for one in parsed.rejects} == {"bad_key"} and len(parsed.rejects) == 4
    assert [one.code for one in geo_feed().parse(body(feature("x" * 300), feature("a\nb")), AT).rejects] == [
        "bad_key"
    ] * 2


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ({"equals": 5}, ["b"]),
        ({"not_equals": 5}, ["a", "c", "d"]),
        ({"one_of": [1, "x"]}, ["a", "c"]),
        ({"at_least": 2}, ["b"]),
        ({"at_most": 2}, ["a"]),
        ({"at_least": 1, "at_most": 5}, ["a", "b"]),
        ({"present": True}, ["a", "b", "c"]),
        ({"present": False}, ["d"]),
        ({"equals": True}, []),
    ],
)
def test_records_that_are_not_wanted_are_left_out_and_counted(condition: Any, kept: list[str]) -> None:
    records = [feature(id, mag=mag) for id, mag in zip("abcd", [1, 5, "x", None], strict=True)]
    parsed = geo_feed(filter=[{"field": "mag", **condition}]).parse(body(*records), AT)
    assert [one.external_key for one in facts(parsed)] == kept
    assert parsed.notes.get("left_out", 0) == 4 - len(kept) and not parsed.rejects


def test_title_thing_validity_and_data_are_as_declared() -> None:
    fields = {**FIELDS, "name": "$.properties.name", "note": {"path": "$.properties.note", "stored": False}}
    feed = geo_feed(fields=fields, title="{name} ({mag})", thing="{note}", valid_for="2h")
    at = "2026-12-01T10:00:00Z"
    first, second = facts(feed.parse(body(feature("a", at=at, mag=5.0, name="Fuji", note="volcano"), feature("b")), AT))
    assert (first.title, first.kind) == ("Fuji (5)", "volcano")
    assert first.valid_until is not None and first.valid_until.hour == 12
    assert first.data == {"id": "a", "mag": 5.0, "name": "Fuji"}
    assert (second.title, second.kind, second.valid_until) == ("()", "city_bikes", None)


@pytest.mark.parametrize("missing", ["kept", "gone"])
def test_what_is_missing_is_gone_only_where_the_declaration_says_so(missing: str) -> None:
    feed = geo_feed(missing=missing)
    assert feed.sweeps is (missing == "gone")


def test_a_refused_record_whose_key_can_be_read_keeps_its_older_fact() -> None:
    fields = {**FIELDS, "mag": {"path": "$.properties.mag", "type": "number", "required": True}}
    parsed = geo_feed(fields=fields, missing="gone").parse(body(feature("a", mag=1), feature("b", mag="?")), AT)
    assert parsed.refused_keys == {"b"} and parsed.notes == {"unreadable_mag": 1}


def test_pieces_are_full_but_the_last_and_hold_what_parse_gives() -> None:
    feed, whole = geo_feed(), body(*(feature(n) for n in range(25)))
    pieces = [one for one in feed.pieces(whole, AT, 10) if one is not None]
    assert [len(one.facts) for one in pieces] == [10, 10, 5]
    assert [one.end is None for one in pieces] == [True, True, False]
    assert [fact for one in pieces for fact in one.facts] == list(feed.parse(whole, AT).rows)


def test_what_is_derived_is_what_search_declares() -> None:
    search = {"subtitle": ["mag", "at"], "properties": ["mag"], "severity": "mag", "place": ["name"]}
    fields = {**FIELDS, "name": "$.properties.name"}
    derive = declared(kind="http_geojson", fields=fields, place=None, search=search).dataset.layer.derive
    assert derive is not None
    made = derive(Fact("a", "x", "A", {"mag": 5.0, "at": "2026", "name": "Ridgecrest, CA"}))
    assert (made.subtitle, made.properties, made.severity) == ("5 · 2026", {"mag": 5.0}, 5.0)
    assert made.place is not None and made.place.name == "Ridgecrest, CA"
    assert derive(Fact("a", "x", "A", {"mag": [], "at": {}})).severity is None  # typed in by hand


def test_a_source_may_feed_a_layer_there_is_and_several_may() -> None:
    first = declared(kind="http_geojson", layer="earthquakes", provenance=None, place=None, fields=FIELDS)
    second = declared(
        source="more", kind="http_geojson", layer="earthquakes", provenance=None, place=None, fields=FIELDS
    )
    assert first.joins == second.joins == "earthquakes"
    registry = EarthLayerAdapterRegistry(merged([*layers(), first.dataset.layer, second.dataset.layer]))
    assert registry.sources_of("earthquakes") == ("usgs_quakes", "city_bikes", "more")
    assert registry.layers_of("collected_data", "more") == ("earthquakes",)
    assert [one.layer for one in registry.derivers("more")] == ["earthquakes"]


def test_the_golden_example_reads_the_quakes_that_the_hand_written_feed_reads() -> None:
    """Field by field, of the publisher's own sample."""
    root = Path(__file__).resolve().parents[2]
    sample = (root / "src/planetwire/demo/samples/usgs_summary.geojson").read_bytes()
    ours = facts(read((root / "spec/sources/full.v1.yaml").read_text()).feed.parse(sample, AT))
    theirs = facts(fact_feeds()["usgs_quakes"].parse(sample, AT))
    assert len(ours) == len(theirs) == 4
    for one, other in zip(ours, theirs, strict=True):
        assert (one.external_key, one.title, one.kind, one.lat, one.lon, one.observed_at) == (
            (other.external_key, other.title, other.kind, other.lat, other.lon, other.observed_at)
        )
        assert {key: one.data[key] for key in ("mag", "mag_type", "depth_km", "status", "tsunami")} == {
            key: other.data[key] for key in ("mag", "mag_type", "depth_km", "status", "tsunami")
        }


def test_both_shapes_of_a_table_in_json_give_the_same_series() -> None:
    """Reports 58 to 60: lists below a row of names, and objects; the order of the columns and of the rows is any."""
    fields = {
        "at": {"path": "$.time_tag", "type": "time"},
        "kp": {"path": "$.Kp", "type": "number"},
        "flag": "$.observed",
    }
    feed = feed_of(fields=fields, key=["at"], time="at", place=None, header_row=True)
    rows = [("2026-12-01 00:00:00.000", "2.67", "observed"), ("2026-12-01 03:00:00", "0.00", None)]
    tables = [
        [["time_tag", "Kp", "observed"], *map(list, rows)],
        [["observed", "time_tag", "Kp"], *([c, a, b] for a, b, c in reversed(rows))],
        [{"time_tag": a.replace(" ", "T"), "Kp": float(b), "observed": c} for a, b, c in rows],
    ]
    series = [{one.external_key: one.data["kp"] for one in facts(feed.parse(orjson.dumps(t), AT))} for t in tables]
    assert all(a == b for a, b in pairwise(series))
    assert series[0] == {"2026-12-01T00:00:00Z": 2.67, "2026-12-01T03:00:00Z": 0.0}


def test_a_member_is_named_by_its_own_name() -> None:
    """JMA: `{"11001": {"temp": [5.2, 0]}}`."""
    fields = {"station": {"member": True}, "temp": {"path": "$.temp[0]", "unit": "degC"}}
    feed = feed_of(fields=fields, key=["station"], place=None, records="$.*")
    parsed = feed.parse(b'{"11001": {"temp": [5.2, 0]}, "11016": {"temp": [null, 5]}}', AT)
    assert {one.external_key: one.data["temp"] for one in facts(parsed)} == {"11001": 5.2, "11016": None}


@pytest.mark.parametrize("raw", [b"<!DOCTYPE html><html></html>", b"  <html>", b"Service Unavailable", b"null", b'"x"'])
def test_a_page_or_a_word_instead_of_json_is_a_bad_body(raw: bytes) -> None:
    """Report 77."""
    with pytest.raises(FeedError) as caught:
        geo_feed().parse(raw, AT)
    assert caught.value.code == "bad_body"


def test_a_byte_order_mark_nan_and_names_given_twice_cost_nothing_else() -> None:
    """Report 68: NaN is no value and is never written on; of two members of one name the last counts."""
    raw = b'\xef\xbb\xbf{"features": [{"id": "a", "id": "b", "properties": {"mag": NaN}}, {"id": "c"}]}'
    parsed = geo_feed().parse(raw, AT)
    assert [(one.external_key, one.data["mag"]) for one in facts(parsed)] == [("b", None), ("c", None)]
    assert json.loads(orjson.dumps([one.data for one in facts(parsed)]))[0]["mag"] is None
