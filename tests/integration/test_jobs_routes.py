"""The HTTP side of the ledger and the sources, over a real database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from ledger_tools import ALL_TYPES, claim_one, queue_on, row_of
from planetwire.audit.audit_postgres import PostgresAuditLog
from planetwire.catalogue.catalogue import Catalogue
from planetwire.database.postgres import Pool
from planetwire.errors import NotFound
from planetwire.facts.sources_postgres import PostgresSourceStore
from planetwire.jobs.ledger.board_postgres import PostgresJobBoard
from planetwire.jobs.ledger.desk_postgres import PostgresJobDesk
from planetwire.jobs.ledger.joblog_postgres import PostgresJobLog
from planetwire.model import JobRequest, JobStatus, SourceDefaults
from planetwire.web.access import audit
from planetwire.web.access.auth import Guard
from planetwire.web.earth import job_notes, jobs, sources
from planetwire.web.http import problems
from planetwire.wiring.catalogue import rows_counter

ADMIN = {"Authorization": "Bearer admin-token"}
ALIASES = {"celestrak_tle": "celestrak_gp"}


@pytest.fixture
async def client(pg_pool: Pool) -> AsyncIterator[httpx.AsyncClient]:
    guard = Guard("admin-token", "ingest-token", b"key", public_diagnostics=False, viewer_token="viewer-token")
    queue = queue_on(pg_pool)
    store = PostgresSourceStore(
        pg_pool, [SourceDefaults("celestrak_gp", 7200, 7200), SourceDefaults("usgs_quakes", 60, 60)]
    )
    await store.ensure()
    app = FastAPI()
    problems.install(app)
    canonical = lambda source: ALIASES.get(source, source)  # noqa: E731
    board, desk = PostgresJobBoard(pg_pool), PostgresJobDesk(pg_pool, queue)
    counted = rows_counter(pg_pool, Catalogue())
    app.include_router(jobs.router(desk, board, guard, counted, canonical, admit=_no_fairies))
    audit_log = PostgresAuditLog(pg_pool, keep_days=90)
    app.include_router(job_notes.router(board, audit_log, PostgresJobLog(pg_pool, keep_s=60), guard))
    app.include_router(audit.router(audit_log, guard))
    runs = lambda: [{"source": "awc_metar", "enabled": True}]  # noqa: E731
    app.include_router(sources.router(store, guard, pause=desk.pause, rows_of=counted, runs=runs, canonical=canonical))
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test", headers=ADMIN) as made:
        yield made


def _no_fairies(request: JobRequest) -> JobRequest:
    if request.source == "fairies":
        raise NotFound("there is no feed fairies")
    return request


async def _submit(client: httpx.AsyncClient, **body: Any) -> httpx.Response:
    return await client.post("/api/v1/jobs", json=body)


async def test_submitting_only_writes_the_row_and_answers_with_its_id(client: httpx.AsyncClient, pg_pool: Pool) -> None:
    """S44, Q28."""
    answer = await _submit(client, task_type="collect", source="celestrak_gp", priority=5, payload={"a": 1})
    assert answer.status_code == 202
    task_id = answer.json()["task_id"]
    assert answer.json() == {"task_id": task_id, "status": "queued", "created": True}
    row = await row_of(pg_pool, task_id)
    assert (row["status"], row["priority"], row["payload"]) == ("queued", 5, {"a": 1})
    again = await _submit(client, task_type="collect", source="celestrak_tle")
    assert again.status_code == 202 and again.json() == {"task_id": task_id, "status": "queued", "created": False}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"task_type": "paint", "source": "a"}, "bad_request"),
        ({"task_type": "collect"}, "source_missing"),
        ({"task_type": "clear_data", "source": ""}, "bad_request"),
        ({"task_type": "collect", "source": "a" * 101}, "bad_request"),
        ({"task_type": "collect", "source": "a\x00"}, "bad_request"),
        ({"task_type": "collect", "source": "a", "priority": 1e12}, "bad_request"),
        ({"task_type": "collect", "source": "a", "payload": [1]}, "bad_request"),
        ({"task_type": "collect", "source": "a", "payload": {"t": "x" * 20_000}}, "payload_too_large"),
        ({"task_type": "collect", "source": "a", "payload": {"t": "x\x00"}}, "bad_payload"),
        ({"task_type": "collect", "source": "a", "payload": {"n": 2**70}}, "bad_payload"),
        ({"task_type": "collect", "source": "a", "sauce": 1}, "bad_request"),
        ({"task_type": "collect", "source": "a", "idempotency_key": ""}, "bad_request"),
        ([], "bad_request"),
    ],
)
async def test_a_body_we_cannot_accept_is_a_400_with_a_code(
    body: Any, code: str, client: httpx.AsyncClient, pg_pool: Pool
) -> None:
    answer = await client.post("/api/v1/jobs", json=body)
    assert (answer.status_code, answer.json()["code"]) == (400, code)
    assert answer.headers["content-type"] == "application/problem+json"
    assert await pg_pool.fetchval("select count(*) from collection_tasks") == 0


async def test_a_wish_that_no_handler_could_fulfil_is_answered_at_once(
    client: httpx.AsyncClient, pg_pool: Pool
) -> None:
    answer = await _submit(client, task_type="collect", source="fairies")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert await pg_pool.fetchval("select count(*) from collection_tasks") == 0


async def test_writing_needs_credentials_and_reading_does_not(client: httpx.AsyncClient) -> None:
    task_id = (await _submit(client, task_type="collect", source="a")).json()["task_id"]
    for path in ("/api/v1/jobs", f"/api/v1/jobs/{task_id}/cancel", f"/api/v1/jobs/{task_id}/retry"):
        assert (await client.post(path, json={}, headers={"Authorization": "Bearer wrong"})).status_code == 401
    del client.headers["Authorization"]
    assert (await client.post(f"/api/v1/jobs/{task_id}/cancel")).status_code == 401
    assert (await client.patch("/api/v1/sources/usgs_quakes", json={"enabled": False})).status_code == 401
    assert (await client.get("/api/v1/jobs")).status_code == 200
    assert (await client.get("/api/v1/sources")).status_code == 200


async def test_a_row_has_the_ledgers_columns_and_times_with_z(client: httpx.AsyncClient, pg_pool: Pool) -> None:
    """S45."""
    task_id = (await _submit(client, task_type="earth_refresh", payload={"layer": "satellites"})).json()["task_id"]
    shown = (await client.get(f"/api/v1/jobs/{task_id}")).json()
    row = await row_of(pg_pool, task_id)
    assert set(shown) == set(row.keys()) - {"parked", "lane"}
    assert shown["id"] == task_id and shown["source"] is None and shown["progress"] == 0
    assert shown["created_at"].endswith("Z")
    assert datetime.fromisoformat(shown["created_at"]) == row["created_at"]


async def test_the_list_is_filtered_and_paged(client: httpx.AsyncClient) -> None:
    ids = [(await _submit(client, task_type="collect", source=f"s{n}")).json()["task_id"] for n in range(5)]
    await client.post(f"/api/v1/jobs/{ids[0]}/cancel")
    page = (await client.get("/api/v1/jobs", params={"limit": 2})).json()
    assert [job["id"] for job in page["items"]] == [ids[4], ids[3]] and page["next_cursor"] == ids[3]
    page = (await client.get("/api/v1/jobs", params={"cursor": ids[1], "limit": 2})).json()
    assert [job["id"] for job in page["items"]] == [ids[0]] and page["next_cursor"] is None
    only = (await client.get("/api/v1/jobs", params={"status": "cancelled"})).json()
    assert [job["id"] for job in only["items"]] == [ids[0]]
    only = (await client.get("/api/v1/jobs", params={"source": "s3"})).json()
    assert [job["id"] for job in only["items"]] == [ids[3]]
    for wrong in ({"limit": 0}, {"limit": "x"}, {"limit": 9999}, {"cursor": "x"}, {"status": "resting"}):
        answer = await client.get("/api/v1/jobs", params=wrong)
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")


async def test_every_status_of_the_ledger_can_be_asked_for_and_a_wrong_one_is_told_all(
    client: httpx.AsyncClient,
) -> None:
    words = [*JobStatus, "dead"]
    for word in words:
        assert (await client.get("/api/v1/jobs", params={"status": word})).status_code == 200
    refused = (await client.get("/api/v1/jobs", params={"status": "daed"})).json()
    assert refused["code"] == "bad_request" and all(word in refused["detail"] for word in words)


async def test_dead_jobs_are_listed_until_they_are_tried_again_and_all_are_counted(
    client: httpx.AsyncClient, pg_pool: Pool
) -> None:
    ids = [(await _submit(client, task_type="collect", source=f"s{n}")).json()["task_id"] for n in range(3)]
    queue = queue_on(pg_pool)
    for _ in ids[:2]:
        await queue.finish(await claim_one(queue), JobStatus.FAILED, error=("not_found", "gone"))
    assert (await client.get("/api/v1/jobs/counts")).json() == {"running": 0, "queued": 1, "dead": 2}
    page = (await client.get("/api/v1/jobs", params={"status": "dead", "limit": 1})).json()
    assert [job["id"] for job in page["items"]] == [ids[1]] and page["next_cursor"] == ids[1]
    page = (await client.get("/api/v1/jobs", params={"status": "dead", "source": "s0"})).json()
    assert [job["id"] for job in page["items"]] == [ids[0]]
    again = (await client.post(f"/api/v1/jobs/{ids[0]}/retry")).json()["task_id"]
    page = (await client.get("/api/v1/jobs", params={"status": "dead"})).json()
    assert [job["id"] for job in page["items"]] == [ids[1]]
    assert (await client.get(f"/api/v1/jobs/{ids[0]}")).json()["retried_as"] == again


async def test_cancel_and_retry_answer_202_and_409_as_the_state_allows(
    client: httpx.AsyncClient, pg_pool: Pool
) -> None:
    """S48, Q17."""
    task_id = (await _submit(client, task_type="collect", source="a")).json()["task_id"]
    early = await client.post(f"/api/v1/jobs/{task_id}/retry")
    assert (early.status_code, early.json()["code"]) == (409, "job_active")
    queue = queue_on(pg_pool)
    lease = await claim_one(queue)
    for _ in range(2):
        asked = await client.post(f"/api/v1/jobs/{task_id}/cancel")
        assert (asked.status_code, asked.json()) == (202, {"task_id": task_id, "status": "cancelling"})
    await queue.finish(lease, JobStatus.CANCELLED)
    late = await client.post(f"/api/v1/jobs/{task_id}/cancel")
    assert (late.status_code, late.json()["code"]) == (409, "job_final")
    again = await client.post(f"/api/v1/jobs/{task_id}/retry")
    assert again.status_code == 202 and again.json()["created"] and again.json()["task_id"] != task_id


@pytest.mark.parametrize(("task_id", "status"), [("999", 404), ("0", 400), ("x", 400), (str(2**63), 400)])
async def test_a_job_that_is_not_there_is_404_and_a_wrong_id_400(
    task_id: str, status: int, client: httpx.AsyncClient
) -> None:
    for method, path in (("GET", ""), ("POST", "/cancel"), ("POST", "/retry")):
        answer = await client.request(method, f"/api/v1/jobs/{task_id}{path}")
        assert answer.status_code == status, path


async def test_an_idempotency_key_that_names_other_work_is_a_409(client: httpx.AsyncClient) -> None:
    first = await _submit(client, task_type="collect", source="a", idempotency_key="k")
    same = await _submit(client, task_type="collect", source="a", idempotency_key="k")
    other = await _submit(client, task_type="clear_data", source="a", idempotency_key="k")
    assert same.json()["task_id"] == first.json()["task_id"] and not same.json()["created"]
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_key_reused")


async def test_sources_of_both_halves_are_listed_and_those_of_the_ledger_can_be_set(client: httpx.AsyncClient) -> None:
    listing = (await client.get("/api/v1/sources")).json()
    assert [item["source"] for item in listing["items"]] == ["awc_metar", "celestrak_gp", "usgs_quakes"]
    assert listing["next_cursor"] is None
    changed = await client.patch("/api/v1/sources/celestrak_tle", json={"enabled": False, "interval_s": 9000})
    assert changed.status_code == 200
    assert {k: changed.json()[k] for k in ("source", "enabled", "interval_s", "floor_s")} == {
        "source": "celestrak_gp",
        "enabled": False,
        "interval_s": 9000,
        "floor_s": 7200,
    }
    below = await client.patch("/api/v1/sources/celestrak_gp", json={"interval_s": 60})
    assert (below.status_code, below.json()["code"]) == (400, "below_floor")
    assert (await client.patch("/api/v1/sources/nobody", json={"enabled": True})).status_code == 404
    fixed = await client.patch("/api/v1/sources/awc_metar", json={"enabled": False})
    assert (fixed.status_code, fixed.json()["code"]) == (400, "not_changeable")
    for wrong in ({"interval_s": -1}, {"enabled": "perhaps"}, {"colour": 1}, {"misfire": "twice"}, {"cron": 5}):
        assert (await client.patch("/api/v1/sources/usgs_quakes", json=wrong)).status_code == 400


async def test_a_paused_source_runs_nothing_until_it_goes_on(client: httpx.AsyncClient, pg_pool: Pool) -> None:
    async def paused() -> list[bool]:
        items = (await client.get("/api/v1/sources")).json()["items"]
        return [item["paused"] for item in items if "paused" in item]

    assert await paused() == [False, False]
    for _ in range(2):
        record = (await client.patch("/api/v1/sources/celestrak_tle", json={"paused": True})).json()
        assert record["paused"] and record["enabled"] and await paused() == [True, False]
    await _submit(client, task_type="collect", source="celestrak_gp")
    assert await queue_on(pg_pool).claim("w1", ALL_TYPES, 5) == []
    assert (await client.patch("/api/v1/sources/celestrak_gp", json={"misfire": "skip"})).json()["paused"]
    for _ in range(2):
        assert not (await client.patch("/api/v1/sources/celestrak_gp", json={"paused": False})).json()["paused"]
    assert (await claim_one(queue_on(pg_pool))).job.source == "celestrak_gp"
    refused = await client.patch("/api/v1/sources/celestrak_gp", json={"paused": True, "cron": "* * * * *"})
    assert refused.json()["code"] == "below_floor" and await paused() == [False, False]
    assert (await client.patch("/api/v1/sources/nobody", json={"paused": True})).status_code == 404


async def test_a_calendar_is_set_over_http_and_what_is_none_is_refused_with_its_code(client: httpx.AsyncClient) -> None:
    async def patch(**change: Any) -> Any:
        return (await client.patch("/api/v1/sources/celestrak_gp", json=change)).json()

    record = await patch(cron="0 4 * * 1-5", time_zone="Asia/Shanghai", misfire="skip")
    assert (record["cron"], record["time_zone"], record["misfire"]) == ("0 4 * * 1-5", "Asia/Shanghai", "skip")
    assert [text[10:] for text in record["upcoming"]] == ["T20:00:00Z"] * 3
    assert (await patch(enabled=False))["cron"] == "0 4 * * 1-5"
    refusals = {"bad_cron": {"cron": "0 0 30 2 *"}, "below_floor": {"cron": "*/30 * * * *"}}
    refusals |= {"bad_time_zone": {"time_zone": "Asia/Atlantis"}, "bad_interval": {"interval_s": 1e10}}
    for code, change in refusals.items():
        assert (await patch(**change))["code"] == code
    record = await patch(cron=None, time_zone=None, misfire=None, interval_s=None, enabled=None)
    assert (record["cron"], record["time_zone"], record["misfire"], record["upcoming"]) == (None, "UTC", "once", [])
    assert (record["enabled"], record["interval_s"]) == (True, 7200)


async def test_a_clearing_is_written_under_the_very_name_that_was_given(
    client: httpx.AsyncClient, pg_pool: Pool
) -> None:
    """A collect of the other spelling is one of the source; what is deleted is what was named."""
    made = (await _submit(client, task_type="clear_data", source="celestrak_tle")).json()
    row = await row_of(pg_pool, made["task_id"])
    assert (row["task_type"], row["source"]) == ("clear_data", "celestrak_tle")


async def test_strangers_see_that_a_job_failed_and_not_how(client: httpx.AsyncClient, pg_pool: Pool) -> None:
    """What a feed answered, or where it was asked, is for those who are signed in."""
    task_id = (await _submit(client, task_type="collect", source="celestrak_gp")).json()["task_id"]
    await pg_pool.execute(
        "update collection_tasks set status = 'failed', error_code = 'transient', error = 'cannot reach 10.1.2.3',"
        " message = 'cannot reach 10.1.2.3', sample = '<html>', finished_at = now() where id = $1",
        task_id,
    )
    for headers, told in (({"Authorization": "Bearer viewer-token"}, True), ({"Authorization": ""}, False)):
        paths = (f"/api/v1/jobs/{task_id}", "/api/v1/jobs", "/api/v1/jobs?status=dead")
        texts = [(await client.get(path, headers=headers)).text for path in paths]
        assert all('"transient"' in text for text in texts)
        assert [("10.1.2.3" in text, "<html>" in text) for text in texts] == [(told, told)] * 3
