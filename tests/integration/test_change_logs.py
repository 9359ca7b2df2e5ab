"""The log lines by which an operator follows a change: connected, polled, broadcast."""

from __future__ import annotations

import asyncio

from structlog.testing import capture_logs

from planetwire.clock import SystemClock
from planetwire.layers.registry import EarthLayerAdapterRegistry
from planetwire.model import LogEvent
from planetwire.outbox.changelog_postgres import CHANGES_CHANNEL, PostgresChangeLog
from planetwire.outbox.wakeup_postgres import PostgresWakeup
from planetwire.postgres import Pool
from planetwire.relay.payload import payload
from planetwire.relay.relay import Relay
from planetwire.settings import RelaySettings
from planetwire.stream.log_postgres import PostgresEventLog

WITHIN_S = 60.0


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
            await pg_pool.execute(
                "insert into collected_data (source, external_key, kind) values ('celestrak_gp', '25544', 'satellite')"
            )
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


async def no_cache(layer: str) -> None:
    """Nothing is cached here."""
