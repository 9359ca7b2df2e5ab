"""Migrations take their time, give way to those who use the tables, and say in words what is in the way."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from planetwire.database import postgres
from planetwire.database.postgres import Connection, connected
from planetwire.errors import SetupError
from planetwire.migrating import migrate as module
from planetwire.migrating.locks_postgres import LOCK_KEY
from planetwire.migrating.migrate import Migration, migrate_postgres, migrations
from planetwire.settings import MigrationSettings

HOLD = "lock table collected_data in access share mode"
CHANGE = "alter table collected_data add column later integer"
SHORT = MigrationSettings(lock_timeout_s=0.2, lock_wait_s=0.4)


@pytest.fixture
def next_migration(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Adds one to those that there are."""

    def add(sql: str) -> None:
        known = [*migrations("postgres"), Migration("9999_next", sql)]
        monkeypatch.setattr(module, "migrations", lambda engine: known)

    return add


@pytest.fixture
async def other(pg_dsn: str) -> AsyncIterator[Connection]:
    async with connected(pg_dsn, application="somebody") as connection:
        yield connection


async def run(dsn: str, limits: MigrationSettings | None = None) -> list[str]:
    async with connected(dsn, application="migrate") as connection:
        return await migrate_postgres(connection, limits, watch=lambda: connected(dsn, application="watch"))


async def told(logs: list[Any], event: str) -> None:
    async with asyncio.timeout(60):
        while event not in {entry["event"] for entry in logs}:
            await asyncio.sleep(0.01)


async def columns(connection: Connection) -> int:
    return int(await connection.fetchval("select count(*) from information_schema.columns where column_name = 'later'"))


async def test_a_migration_may_take_longer_than_any_other_statement(
    next_migration: Callable[[str], None], pg_dsn: str, other: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E16. Also longer than what the server allows a session by itself."""
    monkeypatch.setattr(postgres, "COMMAND_TIMEOUT_S", 0.4)
    await other.execute("alter role planetwire set statement_timeout = '400ms'")
    try:
        next_migration(f"select pg_sleep(1.2); {CHANGE}")
        assert await run(pg_dsn) == ["9999_next"]
    finally:
        await other.execute("alter role planetwire reset statement_timeout")
    assert await columns(other) == 1


async def test_a_migration_that_takes_too_long_is_undone_and_names_the_setting(
    next_migration: Callable[[str], None], pg_dsn: str, other: Connection
) -> None:
    next_migration(f"{CHANGE}; select pg_sleep(60)")
    with pytest.raises(SetupError, match=r"9999_next.*PLANETWIRE_MIGRATION__TIMEOUT_S") as failed:
        await run(pg_dsn, MigrationSettings(timeout_s=0.3))
    assert failed.value.code == "migration_too_long"
    assert await columns(other) == 0


async def test_who_is_in_the_way_is_named_with_what_to_do(
    next_migration: Callable[[str], None], pg_dsn: str, other: Connection
) -> None:
    next_migration(CHANGE)
    async with other.transaction():
        await other.execute(HOLD)
        pid = await other.fetchval("select pg_backend_pid() /* a long report */")
        with pytest.raises(SetupError) as failed:
            await run(pg_dsn, SHORT)
    assert failed.value.code == "migration_blocked"
    for words in ("9999_next", f"pid {pid}", "planetwire somebody", "a long report", f"pg_terminate_backend({pid})"):
        assert words in failed.value.message
    assert await columns(other) == 0
    assert await run(pg_dsn, SHORT) == ["9999_next"]


async def test_a_table_in_use_is_tried_again_and_in_between_everybody_gets_at_it(
    next_migration: Callable[[str], None], pg_dsn: str, other: Connection
) -> None:
    next_migration(f"lock table datasources in access exclusive mode; {CHANGE}")
    with capture_logs() as logs:
        async with other.transaction():
            await other.execute(HOLD)
            migrating = asyncio.create_task(run(pg_dsn, MigrationSettings(lock_timeout_s=0.2, lock_wait_s=60)))
            await told(logs, "schema.migration.blocked")
            async with connected(pg_dsn, application="reader") as reader:  # what it had got it let go again
                await reader.fetch("select * from datasources")
        assert await migrating == ["9999_next"]


async def test_another_process_that_migrates_is_waited_for_and_told(
    next_migration: Callable[[str], None], pg_dsn: str, other: Connection
) -> None:
    next_migration(CHANGE)
    with capture_logs() as logs:
        async with other.transaction():
            await other.execute("select pg_advisory_xact_lock($1)", LOCK_KEY)
            pid = await other.fetchval("select pg_backend_pid()")
            with pytest.raises(SetupError, match=f"pid {pid}") as failed:
                await run(pg_dsn, MigrationSettings(timeout_s=0.3))
            assert failed.value.code == "migration_waited"
            migrating = asyncio.create_task(run(pg_dsn))
            logs.clear()
            await told(logs, "schema.migration.waits")
        assert await migrating == ["9999_next"]
    assert f"pid {pid}" in next(entry["behind"] for entry in logs if entry["event"] == "schema.migration.waits")


async def test_a_migration_that_cannot_be_done_leaves_everything_as_it_was(
    next_migration: Callable[[str], None], pg_dsn: str, other: Connection
) -> None:
    next_migration(f"{CHANGE}; select 1 / 0")
    with pytest.raises(SetupError, match=r"9999_next failed.*division by zero"):
        await run(pg_dsn)
    assert await columns(other) == 0


async def test_the_command_says_it_in_one_line(pg_dsn: str, other: Connection, tmp_path: Path) -> None:
    await other.execute("delete from planetwire_migrations where name = '0023_derive_again'")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PLANETWIRE_")}
    environment |= {
        "PLANETWIRE_DATABASE_URL": pg_dsn,
        "PLANETWIRE_DATA_DIR": str(tmp_path),
        "PLANETWIRE_MIGRATION__LOCK_TIMEOUT_S": "0.2",
        "PLANETWIRE_MIGRATION__LOCK_WAIT_S": "0",
    }
    async with other.transaction():
        await other.execute("lock table derived_pending in share mode")
        done = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-m", "planetwire", "migrate"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "planetwire: migration 0023_derive_again found no moment" in done.stderr
