"""Who did what: each write by a person and its row are one transaction, and a clear is asked for and told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import httpx
import pytest
from fastapi import FastAPI

from ledger_tools import SOMEBODY, claim_one, queue_on, until, wish
from planetwire.audit.audit_postgres import PostgresAuditLog
from planetwire.catalogue.catalogue import Catalogue
from planetwire.database.postgres import Pool
from planetwire.facts.facts_postgres import PostgresFactStore
from planetwire.facts.sources_postgres import PostgresSourceStore
from planetwire.jobs.ledger.board_postgres import PostgresJobBoard
from planetwire.jobs.ledger.desk_postgres import PostgresJobDesk
from planetwire.jobs.ledger.joblog_postgres import PostgresJobLog
from planetwire.jobs.tasks.clear_data import ClearDataTask
from planetwire.model import Actor, JobStatus, Role, SourceDefaults, TaskType
from planetwire.model.acts import AuditQuery
from planetwire.web.access import audit, session
from planetwire.web.access.auth import Guard
from planetwire.web.earth import job_notes, jobs, sources
from planetwire.web.http import problems
from planetwire.wiring.catalogue import rows_counter

TOKEN = "admin-token-of-the-test"
ADMIN = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
async def client(pg_pool: Pool) -> AsyncIterator[httpx.AsyncClient]:
    guard = Guard(TOKEN, "ingest-token-of-the-test", b"key")
    queue = queue_on(pg_pool)
    board, desk, log = PostgresJobBoard(pg_pool), PostgresJobDesk(pg_pool, queue), PostgresAuditLog(pg_pool, 90)
    store = PostgresSourceStore(pg_pool, [SourceDefaults("usgs_quakes", 60, 60)])
    notes = audit.Notes(log, _Clock())
    app = FastAPI()
    problems.install(app)
    app.include_router(jobs.router(desk, board, guard, rows_counter(pg_pool, Catalogue())))
    app.include_router(job_notes.router(board, log, PostgresJobLog(pg_pool, 60), guard))
    app.include_router(sources.router(store, guard, pause=desk.pause, rows_of=rows_counter(pg_pool, Catalogue())))
    app.include_router(session.router(guard, notes, halves=[], simulated=False, version="0"))
    app.include_router(audit.router(log, guard))
    transport = httpx.ASGITransport(app=app, client=("192.0.2.9", 1234))
    async with httpx.AsyncClient(transport=transport, base_url="http://test", headers=ADMIN) as made:
        yield made


class _Clock:
    at = 0.0

    def monotonic(self) -> float:
        return self.at

    def now(self) -> Any: ...

    async def sleep(self, seconds: float) -> None: ...


async def noted(client: httpx.AsyncClient, **wanted: Any) -> list[dict[str, Any]]:
    """What the log says, oldest first."""
    answer = await client.get("/api/v1/audit", params=wanted, headers=ADMIN)
    assert answer.status_code == 200
    return list(reversed(answer.json()["items"]))


async def fill(pool: Pool, source: str, count: int) -> None:
    await pool.execute(
        "insert into collected_data (source, external_key, kind)"
        " select $1, n::text, 'thing' from generate_series(1, $2) n",
        source,
        count,
    )


async def cleared(pool: Pool, source: str = "alpha") -> int:
    """A clear that somebody asked for and that ran to its end."""
    queue = queue_on(pool)
    job, _ = await PostgresJobDesk(pool, queue).submit(SOMEBODY, wish(TaskType.CLEAR_DATA, source))
    lease = await claim_one(queue)
    await ClearDataTask(queue, PostgresFactStore(pool), lambda source: (), 10)(lease)
    await queue.finish(lease, JobStatus.COMPLETED)
    return job.id


async def test_each_write_of_a_person_has_a_row_that_says_who_and_from_where(client: httpx.AsyncClient) -> None:
    body = {"task_type": "collect", "source": "usgs_quakes"}
    task_id = (await client.post("/api/v1/jobs", json=body)).json()["task_id"]
    await client.post(f"/api/v1/jobs/{task_id}/cancel")
    again = (await client.post(f"/api/v1/jobs/{task_id}/retry")).json()["task_id"]
    change = {"enabled": False, "interval_s": 90, "paused": True}
    assert (await client.patch("/api/v1/sources/usgs_quakes", json=change)).status_code == 200
    await client.patch("/api/v1/sources/usgs_quakes", json={"paused": False})
    rows = await noted(client)
    assert [(row["what"], row["task_id"]) for row in rows] == [
        ("job.submitted", task_id),
        ("job.cancelled", task_id),
        ("job.retried", task_id),
        ("job.submitted", again),
        ("source.changed", None),
        ("source.paused", None),
        ("source.resumed", None),
    ]
    assert {(row["who"], row["role"], row["address"]) for row in rows} == {("admin token", "admin", "192.0.2.9")}
    assert {row["source"] for row in rows} == {"usgs_quakes"}
    assert rows[2]["details"] == {"task_type": "collect", "as": again}
    assert rows[3]["details"] == {"task_type": "collect", "created": True, "retry_of": task_id}
    assert rows[4]["details"] == {"enabled": False, "interval_s": 90}


async def test_a_wish_that_changed_nothing_is_no_act(client: httpx.AsyncClient) -> None:
    task_id = (await client.post("/api/v1/jobs", json={"task_type": "collect", "source": "a"})).json()["task_id"]
    for _ in range(2):
        await client.post(f"/api/v1/jobs/{task_id}/cancel")
    await client.patch("/api/v1/sources/usgs_quakes", json={"paused": False})
    await client.patch("/api/v1/sources/usgs_quakes", json={})
    await client.patch("/api/v1/sources/usgs_quakes", json={"interval_s": 1})  # below the floor
    assert [row["what"] for row in await noted(client)] == ["job.submitted", "job.cancelled"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api/v1/jobs", {"task_type": "collect", "source": "b"}),
        ("POST", "/api/v1/jobs/{job}/cancel", {}),
        ("PATCH", "/api/v1/sources/usgs_quakes", {"enabled": False}),
        ("PATCH", "/api/v1/sources/usgs_quakes", {"paused": True}),
        ("POST", "/api/v1/session", {"token": TOKEN}),
    ],
)
async def test_nothing_is_done_without_its_row(
    client: httpx.AsyncClient, pg_pool: Pool, method: str, path: str, body: dict[str, Any]
) -> None:
    task_id = (await client.post("/api/v1/jobs", json={"task_type": "collect", "source": "a"})).json()["task_id"]
    await pg_pool.execute("alter table audit_log rename to audit_log_away")
    state = (
        "select (select jsonb_agg(t) from collection_tasks t), (select count(*) from paused_sources),"
        " (select count(*) from datasources where enabled is not null)"
    )
    before = await pg_pool.fetch(state)
    with pytest.raises(asyncpg.UndefinedTableError):
        await client.request(method, path.format(job=task_id), json=body)
    assert await pg_pool.fetch(state) == before
    assert not client.cookies


async def test_rows_are_added_and_never_changed(client: httpx.AsyncClient, pg_pool: Pool) -> None:
    await client.post("/api/v1/jobs", json={"task_type": "collect", "source": "a"})
    for statement in (
        "update audit_log set who = 'nobody'",
        "delete from audit_log",
        "delete from audit_log where false",
        "truncate audit_log",
    ):
        with pytest.raises(asyncpg.InsufficientPrivilegeError, match="append-only"):
            await pg_pool.execute(statement)
    assert len(await noted(client)) == 1


async def test_a_clear_tells_at_its_end_how_many_rows_it_deleted_and_for_whom(
    client: httpx.AsyncClient, pg_pool: Pool
) -> None:
    await fill(pg_pool, "alpha", 25)
    await fill(pg_pool, "beta", 3)
    task_id = await cleared(pg_pool)
    (row,) = await noted(client, what="data.cleared")
    assert (row["who"], row["task_id"], row["source"], row["rows_deleted"]) == ("somebody", task_id, "alpha", 25)
    assert row["details"] == {"status": "completed"}


async def test_a_clear_that_was_stopped_or_lost_tells_what_it_had_deleted(
    client: httpx.AsyncClient, pg_pool: Pool
) -> None:
    """By whichever statement it ends: here by the ledger itself, after its worker vanished."""
    await fill(pg_pool, "alpha", 25)
    queue = queue_on(pg_pool, rescue_retry_s=0)
    job, _ = await PostgresJobDesk(pg_pool, queue).submit(SOMEBODY, wish(TaskType.CLEAR_DATA))
    lease = await claim_one(queue)
    async with queue.batch(lease) as tx:
        tx.progress(await PostgresFactStore(pg_pool).clear_chunk(tx, "collected_data", "alpha", 10))
    await queue.cancel(job.id)
    await pg_pool.execute("update collection_tasks set lease_until = clock_timestamp() - interval '1 s'")

    async def over() -> bool:
        await queue.rescue()
        return bool(await noted(client, what="data.cleared"))

    await until(over)
    (row,) = await noted(client, what="data.cleared")
    assert (row["rows_deleted"], row["details"]) == (10, {"status": "cancelled"})


async def test_a_clear_that_was_typed_into_the_ledger_is_told_as_the_databases(
    client: httpx.AsyncClient, pg_pool: Pool
) -> None:
    await pg_pool.execute("insert into collection_tasks (task_type, source) values ('clear_data', 'alpha')")
    queue = queue_on(pg_pool)
    await queue.finish(await claim_one(queue), JobStatus.COMPLETED)
    assert [row["who"] for row in await noted(client)] == ["database"]


async def test_repeating_a_clear_needs_a_word_and_is_told_how_many_rows_go(
    client: httpx.AsyncClient, pg_pool: Pool
) -> None:
    task_id = await cleared(pg_pool)
    await fill(pg_pool, "alpha", 1_234)
    refused = await client.post(f"/api/v1/jobs/{task_id}/retry")
    problem = refused.json()
    assert (refused.status_code, problem["code"], problem["status"]) == (409, "confirm_needed", 409)
    assert (problem["source"], problem["rows"], problem["facts"], problem["derived"]) == ("alpha", 1_234, 1_234, {})
    assert "1,234 records of alpha" in problem["detail"]
    for body in ({}, {"confirm": False}):
        assert (await client.post(f"/api/v1/jobs/{task_id}/retry", json=body)).status_code == 409
    assert await pg_pool.fetchval("select count(*) from collection_tasks") == 1
    done = await client.post(f"/api/v1/jobs/{task_id}/retry", json={"confirm": True})
    assert done.status_code == 202 and done.json()["created"]
    odd = await client.post(f"/api/v1/jobs/{task_id}/retry", json={"sure": True})
    assert odd.status_code == 400


async def test_other_work_is_repeated_without_a_word_and_an_active_clear_is_active(
    client: httpx.AsyncClient, pg_pool: Pool
) -> None:
    collect = (await client.post("/api/v1/jobs", json={"task_type": "collect", "source": "a"})).json()["task_id"]
    await client.post(f"/api/v1/jobs/{collect}/cancel")
    assert (await client.post(f"/api/v1/jobs/{collect}/retry")).status_code == 202
    clear = (await client.post("/api/v1/jobs", json={"task_type": "clear_data", "source": "b"})).json()["task_id"]
    assert (await client.post(f"/api/v1/jobs/{clear}/retry")).json()["code"] == "job_active"


async def test_what_a_clear_would_delete_can_be_asked_for(client: httpx.AsyncClient, pg_pool: Pool) -> None:
    await fill(pg_pool, "celestrak_gp", 4)
    await pg_pool.execute(
        """insert into satellite_orbits
               (source, fact_key, norad_id, name, ecc, mean_motion, period_min, apogee_km, perigee_km, regime)
           select source, external_key, 1, 'x', 0, 15, 90, 1, 1, 'LEO' from collected_data limit 3"""
    )
    told = (await client.get("/api/v1/sources/celestrak_gp/rows")).json()
    assert (told["source"], told["facts"], told["derived"]["satellite_orbits"]) == ("celestrak_gp", 4, 3)
    assert told["rows"] == told["facts"] + sum(told["derived"].values())
    assert (await client.get("/api/v1/sources/celestrak_tle/rows")).json()["rows"] == 0  # exactly the named one
    del client.headers["Authorization"]
    assert (await client.get("/api/v1/sources/celestrak_gp/rows")).status_code == 401


async def test_signing_in_and_out_is_told_and_refusals_once_a_minute(client: httpx.AsyncClient) -> None:
    for _ in range(3):
        assert (await client.post("/api/v1/session", json={"token": "wrong"})).status_code == 401
    assert (await client.post("/api/v1/session", json={"token": TOKEN})).status_code == 204
    assert (await client.delete("/api/v1/session")).status_code == 204
    assert (await client.delete("/api/v1/session")).status_code == 204  # nobody was signed in any more
    rows = await noted(client)
    assert [row["what"] for row in rows] == ["session.refused", "session.opened", "session.ended"]
    assert (rows[0]["who"], rows[0]["details"]) == ("unknown", {"code": "unauthorised", "times": 1})
    assert "wrong" not in str(rows) and TOKEN not in str(rows)


async def test_the_log_is_for_admins_and_is_paged_by_cursor(client: httpx.AsyncClient) -> None:
    for number in range(3):
        await client.post("/api/v1/jobs", json={"task_type": "collect", "source": f"s{number}"})
    first = (await client.get("/api/v1/audit", params={"limit": 2})).json()
    rest = (await client.get("/api/v1/audit", params={"limit": 2, "cursor": first["next_cursor"]})).json()
    assert [row["source"] for row in first["items"] + rest["items"]] == ["s2", "s1", "s0"]
    assert rest["next_cursor"] is None
    for wrong in (
        {"limit": 0},
        {"cursor": "x"},
        {"since": "yesterday"},
        {"since": "0001-01-01T00:00:00+14:00"},
        {"job": 0},
        {"who": "a\x00"},
    ):
        answer = await client.get("/api/v1/audit", params=wrong)  # type: ignore[arg-type]
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_request"), wrong
    del client.headers["Authorization"]
    assert (await client.get("/api/v1/audit")).status_code == 401


async def test_a_signed_in_page_reads_what_is_told_beside_a_job_and_others_do_not(
    client: httpx.AsyncClient, pg_pool: Pool
) -> None:
    """A page's own reading carries no Origin."""
    await fill(pg_pool, "alpha", 5)
    task_id = await cleared(pg_pool)
    del client.headers["Authorization"]
    for path in ("acts", "log"):
        assert (await client.get(f"/api/v1/jobs/{task_id}/{path}")).status_code == 401
    await client.post("/api/v1/session", json={"token": TOKEN})
    acts = (await client.get(f"/api/v1/jobs/{task_id}/acts")).json()["items"]
    assert [(act["what"], act["who"], act["rows_deleted"]) for act in acts] == [
        ("data.cleared", "somebody", 5),
        ("job.submitted", "somebody", None),
    ]
    assert all("address" not in act for act in acts)
    assert (await client.get(f"/api/v1/jobs/{task_id}/log")).json() == {"items": [], "next_cursor": None}
    assert (await client.get("/api/v1/jobs/999/log")).status_code == 404


async def test_an_act_of_several_dead_jobs_names_each(client: httpx.AsyncClient, pg_pool: Pool) -> None:
    queue = queue_on(pg_pool)
    desk, board = PostgresJobDesk(pg_pool, queue), PostgresJobBoard(pg_pool)
    ids = []
    for _ in range(3):
        job, _ = await queue.submit(wish())
        await queue.cancel(job.id)
        ids.append(job.id)
    again, _ = await desk.retry(Actor("ben", Role.OPERATOR, "local"), [await board.get(each) for each in ids])
    log = PostgresAuditLog(pg_pool, 90)
    entries, _ = await log.page(AuditQuery(who="ben", what="job.retried"), None, 10)
    assert sorted(entry.act.task_id or 0 for entry in entries) == ids
    assert {entry.act.details["as"] for entry in entries} == {again.id}
