"""Whatever bytes arrive, a feed's reader gives plain rows or says that the body is bad; it never breaks."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bodies import RUNWAYS
from long_form import examples
from planetwire.datasets.earthquakes.feed import UsgsQuakes
from planetwire.datasets.satellites.feed import CelestrakGp
from planetwire.datasets.weather_stations.feed_metar import AwcMetar
from planetwire.datasets.weather_stations.feed_runway import RunwayObs
from planetwire.errors import FeedError
from planetwire.model import Fact, Parsed

AT = datetime(2026, 11, 29, 12, tzinfo=UTC)
CORPUS = files("gpconf") / "corpus" / "derived"
SAMPLES = files("planetwire.demo") / "samples"
METARS = Path(__file__).parent.parent / "fixtures" / "metar"

SEEDS = {
    "celestrak_gp": [
        (CORPUS / "corrupt-input/unedited-sets.tle").read_bytes(),
        (CORPUS / "corrupt-input/unedited-rows.csv").read_bytes(),
        (CORPUS / "corrupt-input/unedited-array.json").read_bytes(),
        (CORPUS / "kvn-variants/v01-baseline-reserialised.kvn").read_bytes(),
        (CORPUS / "kvn-variants/v07-xml-ndm-reserialised.xml").read_bytes(),
    ],
    "usgs_quakes": [(SAMPLES / "usgs_summary.geojson").read_bytes()],
    "awc_metar": [(SAMPLES / "awc_metar.json").read_bytes(), (METARS / "worldwide.txt").read_bytes()[:3_000]],
    "runway_obs": [orjson.dumps(RUNWAYS[:6]), orjson.dumps(RUNWAYS[0])],
}
FEEDS = {feed.source: feed for feed in (CelestrakGp(), UsgsQuakes(), AwcMetar(), RunwayObs())}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)


def plain(parsed: Parsed) -> None:
    """What every result must be."""
    rows = [row.data | {"lat": row.lat, "lon": row.lon} if isinstance(row, Fact) else row for row in parsed.rows]
    text = orjson.dumps(rows)
    assert orjson.loads(text) == rows
    keys = [row.external_key for row in parsed.rows if isinstance(row, Fact)]
    assert len(set(keys)) == len(keys)
    assert all(len(one.sample) <= 200 and one.reason for one in parsed.rejects)


def read(source: str, body: bytes) -> None:
    try:
        plain(FEEDS[source].parse(body, AT))
    except FeedError as error:
        assert error.code == "bad_body"


@pytest.mark.parametrize("source", sorted(FEEDS))
@settings(max_examples=examples(80), deadline=None)
@given(body=st.binary(max_size=400))
def test_arbitrary_bytes_are_rows_or_a_bad_body(source: str, body: bytes) -> None:
    read(source, body)


@pytest.mark.parametrize("source", sorted(FEEDS))
@settings(max_examples=examples(80), deadline=None)
@given(data=st.data())
def test_a_damaged_body_is_rows_or_a_bad_body(source: str, data: st.DataObject) -> None:
    """Report 75: also one that was cut, or has bytes changed anywhere."""
    body = bytearray(data.draw(st.sampled_from(SEEDS[source])))
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(body) - 1))
        body[at : at + data.draw(st.integers(0, 6))] = data.draw(st.binary(max_size=6))
    read(source, bytes(body[: data.draw(st.integers(0, len(body)))]))


@pytest.mark.parametrize("source", sorted(FEEDS))
@settings(max_examples=examples(60), deadline=None)
@given(values=st.data())
def test_a_record_with_any_values_costs_at_most_itself(source: str, values: st.DataObject) -> None:
    """Its fields may be anything; the record beside it lives."""
    body = orjson.loads(next(seed for seed in SEEDS[source] if seed[:1] in b"[{"))
    records = body["features"] if isinstance(body, dict) else body
    whole = len(FEEDS[source].parse(orjson.dumps(body), AT).rows)
    target = records[0].get("properties", records[0])
    for key in values.draw(st.lists(st.sampled_from(sorted(target)), max_size=5)):
        target[key] = values.draw(json_values)
    result = FEEDS[source].parse(json.dumps(body).encode(), AT)  # also numbers of any size, and NaN
    plain(result)
    assert len(result.rows) >= whole - 1
