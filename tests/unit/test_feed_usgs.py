"""Earthquakes as GeoJSON: nulls, depth, ids, kinds, times."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from planetwire.datasets.earthquakes.feed import UsgsQuakes
from planetwire.errors import FeedError
from planetwire.model import Fact, Parsed

AT = datetime(2026, 11, 29, 12, tzinfo=UTC)
TIME_MS = 1_779_789_720_123


def feature(key: str = "us7000abcd", coordinates: object = (145.1, -6.2, 10.0), **changes: object) -> dict[str, Any]:
    properties = {
        "mag": 4.5, "place": "12 km W of Lae", "time": TIME_MS, "updated": TIME_MS + 60_000, "url": "https://x.test/1",
        "status": "reviewed", "tsunami": 0, "ids": f",{key},", "magType": "mb", "type": "earthquake", "title": "M 4.5",
    }  # fmt: skip
    geometry = None if coordinates is None else {"type": "Point", "coordinates": coordinates}
    return {"type": "Feature", "id": key, "properties": properties | changes, "geometry": geometry}


def parsed(*features: object, **around: object) -> Parsed:
    return UsgsQuakes().parse(orjson.dumps({"type": "FeatureCollection", **around, "features": features}), AT)


def fact(*args: Any, **changes: Any) -> Fact:
    result = parsed(feature(*args, **changes))
    assert [one.reason for one in result.rejects] == []
    row = result.rows[0]
    assert isinstance(row, Fact)
    return row


def test_a_quake_becomes_a_fact() -> None:
    row = fact()
    assert (row.external_key, row.kind, row.title, row.lat, row.lon) == (
        "us7000abcd", "earthquake", "12 km W of Lae", -6.2, 145.1,
    )  # fmt: skip
    assert row.observed_at == datetime(2026, 5, 26, 10, 2, 0, 123_000, tzinfo=UTC)
    assert row.data == {
        "mag": 4.5, "mag_type": "mb", "depth_km": 10.0, "place": "12 km W of Lae", "type": "earthquake",
        "status": "reviewed", "tsunami": False, "url": "https://x.test/1", "ids": ["us7000abcd"],
        "updated_at": "2026-05-26T10:03:00.123Z",
    }  # fmt: skip


def test_null_magnitude_and_depth_stay_null() -> None:
    """Report 52."""
    row = fact(coordinates=[145.1, -6.2, None], mag=None, magType=None)
    assert (row.data["mag"], row.data["depth_km"], row.data["mag_type"]) == (None, None, None)


def test_a_null_place_leaves_the_title_of_the_event() -> None:
    """Report 52."""
    row = fact(place=None)
    assert (row.title, row.data["place"]) == ("M 4.5", None)
    assert fact(place=None, title=None).title == "us7000abcd"


@pytest.mark.parametrize("coordinates", [None, [], [None, None, None]])
def test_a_quake_without_place_is_kept_without_coordinates(coordinates: object) -> None:
    row = fact(coordinates=coordinates)
    assert (row.lat, row.lon, row.data["depth_km"]) == (None, None, None)


@pytest.mark.parametrize("depth_km", [-3.1, 0.0, 641.2])
def test_depth_is_positive_down_and_may_be_negative(depth_km: float) -> None:
    assert fact(coordinates=[0, 0, depth_km]).data["depth_km"] == depth_km


def test_the_kind_is_what_the_publisher_says() -> None:
    assert fact(type="quarry blast").kind == "quarry blast"
    assert fact(type=None).kind == "earthquake"


def test_a_longitude_past_the_date_line_is_wrapped() -> None:
    assert fact(coordinates=[190.0, 1, 5]).lon == -170.0
    assert fact(coordinates=[180.0, 1, 5]).lon == 180.0


def test_a_changed_preferred_id_is_one_row_and_its_other_ids_are_tombstones() -> None:
    """Report 53."""
    result = parsed(feature("us7000new", ids=",ci40123,us7000new,at00old,"))
    assert [row.external_key for row in result.rows] == ["us7000new"]
    assert result.rows[0].data["ids"] == ["us7000new", "ci40123", "at00old"]
    assert result.tombstones == {"ci40123", "at00old"}


def test_two_features_of_one_event_are_one_row_the_later_update_wins() -> None:
    """Report 53."""
    older = feature("ci40123", ids=",ci40123,us7000new,", updated=TIME_MS, mag=4.0)
    newer = feature("us7000new", ids=",us7000new,ci40123,", updated=TIME_MS + 1, mag=4.2)
    for pair in ((older, newer), (newer, older)):
        result = parsed(*pair)
        assert [(row.external_key, row.data["mag"]) for row in result.rows] == [("us7000new", 4.2)]
        assert result.notes["duplicates"] == 1
        assert result.tombstones == {"ci40123"}


def test_a_deleted_event_without_time_or_magnitude_is_a_tombstone() -> None:
    """S40, report 54."""
    result = parsed(feature("us1", status="deleted", time=None, mag=None, coordinates=None), feature("us2"))
    assert [row.external_key for row in result.rows] == ["us2"]
    assert result.tombstones == {"us1"}
    assert not result.rejects


@pytest.mark.parametrize(
    "bad",
    [None, 5, {}, {"id": "x"}, feature("") | {"id": ""}, feature(time=None), feature(time="today"), feature(time=1e30),
     feature(coordinates=[10, 95, 1])],
)  # fmt: skip
def test_a_bad_feature_costs_itself_only(bad: object) -> None:
    result = parsed(bad, feature("us2"))
    assert [row.external_key for row in result.rows] == ["us2"]
    assert len(result.rejects) == 1


def test_a_nan_magnitude_is_null() -> None:
    """Report 68."""
    body = orjson.dumps({"features": [feature()]}).replace(b'"mag":4.5', b'"mag":NaN')
    result = UsgsQuakes().parse(body, AT)
    assert result.rows[0].data["mag"] is None
    assert result.complete


def test_a_count_that_does_not_agree_makes_the_body_incomplete() -> None:
    assert parsed(feature(), metadata={"count": 1}).complete
    assert not parsed(feature(), metadata={"count": 2}).complete


def test_a_body_cut_short_keeps_whole_features_and_is_incomplete() -> None:
    """Report 75."""
    body = orjson.dumps({"type": "FeatureCollection", "features": [feature("us1"), feature("us2")]})
    result = UsgsQuakes().parse(body[:-40], AT)
    assert [row.external_key for row in result.rows] == ["us1"]
    assert not result.complete


@pytest.mark.parametrize("body", [b"<html>busy</html>", b"", b"{}", b"[]", b'{"features": 5}'])
def test_what_is_no_feature_collection_is_a_bad_body(body: bytes) -> None:
    """Report 77."""
    with pytest.raises(FeedError) as caught:
        UsgsQuakes().parse(body, AT)
    assert caught.value.code == "bad_body"
