"""The LISTEN connection: it notices its loss, whatever kind of loss it is, and can be closed in any state."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

from structlog.testing import capture_logs

from cable import Cable
from ledger_tools import until
from planetwire.database.postgres import Pool
from planetwire.outbox.wakeup_postgres import PostgresWakeup
from planetwire.supervise.embedded_postgres import EmbeddedPostgres

CHANNEL = "planet_task_control"


async def test_a_listener_in_a_black_hole_finds_out_and_looks_again(
    pg_cluster: EmbeddedPostgres, pg_dsn: str, pg_pool: Pool
) -> None:
    """Neither end is told that the line is dead; only an echo that stays away shows it."""
    with Cable(f"unix:{pg_cluster.socket_dir}/.s.PGSQL.5432") as cable, capture_logs() as logs:
        dsn = f"postgresql://planetwire@127.0.0.1:{cable.port}{urlsplit(pg_dsn).path}"
        doorbell = PostgresWakeup(dsn, [CHANNEL], self_test_s=0.2, echo_s=0.5)
        bell = doorbell.bell(CHANNEL)
        doorbell.start()
        assert await bell.wait(20)
        cable.swallow()
        await pg_pool.execute("select pg_notify($1, '')", CHANNEL)  # nobody hears of it

        async def lost() -> bool:
            return not doorbell.connected

        await until(lost)
        cable.heal()
        assert await bell.wait(20)  # found by the ring of the new connect
        assert doorbell.connected
        await doorbell.aclose()
    names = [entry["event"] for entry in logs]
    assert names == ["earth.db_changes.connected", "earth.db_changes.disconnected", "earth.db_changes.connected"]


async def test_a_quiet_listener_stays_connected(pg_dsn: str, pg_pool: Pool) -> None:
    """Its echo is heard each time, so it does not reconnect, and nobody else is rung."""
    with capture_logs() as logs:
        doorbell = PostgresWakeup(pg_dsn, [CHANNEL], self_test_s=0.01)
        bell = doorbell.bell(CHANNEL)
        doorbell.start()
        assert await bell.wait(20)
        last = (
            "select query from pg_stat_activity"
            " where application_name = 'planetwire listen' and datname = current_database()"
        )

        async def tested() -> bool:
            return "pg_notify" in (await pg_pool.fetchval(last) or "")

        await until(tested)
        assert not await bell.wait(0)
        await doorbell.aclose()
    assert [entry["event"] for entry in logs] == ["earth.db_changes.connected"]


async def test_a_doorbell_that_lost_its_cancellation_is_closed_all_the_same(pg_dsn: str) -> None:
    """Connection loss and cancel in one moment: `wait_for` of Python 3.11 reports the loss alone."""
    doorbell = PostgresWakeup(pg_dsn, [CHANNEL])
    swallowed = asyncio.Event()

    async def deaf() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            swallowed.set()
        await asyncio.Event().wait()

    doorbell._task = asyncio.create_task(deaf())
    await asyncio.sleep(0)
    await asyncio.wait_for(doorbell.aclose(), 60)
    assert swallowed.is_set()


async def test_a_killed_listening_backend_is_noticed_at_once(pg_dsn: str, pg_pool: Pool) -> None:
    """Long before the next self-test."""
    doorbell = PostgresWakeup(pg_dsn, [CHANNEL], self_test_s=3600)
    bell = doorbell.bell(CHANNEL)
    doorbell.start()
    assert await bell.wait(20)
    killed = await pg_pool.fetchval(
        "select count(pg_terminate_backend(pid)) from pg_stat_activity"
        " where application_name = 'planetwire listen' and datname = current_database()"
    )
    assert killed == 1
    assert await bell.wait(20)
    await doorbell.aclose()
