"""The log lines by which an operator follows a change: connected, polled, broadcast."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

from structlog.testing import capture_logs

from planetwire.database.postgres import Pool
from planetwire.layers.registry import EarthLayerAdapterRegistry
from planetwire.model import LogEvent
from planetwire.outbox.changelog_postgres import CHANGES_CHANNEL, PostgresChangeLog
from planetwire.outbox.wakeup_memory import MemoryWakeup
from planetwire.outbox.wakeup_postgres import PostgresWakeup
from planetwire.relay.payload import payload
from planetwire.relay.relay import Relay
from planetwire.runtime.clock import ManualClock, SystemClock
from planetwire.settings import RelaySettings
from planetwire.stream.log_postgres import PostgresEventLog

WITHIN_S = 60.0
ADD = "insert into collected_data (source, external_key, kind) values ('celestrak_gp', $1, 'satellite')"


async def test_an_operator_can_follow_a_change_in_the_log(pg_pool: Pool, pg_dsn: str) -> None:
    """S19, S83, S84, S85: each stage says its line, with the facts that lead to the next one."""
    published: asyncio.Queue[LogEvent] = asyncio.Queue()
    with capture_logs() as logs:
        doorbell = PostgresWakeup(pg_dsn, [CHANGES_CHANNEL])
        doorbell.start()
        relay = Relay(
            PostgresChangeLog(pg_pool, payload),
            EarthLayerAdapterRegistry(),
            no_cache,
            doorbell.bell(CHANGES_CHANNEL),
            RelaySettings(),
            SystemClock(),
            lambda events: [published.put_nowait(event) for event in events],
        )
        running = asyncio.create_task(relay.run())
        try:
            await pg_pool.execute(ADD, "25544")
            async with asyncio.timeout(WITHIN_S):
                event = await published.get()
                while "earth.db_changes.connected" not in {line["event"] for line in logs}:
                    await asyncio.sleep(0.01)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await doorbell.aclose()
    said = {line["event"]: line for line in logs}
    assert said["earth.db_changes.connected"]["channels"] == [CHANGES_CHANNEL]
    assert said["earth.db_changes.outbox_polled"]["rows"] == 1
    broadcast = said["earth.db_changes.broadcasted"]
    assert (broadcast["layer"], broadcast["strategy"], broadcast["records"]) == ("satellites", "reload", 1)
    assert broadcast["revision"] == event.revision == await (await PostgresEventLog.open(pg_pool)).head()


async def test_a_look_that_finds_nothing_is_not_told(pg_pool: Pool) -> None:
    """S84: the line says that there was something; a calm relay looks many times a minute."""
    changelog, clock = PostgresChangeLog(pg_pool, payload), ManualClock(datetime(2026, 11, 30, tzinfo=UTC))
    settings = RelaySettings(leader_ttl_s=60)
    relay = Relay(
        changelog, EarthLayerAdapterRegistry(), no_cache, MemoryWakeup(), settings, clock, lambda events: None
    )
    with capture_logs() as logs:
        for rows in (0, 0, 2, 0, 1, 0):
            for n in range(rows):
                await pg_pool.execute(ADD, f"{clock.monotonic()}-{n}")
            await relay.turn()
            clock.advance(1.5)
    assert relay.is_leader
    assert [line["rows"] for line in logs if line["event"] == "earth.db_changes.outbox_polled"] == [2, 1]


async def no_cache(patterns: Sequence[str]) -> None:
    """Nothing is cached here."""
