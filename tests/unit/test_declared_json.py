"""Declared sources of JSON: where records and values are found, and what becomes of bodies that are none."""

from __future__ import annotations

import orjson
import pytest

from declarations import AT, WHO, declared, facts, feed_of
from planetwire.declared.faults import DeclarationFaults
from planetwire.errors import FeedError

BIKES = [{"id": 1, "lat": 48.1, "lon": 11.5}, {"id": 2, "lat": "12.5S", "lon": 190.0}]


def test_the_smallest_declaration_is_a_dataset_like_a_shipped_one() -> None:
    made = declared()
    assert made.source == "city_bikes" and made.joins is None
    layer = made.dataset.layer
    assert (layer.id, layer.title_zh, layer.sources) == ("city_bikes", "单车", ("city_bikes",))
    assert layer.provenance.zh is not None and layer.provenance.zh.publisher == WHO["publisher"]
    parsed = made.dataset.fact_feeds[0].parse(orjson.dumps(BIKES), AT)
    assert parsed.complete and not parsed.rejects
    found = [(one.external_key, one.title, one.kind, one.lat, one.lon) for one in facts(parsed)]
    assert found == [("1", "1", "city_bikes", 48.1, 11.5), ("2", "2", "city_bikes", -12.5, -170.0)]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("$[*]", BIKES),
        ("$.items[*]", {"n": 2, "items": BIKES}),
        ("$.data.items[*]", {"data": {"items": BIKES}}),
        ("$.stations.*", {"stations": {"a": BIKES[0], "b": BIKES[1]}}),
        ("$..bike", [{"bike": BIKES[0]}, {"x": {"bike": BIKES[1]}}]),
        ("$.items[?@.lat != null]", {"items": [*BIKES, {"id": 3, "lat": None}]}),
    ],
)
def test_records_are_found_by_their_path(path: str, body: object) -> None:
    parsed = feed_of(records=path).parse(orjson.dumps(body), AT)
    assert [one.external_key for one in facts(parsed)] == ["1", "2"] and parsed.complete


@pytest.mark.parametrize("path", ["$[*]", "$.items[*]", "$.data.items[*]", "$..bike"])
def test_a_body_without_the_place_of_its_records_is_bad(path: str) -> None:
    """An error as JSON with status 200 must not look like an empty list."""
    with pytest.raises(FeedError) as caught:
        feed_of(records=path).parse(b'{"error": "daily limit"}', AT)
    assert caught.value.code == "bad_body"


@pytest.mark.parametrize("name", ["usgs_quakes", "celestrak_tle", "earthquakes", "city_observation", "runway_obs"])
def test_the_name_of_a_shipped_source_or_layer_cannot_be_taken(name: str) -> None:
    with pytest.raises(DeclarationFaults) as caught:
        declared(source=name)
    assert [one.code for one in caught.value.faults] == ["name_taken"]
