"""Each role as a process of its own on one database, as on several hosts: together they are the whole path."""

from __future__ import annotations

import httpx

from fix_roles import Start, eventually
from planetwire.database.postgres import Pool


async def test_schedule_worker_relay_and_web_apart_are_one_path(start: Start, pg_pool: Pool) -> None:
    """S1, S10, S45, Q23: the database is all that joins them; the relay leads, the one within `web` stands by."""
    relay = await start("relay")
    leader = await eventually(lambda: pg_pool.fetchval("select leader_holder from earth_log_head"), "a leader")
    web = await start("web")
    url = (await web.said("web.server.started"))["url"]
    worker, schedule = await start("work"), await start("collect")
    done = "select count(*) from collection_tasks where source = 'celestrak_gp' and status = 'completed'"
    await eventually(lambda: pg_pool.fetchval(done), "a scheduled collect that was completed by the worker")
    unconsumed = "select count(*) = 0 from earth_data_change_events where consumed_at is null"
    await eventually(lambda: pg_pool.fetchval(unconsumed), "a consumed outbox")
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as http:
        shown = (await http.get("/api/v1/visualization/satellites")).json()
        assert shown["count"] == await pg_pool.fetchval("select count(*) from collected_data where source like 'cel%'")
        assert shown["count"] >= 12_000
        assert (await http.get("/readyz")).status_code == 200
    assert await pg_pool.fetchval("select leader_holder from earth_log_head") == leader
    assert [await role.stop() for role in (schedule, worker, web, relay)] == [0, 0, 0, 0]


async def test_when_the_relay_ends_the_web_process_takes_over(start: Start, pg_pool: Pool) -> None:
    """S12, S31, Q23: a change made meanwhile is not lost."""
    relay = await start("relay")
    leader = await eventually(lambda: pg_pool.fetchval("select leader_holder from earth_log_head"), "a leader")
    web = await start("web")
    await web.said("web.server.started")
    relay.process.kill()
    await relay.process.wait()
    await pg_pool.execute(
        "insert into collected_data (source, external_key, kind) values ('celestrak_gp', '25544', 'satellite')"
    )
    consumed = "select count(*) from earth_data_change_events where consumed_at is not null"
    await eventually(lambda: pg_pool.fetchval(consumed), "the change consumed by the other relay")
    assert await pg_pool.fetchval("select leader_holder from earth_log_head") != leader
    assert await pg_pool.fetchval("select count(*) from earth_broadcasts") == 1
    assert await web.stop() == 0
    held = await pg_pool.fetchval("select leader_holder from earth_log_head")
    assert held is None, "a leader that was told to end resigns, so that the next one need not wait"
