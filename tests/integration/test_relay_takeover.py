"""The leader dies, freezes inside its commit, or hears nothing any more: within fifteen seconds changes go on."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg

from cable import Cable
from ledger_tools import until
from pace import promised
from planetwire.database.postgres import Pool
from planetwire.datasets.registry import layer_registry
from planetwire.model import LogEvent
from planetwire.outbox.changelog_postgres import CHANGES_CHANNEL, PostgresChangeLog
from planetwire.outbox.wakeup_memory import MemoryWakeup
from planetwire.outbox.wakeup_postgres import PostgresWakeup
from planetwire.ports import Wakeup
from planetwire.relay.payload import payload
from planetwire.relay.relay import Relay
from planetwire.runtime.clock import SystemClock
from planetwire.settings import RelaySettings
from planetwire.supervise.embedded_postgres import EmbeddedPostgres

WITHIN_S = 15.0
RELAY = Path(__file__).parent.parent / "crash" / "relay_process.py"
ADD = "insert into collected_data (source, external_key, kind) values ('celestrak_gp', $1, 'satellite')"
LEADER = "select leader_holder from earth_log_head where leader_expires_at > clock_timestamp()"
COVERED = "select coalesce(sum((message->>'merged_count')::int), 0)::int from earth_broadcasts"
INSIDE = (
    "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and application_name = 'planetwire relay'"
)


@asynccontextmanager
async def relay_process(dsn: str, pool: Pool, ttl_s: float = 2) -> AsyncIterator[asyncio.subprocess.Process]:
    """A relay in a process of its own that leads."""
    process = await asyncio.create_subprocess_exec(sys.executable, RELAY, dsn, "", "0", str(ttl_s))

    async def leads() -> bool:
        return await pool.fetchval(LEADER) is not None

    try:
        await until(leads)
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@asynccontextmanager
async def relay_here(pool: Pool, wakeup: Wakeup | None = None) -> AsyncIterator[Relay]:
    """A relay in this process, with the settings that everybody has."""

    async def no_cache(layer: str) -> None:
        """Nobody asks for snapshots here."""

    def published(events: Sequence[LogEvent]) -> None:
        """Nobody is told."""

    relay = Relay(
        PostgresChangeLog(pool, payload),
        layer_registry(),
        no_cache,
        wakeup or MemoryWakeup(),
        RelaySettings(),
        SystemClock(),
        published,
    )
    task = asyncio.ensure_future(relay.run())
    try:
        yield relay
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def covered(pool: Pool, changes: int) -> None:
    """That many changes are in the log, none of them twice."""

    async def so() -> bool:
        return bool(await pool.fetchval(COVERED) >= changes)

    await until(so, promised(WITHIN_S))
    assert await pool.fetchval(COVERED) == changes


async def test_a_standby_takes_over_from_a_leader_that_was_killed(pg_pool: Pool, pg_dsn: str) -> None:
    """Q23: with the settings that everybody has, a term of ten seconds."""
    async with relay_process(pg_dsn, pg_pool, ttl_s=10) as leader, relay_here(pg_pool) as standby:
        leader.kill()
        await leader.wait()
        await pg_pool.execute(ADD, "1")
        await covered(pg_pool, 1)
        assert standby.is_leader


async def test_a_leader_frozen_inside_its_commit_does_not_hold_up_its_successor(pg_pool: Pool, pg_dsn: str) -> None:
    """S32, Q23: it holds the lock of the log's head; the server ends its transaction, and the row is read again."""
    async with relay_process(pg_dsn, pg_pool) as leader:
        await pg_pool.execute(ADD, "0")
        await covered(pg_pool, 1)
        stopper = await asyncpg.connect(pg_dsn)
        hold = stopper.transaction()
        await hold.start()
        await stopper.execute("lock table earth_layer_heads in access exclusive mode")
        await pg_pool.execute(ADD, "1")

        async def inside() -> bool:
            return bool(await pg_pool.fetchval(INSIDE))

        await until(inside)
        leader.send_signal(signal.SIGSTOP)
        await hold.rollback()
        await stopper.close()
        async with relay_here(pg_pool) as standby:
            await covered(pg_pool, 2)
            assert standby.is_leader
            leader.send_signal(signal.SIGCONT)
            await pg_pool.execute(ADD, "2")
            await covered(pg_pool, 3)


async def test_a_relay_whose_listener_is_in_a_black_hole_still_finds_changes(
    pg_cluster: EmbeddedPostgres, pg_dsn: str, pg_pool: Pool
) -> None:
    """S11, S12: the ring is lost, and nobody is told that it is; the look once a second finds the row."""
    with Cable(f"unix:{pg_cluster.socket_dir}/.s.PGSQL.5432") as cable:
        doorbell = PostgresWakeup(
            f"postgresql://planetwire@127.0.0.1:{cable.port}{urlsplit(pg_dsn).path}?sslmode=disable", [CHANGES_CHANNEL]
        )
        doorbell.start()
        try:
            async with relay_here(pg_pool, doorbell.bell(CHANGES_CHANNEL)):
                await pg_pool.execute(ADD, "1")
                await covered(pg_pool, 1)
                cable.swallow()
                await pg_pool.execute(ADD, "2")
                await covered(pg_pool, 2)
        finally:
            await doorbell.aclose()
