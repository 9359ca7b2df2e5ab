"""`/readyz` of a running web process, whatever becomes of its database: 503 with a reason, never 500."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from fix_earth import Earth
from ledger_tools import until
from planetwire.database.postgres import connect
from planetwire.supervise.embedded_postgres import EmbeddedPostgres, dsn_of

Ask = Callable[[], Awaitable[httpx.Response]]


@pytest.fixture
def ask(earth: Earth) -> Ask:
    async def get() -> httpx.Response:
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
            return await client.get(f"{earth.url}/readyz")

    return get


async def reasons(ask: Ask) -> dict[str, str]:
    answer = await ask()
    assert answer.status_code == 503, answer.text
    body: Any = answer.json()
    assert body["ready"] is False
    return {name: text for name, text in body["checks"].items() if text != "ok"}


async def ready_again(ask: Ask) -> None:
    async def so() -> bool:
        return (await ask()).status_code == 200

    await until(so)


async def test_a_process_is_ready_while_a_relay_leads_and_not_without_one(earth: Earth, ask: Ask) -> None:
    """Contracts §3."""
    await ready_again(ask)
    await earth.stop("relay")

    async def told() -> bool:
        return (await ask()).json()["checks"]["relay"] == "no relay leads"

    await until(told)
    assert list(await reasons(ask)) == ["relay"]


async def test_a_frozen_server_is_told_and_ready_again_when_it_goes_on(earth: Earth, ask: Ask) -> None:
    await ready_again(ask)
    rows = await earth.pool.fetch(
        "select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
    )
    own = await earth.pool.fetchval("select pg_backend_pid()")
    frozen = [row["pid"] for row in rows] + [own]
    for pid in frozen:
        os.kill(pid, signal.SIGSTOP)
    try:
        told = [await reasons(ask), await reasons(ask)]
    finally:
        for pid in frozen:
            os.kill(pid, signal.SIGCONT)
    assert all("no answer within" in each["postgres"] for each in told)
    await ready_again(ask)


async def test_a_database_that_takes_nobody_is_told(earth: Earth, ask: Ask, pg_cluster: EmbeddedPostgres) -> None:
    await ready_again(ask)
    name = urlsplit(earth.settings.database_url or "").path[1:]
    admin = await connect(dsn_of(pg_cluster.socket_dir, "postgres", "postgres"), application="test")
    try:
        await admin.execute(f"alter database {name} allow_connections false")
        await admin.execute(f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'")
        assert "postgres" in await reasons(ask)
        await admin.execute(f"alter database {name} allow_connections true")
        await ready_again(ask)
    finally:
        await admin.close()


@pytest.mark.parametrize(
    ("change", "check"),
    [
        ("alter table planetwire_migrations rename column checksum to sum", "postgres"),
        ("delete from planetwire_migrations where name = (select max(name) from planetwire_migrations)", "postgres"),
        ("alter table earth_log_head rename column leader_expires_at to until", "relay"),
        ("drop table earth_log_head cascade", "relay"),
        ("drop schema public cascade", "postgres"),
    ],
)
async def test_a_schema_of_another_version_is_told(earth: Earth, ask: Ask, change: str, check: str) -> None:
    await ready_again(ask)
    await earth.stop("relay")
    await earth.pool.execute(change)
    assert check in await reasons(ask)


async def test_many_who_ask_a_frozen_server_take_no_connection_each(earth: Earth, ask: Ask) -> None:
    await ready_again(ask)
    async with earth.pool.acquire() as connection, connection.transaction():
        await connection.execute("lock table planetwire_migrations in access exclusive mode")
        answers = await asyncio.gather(*(ask() for _ in range(30)))
        assert {answer.status_code for answer in answers} == {503}
        waiting = await connection.fetchval(
            "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
        )
        assert waiting <= 1
    await ready_again(ask)
