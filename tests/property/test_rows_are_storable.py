"""Whatever a reader accepts of whatever arrives can be stored, in a real PostgreSQL and a real observation store."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bodies import AT, METARS, QUAKES, RECORDS, RUNWAYS, TLE, as_csv, as_kvn, as_xml
from fix_observations import open_observations
from fix_postgres import database_of
from long_form import examples
from planetwire.cities import CITIES
from planetwire.collect.push.accept import Ingest
from planetwire.database.postgres import open_pool
from planetwire.datasets.earthquakes.feed import UsgsQuakes
from planetwire.datasets.registry import layer_registry, observed_sources
from planetwire.datasets.satellites.feed import CelestrakGp
from planetwire.datasets.weather_stations.feed_metar import AwcMetar
from planetwire.datasets.weather_stations.feed_runway import RunwayObs
from planetwire.errors import FeedError
from planetwire.facts import refused_postgres
from planetwire.facts.derived_postgres import Projection
from planetwire.facts.facts_postgres import PostgresFactStore
from planetwire.facts.stations_postgres import _Tx
from planetwire.model import Batch, Fact, Parsed
from planetwire.runtime.clock import ManualClock
from planetwire.supervise.embedded_postgres import EmbeddedPostgres

SOURCES = observed_sources()

FEEDS: dict[str, Any] = {feed.source: feed for feed in (CelestrakGp(), UsgsQuakes(), AwcMetar(), RunwayObs())}
BODIES = {
    "celestrak_gp": [
        orjson.dumps(RECORDS[:6]), as_csv(RECORDS[:6]), as_kvn(RECORDS[:6]), as_xml(RECORDS[:6]), TLE.encode()
    ],
    "usgs_quakes": [orjson.dumps({**QUAKES, "features": QUAKES["features"][:6]})],
    "awc_metar": [orjson.dumps(METARS[:6]), b"KLGA 281101Z 00000KT 10SM 12/02 A2992\n" * 3],
    "runway_obs": [orjson.dumps({"readings": RUNWAYS[:6]}), orjson.dumps(RUNWAYS[:6])],
}  # fmt: skip
ODD = [
    b"\\ud800", b"\\u0000", b"\x00", b"\xff\xfe", b"1e400", b"-1e400", b"NaN", b"Infinity", b"9" * 40, b"9" * 5_000,
    b"null", b"[[[[[[]]]]]]", b'{"a":{}}', b'"', b"{", b"}", b"[", b"]", b",", b"\n", b"\xe2\x80\xa8", b"x" * 5_000,
    b"true", b"-0", b"0", b"1e-400", b"2147483648", b"9223372036854775808", b"<b>", b"\\", "\U0001f30d".encode(),
]  # fmt: skip
scraps = st.sampled_from(ODD) | st.binary(max_size=6)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
    | st.sampled_from([10**40, "x" * 5_000]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
_accepted: dict[str, list[Fact]] = {"celestrak_gp": [], "usgs_quakes": []}
_reports: dict[str, list[dict[str, Any]]] = {"awc_metar": [], "runway_obs": []}


def damaged(data: st.DataObject, source: str) -> bytes:
    """Bytes replaced, put in, doubled or cut anywhere."""
    body = bytearray(data.draw(st.sampled_from(BODIES[source])))
    for _ in range(data.draw(st.integers(0, 5))):
        at = data.draw(st.integers(0, len(body)))
        body[at : at + data.draw(st.integers(0, 12))] = data.draw(scraps)
    return bytes(body)


def changed(data: st.DataObject, source: str) -> bytes:
    """Fields of any value, missing and strange ones, records of any shape."""
    body = orjson.loads(BODIES[source][0])
    records = next(value for value in body.values() if isinstance(value, list)) if isinstance(body, dict) else body
    for _ in range(data.draw(st.integers(1, 6))):
        index = data.draw(st.integers(0, len(records) - 1))
        target = records[index] if isinstance(records[index], dict) else {}
        inner = target.get("properties", target)
        inner = inner if isinstance(inner, dict) else target
        if data.draw(st.booleans()) and inner:
            inner[data.draw(st.sampled_from(sorted(inner)))] = data.draw(values)
        else:
            records[index] = data.draw(values)
    return json.dumps(body).encode()


def kept(source: str, body: bytes, records: int | None = None) -> None:
    """Parse; remember what was accepted."""
    try:
        result: Parsed = FEEDS[source].parse(body, AT)
    except FeedError as error:
        assert error.code == "bad_body"
        error.message.encode()
        return
    counted = len(result.rows) + len(result.rejects) + sum(result.notes.get(name, 0) for name in ("duplicates", "nil"))
    assert records is None or counted == records or source == "usgs_quakes"
    for one in result.rejects:
        assert one.code.isascii() and one.reason and len(one.sample) <= 200
        orjson.dumps([one.reason, one.sample])
    if source in _reports:
        _reports[source].extend(row for row in result.rows if isinstance(row, dict))
        for row in result.rows:
            assert orjson.loads(orjson.dumps(row)) == row
    else:
        _accepted[source] += [row for row in result.rows if isinstance(row, Fact)]


@pytest.mark.parametrize("source", sorted(FEEDS))
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_damaged_bytes_are_rows_rejects_or_a_bad_body(source: str, data: st.DataObject) -> None:
    kept(source, damaged(data, source))


@pytest.mark.parametrize("source", sorted(FEEDS))
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_records_of_any_shape_are_all_accounted_for(source: str, data: st.DataObject) -> None:
    kept(source, changed(data, source), records=6)


@pytest.fixture(scope="module")
def dsn(pg_cluster: EmbeddedPostgres) -> Iterator[str]:
    with database_of(pg_cluster) as dsn:
        yield dsn


async def store(dsn: str, source: str, facts: list[Fact]) -> tuple[int, int]:
    """How many facts and derived rows there are afterwards."""
    pool = await open_pool(dsn, application="test", max_size=2)
    try:
        projection = Projection(layer_registry().derivers)
        async with pool.acquire() as connection, connection.transaction():
            await PostgresFactStore(pool, projection).upsert(_Tx(connection), source, Batch(facts, complete=True), None)
        features, total = await PostgresFactStore(pool).features([source], None)
        for feature in features:
            orjson.loads(feature)
        return total, await pool.fetchval("select count(*) from earth_interactables where source = $1", source)
    finally:
        await pool.close()


@pytest.mark.parametrize("source", sorted(_accepted))
def test_all_that_was_accepted_is_stored_and_found(dsn: str, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the tests above, with what they kept; none of it may have to be put aside."""
    monkeypatch.setattr(refused_postgres, "DATA_FAULTS", ())
    if not _accepted[source]:
        kept(source, BODIES[source][0])
    facts = _accepted[source]
    keys = {fact.external_key for fact in facts}
    assert asyncio.run(store(dsn, source, facts)) == (len(keys), len(keys))


@pytest.mark.parametrize("source", sorted(_reports))
def test_all_reports_that_were_accepted_are_taken_by_the_ingest_and_stored(source: str, tmp_path: Path) -> None:
    if not _reports[source]:
        kept(source, BODIES[source][0])
    known = {city.icao for city in CITIES}
    patches, _ = FEEDS[source].patches([row for row in _reports[source] if row["station"] in known])
    asyncio.run(take(tmp_path / "observations.db", patches))


async def take(path: Path, patches: list[dict[str, Any]]) -> None:
    clock = ManualClock(datetime(2026, 5, 28, 22, tzinfo=UTC))
    observations = await open_observations(path, clock)
    try:
        results = await Ingest(observations.store, clock, SOURCES).accept(patches)
    finally:
        await observations.close()
    assert {result.get("code") for result in results} <= {None, "obs_time_out_of_range"}
    assert any("revision" in result for result in results)
