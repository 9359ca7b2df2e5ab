"""The relay is killed at its named points, and the database under it: nothing is lost, repeats are harmless."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import orjson
import pytest

from planetwire.database.postgres import Pool, connect, open_pool
from planetwire.layers.registry import EarthLayerAdapterRegistry
from planetwire.migrating.migrate import migrate_postgres
from planetwire.model import LogEvent
from planetwire.outbox.changelog_postgres import PostgresChangeLog
from planetwire.outbox.wakeup_memory import MemoryWakeup
from planetwire.relay.payload import payload
from planetwire.relay.relay import Relay
from planetwire.runtime.clock import SystemClock
from planetwire.settings import RelaySettings
from planetwire.stream.log_postgres import PostgresEventLog
from planetwire.stream.tail import Tail
from planetwire.supervise.embedded_postgres import EmbeddedPostgres

CONFIG = {"shared_buffers": "16MB"}
WITHIN_S = 60.0
ADD = "insert into collected_data (source, external_key, kind) values ('celestrak_gp', $1, 'satellite')"
LOGGED = "select coalesce(sum((message->>'merged_count')::int), 0) from earth_broadcasts"
CHILD = """
import asyncio, sys
from planetwire.runtime import failpoint
from planetwire.runtime.clock import SystemClock
from planetwire.layers.registry import EarthLayerAdapterRegistry
from planetwire.outbox.changelog_postgres import PostgresChangeLog
from planetwire.outbox.wakeup_memory import MemoryWakeup
from planetwire.database.postgres import open_pool
from planetwire.relay.payload import payload
from planetwire.relay.relay import Relay
from planetwire.settings import RelaySettings

async def main(dsn, point):
    failpoint.arm(point or None)
    pool = await open_pool(dsn, application="relay")
    async def invalidate(patterns): pass
    settings = RelaySettings(poll_s=0.05, leader_ttl_s=2, merge_window_ms=0)
    relay = Relay(PostgresChangeLog(pool, payload), EarthLayerAdapterRegistry(), invalidate, MemoryWakeup(), settings,
                  SystemClock(), lambda events: None)
    await relay.run()

asyncio.run(main(sys.argv[1], sys.argv[2]))
"""


def child(dsn: str, point: str = "") -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", CHILD, dsn, point], stdout=subprocess.DEVNULL)


async def wait_dead(process: subprocess.Popen[bytes]) -> int:
    async with asyncio.timeout(WITHIN_S):
        return await asyncio.to_thread(process.wait)


async def all_consumed(pool: Pool) -> None:
    async with asyncio.timeout(WITHIN_S):
        while await pool.fetchval("select count(*) from earth_data_change_events where consumed_at is null"):
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("point", ["relay.before_publish", "relay.after_publish"])
async def test_a_relay_killed_around_the_commit_loses_nothing(point: str, pg_pool: Pool, pg_dsn: str) -> None:
    """S31, S32: either both the event and the mark are there, or neither."""
    log = await PostgresEventLog.open(pg_pool)
    seen: list[LogEvent] = []
    tail = Tail(log, ["earth_updates"], MemoryWakeup(), seen.extend, SystemClock())
    await tail.step()
    for n in range(6):
        await pg_pool.execute(ADD, str(n))
        if n % 2:
            continue
        killed = child(pg_dsn, point)
        assert await wait_dead(killed) == -signal.SIGKILL
        waiting = await pg_pool.fetchval("select count(*) from earth_data_change_events where consumed_at is null")
        logged = await pg_pool.fetchval(
            "select coalesce(sum((message->>'merged_count')::int), 0) from earth_broadcasts"
        )
        assert waiting + logged == n + 1
        assert (waiting > 0) is (point == "relay.before_publish")
    last = child(pg_dsn)
    try:
        await all_consumed(pg_pool)
    finally:
        last.kill()
        last.wait()
    await tail.step()
    bodies = [orjson.loads(event.body) for event in seen]
    assert sum(body["merged_count"] for body in bodies) == 6
    assert [event.revision for event in seen] == list(range(1, len(seen) + 1))
    assert [event.prev_revision for event in seen] == list(range(len(seen)))


async def test_a_relay_killed_at_random_moments_covers_every_change_exactly_in_the_log(
    pg_pool: Pool, pg_dsn: str
) -> None:
    """S10, S31: writers go on while relays die; each row is consumed once, by the commit of its event."""
    stop = asyncio.Event()
    written = 0

    async def write() -> None:
        nonlocal written
        while not stop.is_set():
            await pg_pool.execute(ADD, str(written))
            written += 1
            await asyncio.sleep(0.005)

    writer = asyncio.create_task(write())
    for passes in (1, 4, 9):
        assert await wait_dead(child(pg_dsn, f"relay.after_publish:{passes}")) == -signal.SIGKILL
        assert await wait_dead(child(pg_dsn, f"relay.before_publish:{passes}")) == -signal.SIGKILL
    stop.set()
    await writer
    last = child(pg_dsn)
    try:
        await all_consumed(pg_pool)
    finally:
        last.kill()
        last.wait()
    assert await pg_pool.fetchval(LOGGED) == written


@pytest.fixture
def own_cluster() -> Iterator[tuple[EmbeddedPostgres, Path]]:
    """A durable cluster of this test's own, with our tables."""
    folder = Path(tempfile.mkdtemp(prefix="pw-crash-"))
    folder.chmod(0o755)
    cluster = EmbeddedPostgres(folder, config=CONFIG)
    cluster.start()
    try:
        asyncio.run(_migrate(cluster.dsn))
        yield cluster, folder
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


async def _migrate(dsn: str) -> None:
    connection = await connect(dsn, application="test")
    await migrate_postgres(connection)
    await connection.close()


async def test_the_relay_goes_on_after_the_database_was_killed(own_cluster: tuple[EmbeddedPostgres, Path]) -> None:
    """S32: same process, same pool; the server comes back and so does the relay."""
    cluster, folder = own_cluster
    came = asyncio.Event()
    events: list[LogEvent] = []

    def published(new: Sequence[LogEvent]) -> None:
        events.extend(new)
        came.set()

    async def invalidate(patterns: Sequence[str]) -> None:
        return None

    pool = await open_pool(cluster.dsn, application="relay", max_size=3)
    relay = Relay(
        PostgresChangeLog(pool, payload),
        EarthLayerAdapterRegistry(),
        invalidate,
        MemoryWakeup(),
        RelaySettings(poll_s=0.05, leader_ttl_s=2),
        SystemClock(),
        published,
    )
    task = asyncio.create_task(relay.run())
    again = EmbeddedPostgres(folder, config=CONFIG)
    try:
        await pool.execute(ADD, "before")
        async with asyncio.timeout(WITHIN_S):
            await came.wait()
        came.clear()
        assert cluster.pid is not None
        os.kill(cluster.pid, signal.SIGKILL)
        cluster.stop()
        async with asyncio.timeout(WITHIN_S):
            while relay.is_leader:
                assert not task.done(), task.exception()
                await asyncio.sleep(0.02)
        assert not task.done(), task
        await asyncio.to_thread(again.start)
        connection = await connect(again.dsn, application="test")
        await connection.execute(ADD, "after")
        await connection.close()
        async with asyncio.timeout(WITHIN_S):
            await came.wait()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        pool.terminate()
        again.stop()
    assert [event.revision for event in events] == [1, 2]
