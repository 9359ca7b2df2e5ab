"""Each stage of the path is broken once, and `planetwire doctor` names it while it is broken."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from cable import Cable
from fix_earth import TOKEN, Earth
from ledger_tools import SOMEBODY, until
from planetwire.collect.feedstate_file import FeedStates
from planetwire.database.postgres import Pool, connect
from planetwire.datasets.registry import layer_registry
from planetwire.diagnosis import path as diagnosing
from planetwire.diagnosis.path import watched_tables
from planetwire.errors import BackendError
from planetwire.jobs.ledger.diagnosis_postgres import examine_ledger
from planetwire.model import Json
from planetwire.model.finding import PATH, first_broken
from planetwire.outbox.changelog_postgres import PostgresChangeLog
from planetwire.outbox.registry_postgres import write_feeds
from planetwire.outbox.upkeep.canary_postgres import SOURCE, release_canary
from planetwire.outbox.upkeep.diagnosis_postgres import examine
from planetwire.outbox.upkeep.server_postgres import examine_server
from planetwire.outbox.wakeup_postgres import PostgresWakeup
from planetwire.relay.payload import payload
from planetwire.supervise.doctor import healthy, render
from planetwire.supervise.embedded_postgres import EmbeddedPostgres, dsn_of

FACT = "insert into collected_data (source, external_key, kind) values ($1, '1', 'k')"


def codes(steps: dict[str, Json], name: str) -> set[str]:
    return {finding["code"] for finding in steps[name]["findings"]}


def broken(steps: dict[str, Json]) -> str | None:
    found = first_broken(list(steps.values()))
    return str(found["step"]) if found else None


async def test_a_healthy_path_is_seven_steps_with_a_canary_timed_through_each(earth: Earth) -> None:
    """S88."""
    steps = await earth.doctor()
    assert healthy(list(steps.values())), render(list(steps.values()))
    numbered = sorted((step["number"], name) for name, step in steps.items() if step["number"])
    assert numbered == list(enumerate(PATH, 1))
    assert steps["triggers"]["timings"]["trigger_ms"] >= 0
    assert steps["outbox"]["timings"]["published_ms"] > 0
    assert steps["websocket"]["timings"]["heard_ms"] > 0
    assert steps["websocket"]["timings"]["revision"] == steps["outbox"]["timings"]["revision"] > 0
    assert "All stages work." in render(list(steps.values()))


async def test_the_canary_is_on_no_picture_and_leaves_nothing_behind(earth: Earth) -> None:
    await earth.doctor()
    await earth.doctor()
    assert await earth.pool.fetchval("select count(*) from collected_data") == 0
    assert await earth.pool.fetchval("select count(*) from datasources where source = $1", SOURCE) == 0
    assert await earth.pool.fetchval("select count(*) from earth_data_change_events where consumed_at is null") == 0
    assert {row["layer"] for row in await earth.pool.fetch("select layer from earth_broadcasts")} == {"canary"}
    async with httpx.AsyncClient(base_url=earth.url, trust_env=False) as client:
        assert "canary" not in (await client.get("/api/v1/layers")).text
        assert (await client.get("/api/v1/visualization/canary")).status_code == 404


async def test_a_doctor_that_dies_in_the_middle_leaves_nothing_behind(pg_pool: Pool, pg_dsn: str) -> None:
    blocked = (
        "select pid from pg_stat_activity where application_name = 'planetwire dying' and wait_event_type = 'Lock'"
    )
    doctor = await connect(pg_dsn, application="dying")
    async with pg_pool.acquire() as other, other.transaction():
        await other.execute("lock table earth_data_change_events in share mode")
        dying = asyncio.ensure_future(release_canary(doctor, 20))

        async def is_blocked() -> bool:
            return await pg_pool.fetchval(blocked) is not None

        await until(is_blocked)
        await pg_pool.execute(f"select pg_terminate_backend(({blocked}))")
        await asyncio.wait([dying])
    assert dying.exception() is not None or (dying.result().refused and not dying.result().ids)
    doctor.terminate()
    for table in ("collected_data", "earth_data_change_events"):
        assert await pg_pool.fetchval(f"select count(*) from {table}") == 0


async def test_a_change_of_a_whole_table_passes_the_canary_by(earth: Earth) -> None:
    await earth.pool.execute(FACT, "usgs_quakes")
    await earth.pool.execute("truncate collected_data cascade")
    await earth.pool.execute("insert into earth_refresh_hints (action) values ('manual_refresh')")

    async def through() -> bool:
        return not await earth.pool.fetchval(
            "select (select count(*) from earth_data_change_events where consumed_at is null)"
            " + (select count(*) from earth_refresh_hints where consumed_at is null)"
        )

    await until(through)
    layers = {row["layer"] for row in await earth.pool.fetch("select layer from earth_broadcasts")}
    assert {"earthquakes", "satellites"} <= layers and "canary" not in layers


async def test_facts_that_search_does_not_know_yet_are_a_warning(earth: Earth) -> None:
    """Nobody works here."""
    await earth.pool.execute(FACT, "usgs_quakes")
    assert not (await earth.doctor())["facts"]["findings"]
    await earth.pool.execute("update derived_pending set written_at = written_at - interval '2 minutes'")
    facts = (await earth.doctor())["facts"]
    assert facts["ok"] and [finding["code"] for finding in facts["findings"]] == ["search_late"]


async def test_a_table_that_takes_no_writes_is_the_first_stage(earth: Earth, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosing, "WRITE_S", 1.0)
    async with earth.pool.acquire() as other, other.transaction():
        await other.execute("lock table collected_data in share mode")
        steps = await earth.doctor()
    assert broken(steps) == "facts" and "canary_refused" in codes(steps, "facts")


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        ("drop trigger tr_planet_collected_data_changed_insert on collected_data", "trigger_missing"),
        ("alter table collected_data disable trigger tr_planet_collected_data_changed_insert", "trigger_disabled"),
    ],
)
async def test_a_trigger_that_is_gone_or_off_is_named_and_repaired(earth: Earth, damage: str, code: str) -> None:
    await earth.pool.execute(damage)
    steps = await earth.doctor()
    assert broken(steps) == "triggers"
    assert codes(steps, "triggers") == {code, "canary_unwritten"}
    assert "tr_planet_collected_data_changed_insert on collected_data" in steps["triggers"]["detail"]
    assert f"docs/operations.md#{code}" in render(list(steps.values()))
    assert await diagnosing.repair(str(earth.settings.database_url), SOMEBODY) == 1
    assert broken(await earth.doctor()) is None


async def test_without_a_relay_the_relay_is_named_and_not_the_rows_that_wait_for_it(
    earth: Earth, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S88."""
    monkeypatch.setattr(diagnosing, "CANARY_S", 0.5)
    await earth.stop("relay")
    steps = await earth.doctor()
    assert broken(steps) == "listener" and codes(steps, "listener") == {"relay_absent"}
    assert codes(steps, "outbox") == {"canary_unpublished"}
    assert "First broken stage: A relay leads and listens" in render(list(steps.values()))


async def test_a_leader_that_does_nothing_is_named_by_what_it_leaves(
    earth: Earth, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnosing, "CANARY_S", 0.5)
    await earth.stop("relay")
    assert await PostgresChangeLog(earth.pool, payload).lead("hung", 60)
    steps = await earth.doctor()
    assert broken(steps) == "outbox" and codes(steps, "outbox") == {"canary_unpublished"}
    assert "leader hung for" in steps["listener"]["detail"]


async def test_a_listener_in_a_black_hole_is_named(pg_cluster: EmbeddedPostgres, pg_dsn: str, pg_pool: Pool) -> None:
    """The server still has its session; only its silence shows."""
    assert await PostgresChangeLog(pg_pool, payload).lead("somebody", 60)
    with Cable(f"unix:{pg_cluster.socket_dir}/.s.PGSQL.5432") as cable:
        dsn = f"postgresql://planetwire@127.0.0.1:{cable.port}{urlsplit(pg_dsn).path}"
        doorbell = PostgresWakeup(dsn, ["planet_earth_data_changes"], self_test_s=0.1)
        bell = doorbell.bell("planet_earth_data_changes")
        doorbell.start()
        assert await bell.wait(20)

        async def found() -> Json:
            async with pg_pool.acquire() as connection:
                steps = await examine(connection, watched_tables(), silent_s=2)
            return {} if (step := first_broken(steps)) is None else step

        assert not await found()
        cable.swallow()

        async def is_named() -> bool:
            return bool((await found()).get("findings", [{}])[0].get("code") == "listener_silent")

        await until(is_named)
        await doorbell.aclose()


async def test_nobody_listening_is_a_fault_of_its_own(pg_pool: Pool) -> None:
    assert await PostgresChangeLog(pg_pool, payload).lead("somebody", 60)
    async with pg_pool.acquire() as connection:
        steps = await examine(connection, watched_tables())
    assert (first_broken(steps) or {})["findings"][0]["code"] == "listener_absent"


async def test_a_quarantined_row_is_named(earth: Earth) -> None:
    await earth.pool.execute(
        "insert into earth_data_change_events (table_name, operation, source, attempts, next_attempt_at, last_error)"
        " values ('collected_data', 'INSERT', 'usgs_quakes', 5, 'infinity', 'boom')"
    )
    steps = await earth.doctor()
    assert broken(steps) == "outbox" and codes(steps, "outbox") == {"outbox_quarantined"}
    assert steps["websocket"]["timings"]["heard_ms"] > 0  # it stands in nobody's way


async def test_a_pair_without_a_layer_is_named(earth: Earth) -> None:
    """S88: as long as its facts are there."""
    await earth.pool.execute(FACT, "nobody_knows_it")

    async def skipped() -> bool:
        return bool(await earth.pool.fetchval("select count(skipped_reason) from earth_data_change_events"))

    await until(skipped)
    steps = await earth.doctor()
    assert broken(steps) == "adapter" and codes(steps, "adapter") == {"pair_unmapped"}
    assert "collected_data/nobody_knows_it (1)" in steps["adapter"]["detail"]
    await earth.pool.execute("delete from collected_data where source = 'nobody_knows_it'")

    async def consumed() -> bool:
        return not await earth.pool.fetchval("select count(*) from earth_data_change_events where consumed_at is null")

    await until(consumed)
    steps = await earth.doctor()
    assert steps["adapter"]["ok"], "what came and went is over, though the outbox remembers it for a day"


async def test_a_pair_that_has_a_layer_by_now_is_not_named_and_one_of_another_table_for_some_minutes(
    pg_pool: Pool,
) -> None:
    """S88: adapters are asked as they are now; a row that was skipped once says nothing of today."""
    await pg_pool.execute(
        """insert into earth_data_change_events (table_name, operation, source, skipped_reason, consumed_at)
           values ('satellite_orbits', 'INSERT', 'nobody', 'unmapped', clock_timestamp()),
               ('satellite_orbits', 'DELETE', null, 'unmapped', clock_timestamp()),
               ('satellite_orbits', 'INSERT', 'celestrak_gp', 'unmapped', clock_timestamp()),
               ('collected_data', 'INSERT', 'usgs_quakes', 'unmapped', clock_timestamp())"""
    )
    await write_feeds(pg_pool, layer_registry().feeds())
    await pg_pool.execute("insert into collected_data (source, external_key, kind) values ('usgs_quakes', 'a', 'x')")

    async def adapter() -> Json:
        async with pg_pool.acquire() as connection:
            return next(one for one in await examine(connection, watched_tables()) if one["step"] == "adapter")

    found = await adapter()
    assert "satellite_orbits/nobody (1)" in found["detail"] and found["detail"].count("/") == 1
    await pg_pool.execute("update earth_data_change_events set consumed_at = consumed_at - interval '11 minutes'")
    assert (await adapter())["ok"]


async def test_a_web_process_that_is_down_is_named_and_the_relay_is_not(earth: Earth) -> None:
    with socket.socket() as sock:  # a port that nobody answers at
        sock.bind(("127.0.0.1", 0))
        earth.settings = earth.settings.model_copy(update={"port": sock.getsockname()[1]})
        steps = await earth.doctor()
    assert broken(steps) == "websocket" and codes(steps, "websocket") == {"websocket_down"}
    assert steps["outbox"]["timings"]["published_ms"] > 0
    assert codes(steps, "visualization") == {"snapshots_down"} and codes(steps, "ready") == {"not_ready"}


async def test_a_web_process_that_sends_nothing_is_named(earth: Earth, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosing, "DELIVERY_S", 0.5)
    await earth.stop("tail")
    steps = await earth.doctor()
    assert broken(steps) == "websocket" and codes(steps, "websocket") == {"canary_unheard"}


async def test_a_long_transaction_is_a_warning_with_its_pid_and_name(pg_pool: Pool, pg_dsn: str) -> None:
    repair = await connect(pg_dsn, application="repair")
    await repair.execute("begin; select pg_current_xact_id()")
    pid = await repair.fetchval("select pg_backend_pid()")
    async with pg_pool.acquire() as connection:
        step = await examine_server(connection, long_s=0)
        assert not (await examine_server(connection, long_s=300))["findings"]
    await repair.close()
    assert step["ok"] and [finding["code"] for finding in step["findings"]] == ["long_transaction"]
    assert f"pid {pid}, planetwire repair, idle in transaction" in step["detail"]


async def test_a_snapshot_that_is_held_open_is_a_warning_with_who_holds_it(pg_pool: Pool, pg_dsn: str) -> None:
    """S88. What writes nothing keeps old rows alive too. Others of the cluster may hold one, but none as long."""
    reader = await connect(pg_dsn, application="held")
    await reader.execute("begin isolation level repeatable read; select from collected_data")
    pid = await reader.fetchval("select pg_backend_pid()")
    for _ in range(50):
        await pg_pool.execute("select pg_current_xact_id()")
    async with pg_pool.acquire() as connection:
        step = await examine_server(connection, old_xmin=20)
        assert not (await examine_server(connection))["findings"]
        await reader.execute("commit")
        after = await examine_server(connection, old_xmin=20)
    await reader.close()
    assert step["ok"] and [finding["code"] for finding in step["findings"]] == ["xmin_held"]
    assert f"transactions back: pid {pid}, planetwire held" in step["detail"]
    assert not after["findings"], after


async def test_a_session_that_listens_and_does_not_read_fills_the_queue_and_is_a_warning(
    pg_pool: Pool, pg_dsn: str
) -> None:
    """A LISTEN inside a transaction that stays open: what was sent since waits, whatever the others have read."""
    deaf = await connect(pg_dsn, application="deaf")
    await deaf.execute("listen elsewhere")
    await deaf.execute("begin")
    await pg_pool.execute("select pg_notify('some', n || repeat('x', 7000)) from generate_series(1, 400) n")
    async with pg_pool.acquire() as connection:
        step = await examine_server(connection, queue_max=1e-4)
        assert not (await examine_server(connection))["findings"], "a small share is nothing to worry about"
        await deaf.execute("commit")
        await deaf.fetchval("select 1")  # reads what waits

        async def is_empty() -> bool:
            await connection.execute("select pg_notify('some', '')")  # who sends moves the tail along
            return not (await examine_server(connection, queue_max=1e-4))["findings"]

        await until(is_empty)
    await deaf.close()
    assert step["ok"] and [finding["code"] for finding in step["findings"]] == ["notify_queue"]


async def test_an_index_that_is_not_valid_is_a_warning(pg_pool: Pool) -> None:
    async with pg_pool.acquire() as connection:
        await connection.execute("create table twice (n integer); insert into twice values (1), (1)")
        with pytest.raises(Exception, match="could not create unique index"):
            await connection.execute("create unique index concurrently twice_n on twice (n)")
        step = await examine_server(connection)
    assert step["ok"] and "not valid: twice_n" in step["detail"]


async def test_the_ledger_says_what_nobody_takes_up(pg_pool: Pool) -> None:
    async with pg_pool.acquire() as connection:
        assert not (await examine_ledger(connection))["findings"]
        await connection.execute(
            "insert into collection_tasks (task_type, source) values"
            " ('collect', 'late'), ('collect', 'lost'), ('collect', 'dead'), ('collect', 'old');"
            "update collection_tasks set status = 'running', lease_until = clock_timestamp() - interval '1 minute'"
            " where source = 'late';"
            "update collection_tasks set parked = 'source' where source = 'lost';"
            "update collection_tasks set status = 'failed', finished_at = clock_timestamp() where source = 'dead';"
            "update collection_tasks set created_at = clock_timestamp() - interval '1 hour' where source = 'old'"
        )
        step = await examine_ledger(connection)
        found = [finding["code"] for finding in step["findings"]]
        assert found == ["lease_expired", "jobs_unseen", "jobs_waiting", "jobs_dead"] and not step["ok"]
        assert await connection.fetchval("select parked from collection_tasks where source = 'lost'") == "source"


async def test_the_diagnostic_over_http_reads_only_and_sends_a_canary_when_an_admin_asks(earth: Earth) -> None:
    async with httpx.AsyncClient(base_url=earth.url, trust_env=False, timeout=60) as client:
        seen = (await client.get("/api/v1/diagnostics")).json()
        assert seen["broken"] is None and seen["checks"] == {"postgres": "ok", "relay": "ok"}
        assert [step["step"] for step in seen["steps"]][:5] == list(PATH[:5])
        assert await earth.pool.fetchval("select count(*) from earth_data_change_events") == 0
        assert (await client.post("/api/v1/diagnostics")).status_code == 401
        sent = (await client.post("/api/v1/diagnostics", headers={"Authorization": f"Bearer {TOKEN}"})).json()
    assert sent["broken"] is None
    steps = {step["step"]: step for step in sent["steps"]}
    assert steps["websocket"]["timings"]["heard_ms"] > 0 and steps["triggers"]["timings"]["trigger_ms"] >= 0


async def test_a_database_that_is_down_is_said_at_once(earth: Earth, pg_cluster: EmbeddedPostgres) -> None:
    nowhere = dsn_of(pg_cluster.socket_dir, "planetwire", "there_is_no_such_database")
    with pytest.raises(BackendError):
        await diagnosing.examine_path(nowhere, earth.url, None, canary=True)
    earth.settings = earth.settings.model_copy(update={"database_url": nowhere})
    assert broken(await earth.doctor()) == "database"


async def test_a_collect_that_ended_without_a_word_of_its_own_is_found_until_one_succeeds(earth: Earth) -> None:
    """Its worker died three times, or it ran beyond its deadline: then only the ledger knows."""
    await earth.pool.execute("insert into datasources (source) values ('usgs_quakes') on conflict do nothing")
    await earth.pool.execute(
        "insert into collection_tasks (task_type, source, status, error_code, error, finished_at)"
        " values ('collect', 'usgs_quakes', 'failed', 'deadline_exceeded', 'too long', clock_timestamp())"
    )
    steps = await earth.doctor(canary=False)
    assert (codes(steps, "facts"), steps["facts"]["ok"]) == ({"feed_failed"}, False)
    assert "usgs_quakes: deadline_exceeded too long" in steps["facts"]["detail"]
    await earth.pool.execute("update datasources set last_success_at = clock_timestamp() where source = 'usgs_quakes'")
    assert (await earth.doctor(canary=False))["facts"]["ok"]


async def test_a_source_that_reports_a_fault_is_found(earth: Earth) -> None:
    for code in ("internal", "bad_body", "transient", "incomplete_body", "mostly_rejected"):
        await earth.pool.execute(
            "insert into datasources (source, last_error_code, last_error) values ('usgs_quakes', $1, 'why')"
            " on conflict (source) do update set last_error_code = excluded.last_error_code, last_error = 'why'",
            code,
        )
        assert f"usgs_quakes: {code} why" in (await earth.doctor(canary=False))["facts"]["detail"]


def test_an_observation_feed_that_fails_again_and_again_is_found(tmp_path: Path) -> None:
    states = FeedStates(tmp_path / "feeds")
    assert diagnosing.observation_feeds_step(tmp_path)["ok"]
    for failures, ok in ((1, True), (2, False), (0, True)):
        states.update("awc_metar", {"failures": failures, "last_error_code": "bad_body", "last_error": "HTML"})
        found = diagnosing.observation_feeds_step(tmp_path)
        assert found["ok"] == ok
    states.update("awc_metar", {"failures": "x", "last_error": [1]})
    assert diagnosing.observation_feeds_step(tmp_path)["ok"]
