"""Twelve writers whose transactions take 0 to 20 ms, so that change rows become visible out of their ids' order."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import pytest

from ledger_tools import until
from long_form import amount
from planetwire.database.postgres import Pool, open_pool
from planetwire.layers.registry import EarthLayerAdapterRegistry
from planetwire.model import LogEvent
from planetwire.outbox.changelog_postgres import CHANGES_CHANNEL, PostgresChangeLog
from planetwire.outbox.wakeup_postgres import PostgresWakeup
from planetwire.relay.payload import payload
from planetwire.relay.relay import Relay
from planetwire.runtime.clock import SystemClock
from planetwire.settings import RelaySettings

WRITERS = 12
# Short with the other tests, long by `make test-long`; PLANETWIRE_LONG_CHANGES names any other number.
CHANGES = amount("CHANGES", 600, 20_000)
TAKES_MAX_S = 0.02
LEFT = "select count(*) from earth_data_change_events where consumed_at is null"
LOGGED = "select coalesce(sum((message->>'merged_count')::int), 0)::int from earth_broadcasts"

pytestmark = pytest.mark.timeout(600 + CHANGES / 50)


async def write(pool: Pool, writer: int, changes: int) -> None:
    rng = random.Random(writer)
    async with pool.acquire() as connection:
        for n in range(changes):
            async with connection.transaction():
                await connection.execute(
                    "insert into collected_data (source, external_key, kind) values ($1, $2, 'k')",
                    rng.choice(("celestrak_gp", "usgs_quakes")),
                    f"{writer}-{n}",
                )
                await asyncio.sleep(rng.random() * TAKES_MAX_S)


class Cursor:
    """A reader of the same rows that trusts their ids: what it misses shows that the order is really mixed."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._last = 0
        self.found = 0

    async def run(self) -> None:
        while True:
            rows = await self._pool.fetch(
                "select id from earth_data_change_events where id > $1 order by id", self._last
            )
            if rows:
                self.found += len(rows)
                self._last = rows[-1]["id"]
            await asyncio.sleep(0.002)


async def test_no_change_of_twelve_slow_writers_is_missed(pg_pool: Pool, pg_dsn: str) -> None:
    """S10, S12, S31: the relay reads what is not consumed, never what has a greater id."""
    events: list[LogEvent] = []

    def published(new: Sequence[LogEvent]) -> None:
        events.extend(new)

    async def no_cache(layer: str) -> None:
        """Nobody asks for snapshots here."""

    doorbell = PostgresWakeup(pg_dsn, (CHANGES_CHANNEL,))
    doorbell.start()
    relay = Relay(
        PostgresChangeLog(pg_pool, payload),
        EarthLayerAdapterRegistry(),
        no_cache,
        doorbell.bell(CHANGES_CHANNEL),
        RelaySettings(merge_window_ms=20),
        SystemClock(),
        published,
    )
    cursor = Cursor(pg_pool)
    background = [asyncio.ensure_future(relay.run()), asyncio.ensure_future(cursor.run())]
    writing = await open_pool(pg_dsn, application="test", min_size=WRITERS, max_size=WRITERS)
    try:
        await asyncio.gather(*(write(writing, writer, CHANGES // WRITERS) for writer in range(WRITERS)))

        async def consumed() -> bool:
            return not await pg_pool.fetchval(LEFT)

        await until(consumed)
    finally:
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
        await writing.close()
        await doorbell.aclose()
    written = CHANGES // WRITERS * WRITERS
    assert await pg_pool.fetchval("select count(*) from earth_data_change_events") == written
    assert await pg_pool.fetchval(LOGGED) == written
    assert [event.revision for event in events] == list(range(1, len(events) + 1))
    print(f"{written} changes, 0 missed, {len(events)} events; a cursor on ids missed {written - cursor.found}")
    assert cursor.found < written, "the order was not mixed: this run has shown nothing"
