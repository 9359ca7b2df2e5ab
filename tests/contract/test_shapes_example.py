"""The golden snapshots of a layer of lines and one of areas: what a feed's geometry becomes, and what is served."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
from jsonschema import Draft202012Validator

from planetwire.database.postgres import Pool
from planetwire.facts.facts_postgres import PostgresFactStore
from planetwire.geometry import VERTICES_MAX, geometry
from planetwire.layers.places import asked
from planetwire.layers.registry import EarthLayerAdapterRegistry
from planetwire.model import Fact, Json, LayerAdapter, Provenance
from planetwire.runtime.clock import SystemClock
from planetwire.stream.log_postgres import PostgresEventLog
from planetwire.web.earth.layer_snapshots import LayerSnapshots
from planetwire.web.stores.cache_memory import MemoryCache

SPEC = Path(__file__).resolve().parents[2] / "spec"
SCHEMA = json.loads((SPEC / "http/visualization.v1.schema.json").read_text(encoding="utf-8"))
SNAPSHOT = Draft202012Validator(SCHEMA)
EXAMPLES = {
    kind: json.loads((SPEC / f"examples/visualization.{kind}.v1.json").read_text(encoding="utf-8"))
    for kind in ("line", "area")
}
each_kind = pytest.mark.parametrize("kind", EXAMPLES)
PUT = """insert into collected_data (source, external_key, kind, title, data, lat, lon, observed_at)
    values ($1, $2, $3, $4, $5::text::jsonb, $6, $7, $8)"""


def shape(kind: str) -> Draft202012Validator:
    return Draft202012Validator({"$ref": f"#/$defs/{kind}", "$defs": SCHEMA["$defs"]})


def layer(kind: str) -> LayerAdapter:
    name = EXAMPLES[kind]["layer"]
    return LayerAdapter(
        name, name, name, "test", kind, (("collected_data", name),), (f"earth:layer:{name}:*",), Provenance(*"abcd")
    )


@each_kind
def test_a_geometry_of_the_example_is_one_that_a_feed_would_give(kind: str) -> None:
    """S71: one form, declared by the layer's kind."""
    SNAPSHOT.validate(EXAMPLES[kind])
    for feature in EXAMPLES[kind]["features"]:
        given = feature["data"]["geometry"]
        shape(kind).validate(given)
        assert geometry(given, kind) == (given, feature["lat"], feature["lon"])


@each_kind
def test_whoever_types_in_a_geometry_need_not_say_where_it_lies(kind: str) -> None:
    for feature in EXAMPLES[kind]["features"]:
        place = asked(Fact("1", "kind", "title", feature["data"]))
        assert place is not None and (place.lat, place.lon) == (feature["lat"], feature["lon"])


@each_kind
async def test_the_example_is_what_is_served_of_its_facts(kind: str, pg_pool: Pool) -> None:
    """S61."""
    example = EXAMPLES[kind]
    for one in example["features"]:
        source, key = one["id"].split(":")
        at = datetime.fromisoformat(one["observed_at"])
        facts = (source, key, one["kind"], one["title"], json.dumps(one["data"]), one["lat"], one["lon"], at)
        await pg_pool.execute(PUT, *facts)
    log = await PostgresEventLog.open(pg_pool)
    registry = EarthLayerAdapterRegistry([layer(kind)])
    made = LayerSnapshots(PostgresFactStore(pg_pool), registry, log, MemoryCache(), SystemClock())
    served = orjson.loads((await made.get(example["layer"], "identity")).body)
    SNAPSHOT.validate(served)
    by_id = lambda body: sorted(body["features"], key=lambda one: one["id"])  # noqa: E731
    assert by_id(served) == by_id(example)
    [listed] = await made.layers()
    assert (listed["kind"], listed["count"]) == (kind, len(example["features"]))


def test_the_schema_has_the_bound_that_feeds_are_held_to() -> None:
    assert SCHEMA["$defs"]["path"]["maxItems"] == VERTICES_MAX


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        ("line", {"type": "LineString", "coordinates": [[0, 0]]}),
        ("line", {"type": "LineString", "coordinates": [[0, 0], [190, 0]]}),
        ("line", {"type": "LineString", "coordinates": [[0, 0, 5], [1, 0, 5]]}),
        ("line", {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}),
        ("area", {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [0, 0]]]}),
        ("area", {"type": "MultiPolygon", "coordinates": [[[[0, 0], [1, 0], [1, 1], [0, 0]]]]}),
    ],
)
def test_the_schema_refuses_what_no_feed_gives(kind: str, wrong: Json) -> None:
    assert not shape(kind).is_valid(wrong)


def test_what_was_typed_in_is_served_as_it_is() -> None:
    """Readers draw what they can; the snapshot of a layer does not fail for a fact of it."""
    odd: Any = {"lat": 1.0, "lon": 2.0, "observed_at": None, "data": {"geometry": "LineString"}}
    SNAPSHOT.validate(EXAMPLES["line"] | {"features": [EXAMPLES["line"]["features"][0] | odd]})
