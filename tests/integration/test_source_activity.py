"""What the list of sources says of each one's rows, its last hour and its last run, and what asking that costs."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from jsonschema import Draft202012Validator

from planetwire.collect.feedstate_file import FeedStates
from planetwire.database.postgres import Connection, Pool
from planetwire.datasets.registry import layer_registry
from planetwire.facts import sources_postgres
from planetwire.facts.sources_postgres import JOBS_LOOKED_AT, ROWS_COUNTED_MAX, PostgresSourceStore
from planetwire.model import SourceDefaults
from planetwire.web.access.auth import Guard
from planetwire.web.earth import sources
from planetwire.web.earth.sources import described_by

SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "spec/http/sources.v1.schema.json").read_text("utf-8"))
KNOWN = [SourceDefaults("alpha", 600, 60), SourceDefaults("beta", 600, 60)]
OLD = "clock_timestamp() - interval '2 hours'"


async def listed(pool: Pool) -> Mapping[str, Any]:
    """Records of a store that has counted nothing yet, by source."""
    store = PostgresSourceStore(pool, KNOWN)
    await store.ensure()
    return {record["source"]: record for record in await store.list()}


async def ended(pool: Pool, rows: int, **columns: object) -> int:
    """A job of alpha that has ended; its id."""
    given = {"task_type": "collect", "source": "alpha", "status": "completed", "attempts": 1} | columns
    at = given.pop("finished_at", "clock_timestamp()")
    names = ", ".join([*given, "records_processed"])
    marks = ", ".join(f"${number}" for number in range(1, len(given) + 2))
    statement = f"insert into collection_tasks ({names}, finished_at) values ({marks}, {at}) returning id"
    return int(await pool.fetchval(statement, *given.values(), rows))


async def test_a_source_without_any_run_has_no_rows_and_asked_nobody(pg_pool: Pool) -> None:
    record = (await listed(pg_pool))["alpha"]
    told = {key: record[key] for key in ("rows", "rows_hour", "requests_hour", "last_job", "sample", "reject_codes")}
    assert told == {
        "rows": 0,
        "rows_hour": 0,
        "requests_hour": 0,
        "last_job": None,
        "sample": None,
        "reject_codes": {},
    }


async def test_the_last_hour_is_that_of_the_jobs_that_collected_and_asked(pg_pool: Pool) -> None:
    """Not older ones, no clears, and no run that stayed within a floor or a cooldown."""
    await ended(pg_pool, 1_000, finished_at=OLD)
    await ended(pg_pool, 100, attempts=2)
    await ended(pg_pool, 0, message="cooldown until 2026-05-25T10:00:00Z")
    await ended(pg_pool, 40, message="40 records, kept data applied again; cooldown until 2026-05-25T10:00:00Z")
    await ended(pg_pool, 0, message="not modified; cooldown until 2026-05-25T10:00:00Z")
    await ended(pg_pool, 7, source="beta")
    await ended(pg_pool, 500, task_type="clear_data")
    records = await listed(pg_pool)
    assert (records["alpha"]["rows_hour"], records["alpha"]["requests_hour"]) == (140, 3)
    assert (records["beta"]["rows_hour"], records["beta"]["requests_hour"]) == (7, 1)


async def test_the_last_run_is_told_with_what_it_refused(pg_pool: Pool) -> None:
    """A clear after it is none that could refuse anything."""
    await ended(pg_pool, 3, message="3 records, 9 rejected (broken 9)", sample="older")
    job = await ended(pg_pool, 3, message="3 records, 5 rejected (bad_value 3, no_record 2)", sample='{"x":')
    await ended(pg_pool, 500, task_type="clear_data")
    record = (await listed(pg_pool))["alpha"]
    assert (record["last_job"], record["sample"]) == (job, '{"x":')
    assert record["reject_codes"] == {"bad_value": 3, "no_record": 2}


async def test_rows_are_those_of_the_source_that_are_there_now(pg_pool: Pool) -> None:
    await pg_pool.execute(
        "insert into collected_data (source, external_key, kind)"
        " select 'alpha', n::text, 'x' from generate_series(1, 12) n"
    )
    records = await listed(pg_pool)
    assert (records["alpha"]["rows"], records["beta"]["rows"]) == (12, 0)


@pytest.fixture
async def crowded(pg_pool: Pool) -> AsyncIterator[Connection]:
    """Far more rows and ended jobs than are looked at, of our sources and of others."""
    async with pg_pool.acquire() as connection:
        await connection.execute("set session_replication_role = replica")  # without a change row each
        await connection.execute(
            "insert into collected_data (source, external_key, kind) select s, n::text, 'x'"
            f" from generate_series(1, {ROWS_COUNTED_MAX + 10_000}) n, unnest(array['alpha', 'other']) s"
        )
        await connection.execute("reset session_replication_role")
        await connection.execute(
            "insert into collection_tasks (task_type, source, status, finished_at, records_processed, attempts)"
            " select 'collect', s, 'completed', clock_timestamp(), 1, 1"
            f" from generate_series(1, {JOBS_LOOKED_AT * 10}) n, unnest(array['alpha', 'other']) s"
        )
        await connection.execute("vacuum analyze collected_data")
        await connection.execute("vacuum analyze collection_tasks")
        yield connection


async def test_the_question_costs_the_same_with_however_many_rows_and_jobs(crowded: Connection) -> None:
    """By their indexes, no further than the bounds."""
    asked = (["alpha", "beta"], ROWS_COUNTED_MAX, JOBS_LOOKED_AT)
    plan = "\n".join(
        row[0] for row in await crowded.fetch(f"explain (analyze, timing off) {sources_postgres.Q.activity}", *asked)
    )
    assert "Seq Scan" not in plan and "Sort" not in plan, plan
    rows = {row["source"]: row for row in await crowded.fetch(sources_postgres.Q.activity, *asked)}
    assert (rows["alpha"]["rows"], rows["beta"]["rows"]) == (ROWS_COUNTED_MAX, 0)
    assert rows["alpha"]["requests_hour"] == JOBS_LOOKED_AT


def test_what_a_source_feeds_and_whose_it_is_comes_from_its_layers() -> None:
    """A feed of readings feeds the layer that shows them."""
    describe = described_by(layer_registry())
    for source, layer in (("celestrak_gp", "satellites"), ("awc_metar", "weather_stations")):
        told = describe(source)
        adapter = layer_registry().adapter(layer)
        assert told["layers"][0] == {"id": layer, "title": adapter.title, "title_zh": adapter.title_zh}
        assert told["provenance"] is adapter.provenance and told["stale_after_s"] == adapter.stale_after_s
    assert describe("nobody") == {"layers": [], "provenance": None, "stale_after_s": None}


@pytest.mark.parametrize("asker", [{}, {"Authorization": "Bearer viewer-token"}], ids=["stranger", "viewer"])
@pytest.mark.parametrize("half", ["both", "terminal"])
async def test_the_answer_is_as_the_schema_says_and_tells_strangers_no_texts(
    pg_pool: Pool, tmp_path: Path, half: str, asker: Mapping[str, str]
) -> None:
    """Facts by the ledger, readings by their record; with the Terminal alone the latter."""
    await ended(pg_pool, 3, source="celestrak_gp", message="3 records, 5 rejected (bad_value 5)", sample='{"x":')
    states = FeedStates(tmp_path)
    states.update("awc_metar", {"enabled": True, "reject_codes": {"no_report": 2}, "sample": "secret"})
    store = PostgresSourceStore(pg_pool, [SourceDefaults("celestrak_gp", 7200, 7200)]) if half == "both" else None
    if store is not None:
        await store.ensure()
    guard = Guard("admin-token", "ingest-token", b"key", public_diagnostics=False, viewer_token="viewer-token")
    app, runs = FastAPI(), lambda: states.runs(["awc_metar"])
    app.include_router(sources.router(store, guard, runs=runs, describe=described_by(layer_registry())))
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test", headers=asker) as client:
        body = (await client.get("/api/v1/sources")).json()
    Draft202012Validator(SCHEMA).validate(body)
    samples = {item["source"]: item["sample"] for item in body["items"]}
    told = {"awc_metar": "secret"} | ({"celestrak_gp": '{"x":'} if half == "both" else {})
    assert samples == (told if asker else dict.fromkeys(told))
    assert body["items"][0]["reject_codes"] == {"no_report": 2}
