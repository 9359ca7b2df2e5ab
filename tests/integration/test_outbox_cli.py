"""`planetwire outbox lag|peek|retry` and `migrate --repair`, as typed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from planetwire.cli import app
from planetwire.database.postgres import Pool

Typed = Callable[..., "asyncio.Future[Result]"]

ROWS = """
insert into earth_data_change_events
    (table_name, operation, source, records_processed, attempts, next_attempt_at, last_error, consumed_at,
     skipped_reason)
values
    ('collected_data', 'INSERT', 'a', 3, 0, null, null, null, null),
    ('collected_data', 'UPDATE', 'b', 2, 2, clock_timestamp() + interval '1 hour', 'not yet', null, null),
    ('collected_data', 'DELETE', null, 1, 5, 'infinity', '[bold]boom', null, null),
    ('collected_data', 'INSERT', 'nobody', 1, 0, null, null, clock_timestamp(), 'no_adapter')
returning id"""


@pytest.fixture
def typed(pg_dsn: str, tmp_path: Path) -> Typed:
    """Runs a command on the test's database, in a thread: commands have an event loop of their own."""
    environment = {"PLANETWIRE_DATABASE_URL": pg_dsn, "PLANETWIRE_DATA_DIR": str(tmp_path)}

    def run(*words: str) -> asyncio.Future[Result]:
        return asyncio.ensure_future(asyncio.to_thread(CliRunner().invoke, app, words, env=environment))

    return run


async def test_lag_says_how_far_behind_and_who_leads(typed: Typed, pg_pool: Pool) -> None:
    await pg_pool.execute(ROWS)
    found = json.loads((await typed("outbox", "lag", "--json")).stdout)
    assert (found["pending"], found["quarantined"], found["leader"]["held"]) == (3, 1, False)
    assert found["unmapped"] == [{"table": "collected_data", "source": "nobody", "changes": 1}]
    shown = (await typed("outbox", "lag")).stdout
    assert "pending      3" in shown and "leader       none" in shown and "collected_data/nobody: 1" in shown


async def test_peek_shows_rows_with_state_error_and_age(typed: Typed, pg_pool: Pool) -> None:
    assert "no pending rows" in (await typed("outbox", "peek")).stdout
    await pg_pool.execute(ROWS)
    rows = json.loads((await typed("outbox", "peek", "--json")).stdout)
    assert [(row["source"], row["state"], row["error"]) for row in rows] == [
        ("a", "pending", None),
        ("b", "backing_off", "not yet"),
        (None, "quarantined", "[bold]boom"),
    ]
    assert all(row["age_s"] >= 0 for row in rows)
    assert len(json.loads((await typed("outbox", "peek", "--limit", "1", "--json")).stdout)) == 1
    put_aside = (await typed("outbox", "peek", "--quarantined")).stdout
    assert "[bold]boom" in put_aside and "not yet" not in put_aside
    assert "no_adapter" in (await typed("outbox", "peek", "--unmapped")).stdout
    assert (await typed("outbox", "peek", "--unmapped", "--quarantined")).exit_code == 2


async def test_retry_takes_named_rows_or_all_that_were_put_off(typed: Typed, pg_pool: Pool) -> None:
    plain, backing_off, quarantined, _ = [row["id"] for row in await pg_pool.fetch(ROWS)]
    await pg_pool.execute(
        "insert into earth_refresh_hints (action, attempts, next_attempt_at) values ('manual_refresh', 5, 'infinity')"
    )
    due = (
        "select id from earth_data_change_events"
        " where consumed_at is null and next_attempt_at is null and attempts = 0 order by id"
    )
    once = await typed("outbox", "retry", str(quarantined), str(plain), "--json")
    assert once.exit_code == 1 and json.loads(once.stdout) == {"retried": [quarantined], "not_put_off": [plain]}
    assert [row["id"] for row in await pg_pool.fetch(due)] == [plain, quarantined]
    assert (await typed("outbox", "retry")).exit_code == 2
    assert (await typed("outbox", "retry", "--all", str(plain))).exit_code == 2
    everything = await typed("outbox", "retry", "--all")
    assert everything.exit_code == 0 and "rows tried again: 1" in everything.stdout
    assert [row["id"] for row in await pg_pool.fetch(due)] == [plain, backing_off, quarantined]
    assert await pg_pool.fetchval("select count(*) from earth_refresh_hints where next_attempt_at is null") == 1


async def test_migrate_mends_triggers_only_when_asked(typed: Typed, pg_pool: Pool) -> None:
    await pg_pool.execute("drop trigger tr_planet_collected_data_changed_delete on collected_data")
    there = "select count(*) from pg_trigger where tgname = 'tr_planet_collected_data_changed_delete'"
    assert "up to date" in (await typed("migrate")).stdout
    assert await pg_pool.fetchval(there) == 0
    mended = await typed("migrate", "--repair")
    assert mended.exit_code == 0 and "triggers made anew: 1" in mended.stdout
    assert await pg_pool.fetchval(there) == 1
