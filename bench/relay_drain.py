"""How fast a relay drains a backlog of 1,000,000 change rows, as after a night without one: rows per second.

The limit for comparison: one bare UPDATE that marks the same rows, in the same run and database.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence

import uvloop
from _ledger import cluster, ledger, pool_on, scaled
from _running import line

from planetwire.database.postgres import Pool
from planetwire.datasets.registry import layer_registry
from planetwire.model import LogEvent
from planetwire.outbox.changelog_postgres import PostgresChangeLog
from planetwire.outbox.wakeup_memory import MemoryWakeup
from planetwire.relay.payload import payload
from planetwire.relay.relay import Relay
from planetwire.runtime.clock import SystemClock
from planetwire.settings import RelaySettings

ROWS = scaled(1_000_000)
GOAL = 50_000
WITHIN_S = 600
# Two sources alternating, every third change in a derived table, one in a hundred a delete.
FILL = """insert into earth_data_change_events (table_name, operation, source, records_processed)
select case when n % 3 = 0 then 'resolved_locations' else 'collected_data' end,
    case when n % 100 = 0 then 'DELETE' else 'UPDATE' end,
    case when n % 3 = 0 or n % 2 = 0 then 'usgs_quakes' else 'celestrak_gp' end, 1
from generate_series(1, $1) n"""
LEFT = "select exists (select from earth_data_change_events where consumed_at is null)"


async def fill(pool: Pool) -> None:
    async with pool.acquire() as connection:
        await connection.execute("truncate earth_data_change_events")
        await connection.execute(FILL, ROWS, timeout=WITHIN_S)
        await connection.execute("vacuum analyze earth_data_change_events", timeout=WITHIN_S)


async def relay(dsn: str) -> tuple[float, int]:
    """Seconds, and the number of events made of the rows."""
    events = 0

    def published(new: Sequence[LogEvent]) -> None:
        nonlocal events
        events += len(new)

    async def no_cache(layer: str) -> None:
        """There are no snapshots here."""

    async with pool_on(dsn) as pool:
        await fill(pool)
        made = Relay(
            PostgresChangeLog(pool, payload),
            layer_registry(),
            no_cache,
            MemoryWakeup(),
            RelaySettings(),
            SystemClock(),
            published,
        )
        began = time.perf_counter()
        task = asyncio.create_task(made.run())
        async with asyncio.timeout(WITHIN_S):
            while await pool.fetchval(LEFT):
                await asyncio.sleep(0.05)
        took = time.perf_counter() - began
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    return took, events


async def bare(dsn: str) -> float:
    async with pool_on(dsn) as pool:
        await fill(pool)
        began = time.perf_counter()
        async with pool.acquire() as connection:
            await connection.execute(
                "update earth_data_change_events set consumed_at = clock_timestamp()", timeout=WITHIN_S
            )
        return time.perf_counter() - began


def main() -> None:
    with cluster() as made:
        dsn = asyncio.run(ledger(made, "drain"))
        took, events = uvloop.run(relay(dsn))
        limit = uvloop.run(bare(dsn))
    detail = f"{ROWS:,} rows into {events} events in {took:.1f} s; one bare UPDATE {ROWS / limit:,.0f} rows/s"
    sys.exit(0 if line("backlog drained, rows a second", ROWS / took, GOAL, detail, at_most=False) else 1)


if __name__ == "__main__":
    main()
