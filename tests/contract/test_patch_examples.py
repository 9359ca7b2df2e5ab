"""The golden examples of the observation patch: what goes in, what must come out, and the schema of it."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from long_form import examples
from planetwire.cities import CITIES
from planetwire.collect.push.ingest import normalise
from planetwire.datasets.registry import observed_sources
from planetwire.facts.observations.wire import wire_body
from planetwire.model import Json

SOURCES = observed_sources()

SPEC = Path(__file__).resolve().parents[2] / "spec"
SCHEMA = json.loads((SPEC / "events/city_observation_patch.v1.schema.json").read_text(encoding="utf-8"))
EXAMPLES = sorted((SPEC / "examples").glob("city_observation_patch.*.json"))
VALIDATOR = Draft202012Validator(SCHEMA)
FIRST_S = 1_779_700_000
EPOCH = "k3v9x0m2p7qa"


def event_of(raw: object, accepted_at: datetime, revision: int, prev_revision: int, *, is_latest: bool) -> Json:
    body = wire_body(normalise(SOURCES, raw, accepted_at), revision, prev_revision, EPOCH, is_latest=is_latest)
    return dict(json.loads(body))


def test_there_is_an_example_of_every_shape() -> None:
    """S105, S148."""
    assert len(EXAMPLES) == 6


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_comes_out_as_written(example: Path) -> None:
    """S105, S131–S148."""
    Draft202012Validator.check_schema(SCHEMA)
    told = json.loads(example.read_text(encoding="utf-8"))
    expected = told["event"]
    VALIDATOR.validate(expected)
    latest = expected["payload"]["is_latest"]
    accepted_at = datetime.fromisoformat(told["accepted_at"])
    event = event_of(told["pushed"], accepted_at, expected["revision"], expected["prev_revision"], is_latest=latest)
    assert event == expected
    assert expected["epoch"] == EPOCH


@given(
    city=st.sampled_from(CITIES),
    temp=st.floats(-90, 60),
    at=st.one_of(st.none(), st.integers(FIRST_S, FIRST_S + 86_400)),
    runway=st.from_regex(r"\A\d\d[LRC]?(/\d\d[LRC]?)?\Z"),
    label=st.text(max_size=100),
)
@settings(max_examples=examples(200), deadline=None)
def test_every_event_satisfies_the_schema(city, temp: float, at: int | None, runway: str, label: str) -> None:  # type: ignore[no-untyped-def]
    """S105, S131–S145."""
    inner = {"temp": temp, "obs_time": at, "station_label": label, "runway_points": [{"runway": runway, "temp": temp}]}
    now = datetime.fromisoformat("2026-05-26T12:30:00Z")
    VALIDATOR.validate(event_of({"city": city.key, "changes": inner}, now, 7, 3, is_latest=False))
