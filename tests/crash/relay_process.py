"""A relay process: `python relay_process.py DSN POINT WINDOW_MS [TTL_S]`. Crashes at the failpoint if one is named."""

from __future__ import annotations

import asyncio
import sys

from planetwire.database.postgres import open_pool
from planetwire.datasets.registry import layer_registry
from planetwire.log import configure_logging
from planetwire.outbox.changelog_postgres import CHANGES_CHANNEL, PostgresChangeLog
from planetwire.outbox.wakeup_postgres import PostgresWakeup
from planetwire.relay.payload import payload
from planetwire.relay.relay import Relay
from planetwire.runtime import failpoint
from planetwire.runtime.clock import SystemClock
from planetwire.settings import RelaySettings


async def main(dsn: str, point: str, window_ms: str, ttl_s: str = "2") -> None:
    configure_logging("console", "error")
    failpoint.arm(point or None)
    pool = await open_pool(dsn, application="relay", max_size=3)
    doorbell = PostgresWakeup(dsn, (CHANGES_CHANNEL,))
    doorbell.start()

    async def no_cache(layer: str) -> None:
        """This process caches no snapshots."""

    settings = RelaySettings(poll_s=0.2, leader_ttl_s=float(ttl_s), merge_window_ms=float(window_ms))
    bell = doorbell.bell(CHANGES_CHANNEL)
    log = PostgresChangeLog(pool, payload)
    relay = Relay(log, layer_registry(), no_cache, bell, settings, SystemClock(), lambda events: None)
    await relay.run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
