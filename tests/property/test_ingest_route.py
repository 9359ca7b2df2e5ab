"""Arbitrary bodies at the ingest route, over a real store: never a 500, and never a value that nobody sent."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from fastapi import FastAPI
from hypothesis import given, settings
from hypothesis import strategies as st

from fix_observations import START, Observations, open_observations
from long_form import examples
from planetwire.cities import BY_KEY
from planetwire.collect.push.accept import Ingest
from planetwire.datasets.registry import observed_sources
from planetwire.runtime.clock import ManualClock
from planetwire.web.access.auth import Guard
from planetwire.web.http import problems
from planetwire.web.terminal import ingest

SOURCES = observed_sources()

PATH = "/api/internal/collector-patch"
CODES = {400, 413}
KEYS = [
    *("city", "source", "type", "schema_version", "obs_time", "changes", "payload", "temp", "temp_c", "unit", "amos"),
    *("runway_points", "max_so_far", "series_key", "runway", "runway_obs", "point_temperatures", "tdz_temp"),
]
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=12),
    st.sampled_from(["seoul", "hong kong", "hk", "amos", "metar", "°F", "celsius", "17L/35R", "20", "-0.5", "1e9",
                     "2026-05-26T09:59:00Z", "city_observation_patch.v1", "city_patch", 0, -0.5, 20.5, 86, 1779789600]),
)  # fmt: skip
JSON = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.sampled_from(KEYS), st.text(max_size=6)), inner, max_size=6),
    ),
    max_leaves=20,
)
PATCH = st.fixed_dictionaries(
    {
        "city": st.sampled_from([*sorted(BY_KEY), "Hong-Kong", "nyc"]),
        "changes": st.dictionaries(st.sampled_from(KEYS), JSON),
    }
)
BODIES = st.one_of(JSON, PATCH, st.lists(st.one_of(PATCH, JSON), max_size=5))


class Route:
    """The route and the store behind it, on a loop of their own: hypothesis calls from outside any."""

    def __init__(self, folder: Path) -> None:
        self.runner = asyncio.Runner()
        self.observations = self.run(open_observations(folder / "o.db", ManualClock(START)))
        app = FastAPI()
        problems.install(app)
        accept = Ingest(self.observations.store, self.observations.clock, SOURCES).accept
        app.include_router(ingest.router(ingest.IngestEndpoint(accept, Guard("admin-token", "ingest-token", b"key"))))
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        headers = {"Authorization": "Bearer ingest-token"}
        self.http = httpx.AsyncClient(transport=transport, base_url="http://test", headers=headers)

    def run(self, work: Any) -> Any:
        return self.runner.run(work)

    def push(self, body: bytes) -> httpx.Response:
        answer: httpx.Response = self.run(self.http.post(PATH, content=body))
        return answer

    def heard(self) -> list[dict[str, Any]]:
        """Events since the last call."""
        opened: Observations = self.observations
        events = [orjson.loads(event.body) for event in opened.heard]
        opened.heard.clear()
        return events


@pytest.fixture(scope="module")
def route() -> Iterator[Route]:
    with tempfile.TemporaryDirectory() as folder:
        made = Route(Path(folder))
        yield made
        made.run(made.http.aclose())
        made.run(made.observations.close())
        made.runner.close()


def temperatures(sent: object) -> set[float]:
    """°C that a reader may take any value of the body for: as it is, or from °F."""
    found: set[float] = set()
    if isinstance(sent, dict):
        for value in sent.values():
            found |= temperatures(value)
    elif isinstance(sent, list):
        for value in sent:
            found |= temperatures(value)
    elif isinstance(sent, int | float | str) and not isinstance(sent, bool):
        try:
            number = float(sent)
        except (ValueError, OverflowError):
            return found
        found |= {round(number, 2), round((number - 32) / 1.8, 2)}
    return found


def check(route: Route, sent: object, answer: httpx.Response) -> None:
    events = route.heard()
    assert answer.status_code == 200 or answer.status_code in CODES, answer.text
    if answer.status_code != 200:
        assert answer.json()["code"]
        assert events == []
        return
    possible = temperatures(sent)
    for event in events:
        payload = event["payload"]
        stored = [payload["temp"], *(point["temp"] for point in payload["runway_points"])]
        assert event["city"] in BY_KEY
        assert {round(temp, 2) for temp in stored if temp is not None} <= possible, (event, sent)
        assert any(temp is not None for temp in stored)
        assert all(-90 <= temp <= 60 for temp in stored if temp is not None)
        assert len(orjson.dumps(payload)) <= 3_100


@settings(max_examples=examples(100), deadline=None)
@given(BODIES)
def test_any_json_is_taken_or_refused_by_name_and_only_what_was_sent_is_stored(route: Route, sent: object) -> None:
    """S159, S189, F20, F28: through HTTP and the store; what is refused is neither stored nor broadcast."""
    body = json.dumps(sent).encode()  # NaN and Infinity as senders write them
    answer = route.push(body)
    check(route, sent, answer)


@settings(max_examples=examples(80), deadline=None)
@given(st.one_of(st.binary(max_size=200), st.text(max_size=60).map(lambda text: text.encode("utf-16"))))
def test_any_bytes_are_refused_by_name(route: Route, body: bytes) -> None:
    """S189."""
    answer = route.push(body)
    try:
        sent = orjson.loads(body)
    except orjson.JSONDecodeError:
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_json")
    else:
        check(route, sent, answer)


@pytest.mark.parametrize("unit", [None, "c", "f"])
@settings(max_examples=examples(60), deadline=None)
@given(temp=st.one_of(st.floats(-140, 160), st.integers(-140, 160)), runway=st.floats(-140, 160))
def test_a_number_is_stored_as_it_was_meant_or_not_at_all(
    route: Route, unit: str | None, temp: float, runway: float
) -> None:
    """S138, S143, Q9, F28: an independent reading of the rule; zero and negative values among them."""

    def meant(value: float) -> float | None:
        celsius = (value - 32) / 1.8 if unit == "f" else value
        return round(celsius, 2) + 0.0 if -90 <= celsius <= 60 else None

    route.observations.clock.advance(1)
    changes: dict[str, Any] = {"temp": temp, "runway_points": [{"runway": "1", "temp": runway}]}
    if unit is not None:
        changes["unit"] = unit
    answer = route.push(json.dumps({"city": "seoul", "source": "amos", "changes": changes}).encode())
    events = route.heard()
    if meant(temp) is None:
        assert (answer.status_code, answer.json()["code"], events) == (400, "invalid_temp", [])
        return
    assert answer.status_code == 200
    for event in events:
        assert event["payload"]["temp"] == meant(temp)
        assert [point["temp"] for point in event["payload"]["runway_points"]] == (
            [] if meant(runway) is None else [meant(runway)]
        )
