"""A relay in the test's own process, and a record of its actions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import orjson

from planetwire.database.postgres import Connection, Pool
from planetwire.layers.registry import EarthLayerAdapterRegistry
from planetwire.model import LayerAdapter, LogEvent, Provenance
from planetwire.outbox.changelog_postgres import PostgresChangeLog
from planetwire.outbox.wakeup_memory import MemoryWakeup
from planetwire.ports import Wakeup
from planetwire.relay.payload import payload
from planetwire.relay.relay import Relay
from planetwire.runtime.clock import SystemClock
from planetwire.settings import RelaySettings

WITHIN_S = 60.0


def layer(name: str, source: str) -> LayerAdapter:
    return LayerAdapter(
        id=name,
        title=name,
        title_zh=name,
        group="test",
        kind="point",
        feeds=(("collected_data", source),),
        cache_patterns=(f"earth:layer:{name}:*",),
        provenance=Provenance("nobody", "none", "nothing", "all"),
    )


REGISTRY = EarthLayerAdapterRegistry(
    [layer("satellites", "celestrak_gp"), layer("earthquakes", "usgs_quakes"), layer("poison", "poison")]
)


@dataclass
class Seen:
    """The actions of a relay, in order, and a way to wait for them."""

    steps: list[str] = field(default_factory=list)
    events: list[LogEvent] = field(default_factory=list)
    moved: asyncio.Condition = field(default_factory=asyncio.Condition)
    pending: set[asyncio.Task[None]] = field(default_factory=set)

    async def invalidate(self, patterns: Sequence[str]) -> None:
        self.steps += [f"invalidate {pattern}" for pattern in patterns]

    def published(self, events: Sequence[LogEvent]) -> None:
        self.steps += [f"publish {event.topic}" for event in events]
        self.events += events
        task = asyncio.create_task(self._tell())
        self.pending.add(task)
        task.add_done_callback(self.pending.discard)

    async def _tell(self) -> None:
        async with self.moved:
            self.moved.notify_all()

    async def until(self, reached: Callable[[], bool]) -> None:
        async with asyncio.timeout(WITHIN_S), self.moved:
            await self.moved.wait_for(reached)

    def bodies(self) -> list[dict[str, object]]:
        return [orjson.loads(event.body) for event in self.events]


def make(
    pool: Pool,
    seen: Seen,
    wakeup: Wakeup | None = None,
    registry: EarthLayerAdapterRegistry = REGISTRY,
    **settings: float,
) -> Relay:
    """`settings` may exceed the operator's limits."""
    return Relay(
        PostgresChangeLog(pool, payload),
        registry,
        seen.invalidate,
        wakeup or MemoryWakeup(),
        RelaySettings().model_copy(update={"poll_s": 0.05, **settings}),
        SystemClock(),
        seen.published,
    )


@asynccontextmanager
async def running(*relays: Relay) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(relay.run()) for relay in relays]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(outcome, asyncio.CancelledError) for outcome in ended), ended


async def add(connection: Connection | Pool, source: str, *keys: str) -> None:
    await connection.execute(
        "insert into collected_data (source, external_key, kind) select $1, unnest($2::text[]), 'k'", source, list(keys)
    )


async def unconsumed(pool: Pool) -> int:
    count: int = await pool.fetchval("select count(*) from earth_data_change_events where consumed_at is null")
    return count


async def eventually(check: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not await check():
            await asyncio.sleep(0.02)
