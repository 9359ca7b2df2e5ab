"""The observation store as settings ask for it: its backend, its log, and the bus between web processes.

Who feeds the hub: a lone process with a file of its own hands over what it commits. Where others may append too, each
process follows the log, and the bus only says when to look.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planetwire.cities import CITIES
from planetwire.database.postgres import Pool, close_pool, open_pool
from planetwire.errors import BackendError, SetupError
from planetwire.facts.observations.claim_file import claim_file
from planetwire.facts.observations.claim_postgres import claim_database
from planetwire.facts.observations.observations_postgres import PostgresObservationStore
from planetwire.facts.sqlite.observations_sqlite import SqliteObservationStore
from planetwire.migrating.migrate import due_sqlite
from planetwire.model import LogEvent
from planetwire.outbox.wakeup_memory import MemoryWakeup
from planetwire.ports import EventLog
from planetwire.runtime.clock import SystemClock
from planetwire.settings import Settings
from planetwire.stream.bus import Bus
from planetwire.stream.bus_memory import MemoryBus
from planetwire.stream.bus_postgres import PostgresBus
from planetwire.stream.hub import Hub
from planetwire.stream.log_observations_postgres import PostgresObservationLog
from planetwire.stream.log_sqlite import SqliteEventLog
from planetwire.stream.tail import Tail

FILE, DATABASE = "sqlite:///", ("postgresql://", "postgres://")
CHANNEL = "planet_observation_patches"
CONNECTIONS_MAX = 8
TOPICS = [f"city:{city.key}" for city in CITIES]

Loop = Callable[[], Awaitable[None]]
Publish = Callable[[Sequence[LogEvent]], None]


def readings_file(settings: Settings) -> Path | None:
    """The observation file; None where readings lie in a database."""
    location = settings.observations_location
    return Path(location.removeprefix(FILE)) if location.startswith(FILE) else None


def check_sharing(settings: Settings) -> None:
    """Raises SetupError for web processes that would not hear each other, and for places that are none."""
    location = settings.observations_location
    if not location.startswith((FILE, *DATABASE)):
        raise SetupError("PLANETWIRE_OBSERVATIONS_URL is sqlite:///<path> or postgresql://…")
    if settings.bus == "memory" and settings.web_workers > 1 and settings.terminal:
        raise SetupError(
            f"PLANETWIRE_WEB_WORKERS={settings.web_workers} with PLANETWIRE_BUS=memory: an observation that one web "
            "process takes would not reach the streams of the others; set PLANETWIRE_BUS=redis or postgres"
        )
    if settings.bus == "redis" and settings.redis_url is None:
        raise SetupError("PLANETWIRE_BUS=redis needs PLANETWIRE_REDIS_URL")
    if settings.bus == "postgres" and not (settings.earth or location.startswith(DATABASE)):
        raise SetupError("PLANETWIRE_BUS=postgres needs a database: set PLANETWIRE_OBSERVATIONS_URL=postgresql://…")
    if settings.bus == "memory" and settings.bus_required:
        raise SetupError("PLANETWIRE_BUS_REQUIRED needs a bus: set PLANETWIRE_BUS=redis or postgres")


@dataclass(slots=True)
class Observations:
    """An open store. `bus` is None for a lone process with a file of its own."""

    store: SqliteObservationStore | PostgresObservationStore
    log: EventLog
    bus: Bus | None
    bell: MemoryWakeup
    required: bool

    async def usable(self) -> str | None:
        """What readiness says of the store: it can be read, and of a file also that it is whole and takes writes."""
        await self.log.head()
        if not isinstance(self.store, SqliteObservationStore):
            return None
        read_damage = self.log.damage if isinstance(self.log, SqliteEventLog) else None
        return read_damage or await self.store.trouble()

    async def feed(self, hub: Hub, publish: Publish) -> dict[str, Loop]:
        """Let `publish` have every event from the hub's head on, in revision order; the loops that do it."""
        head = await hub.start()
        if self.bus is None:
            self.store.on_committed = publish
            return {}
        bus = self.bus
        tail = Tail(self.log, TOPICS, self.bell, publish, SystemClock())
        tail.position = head  # one head for both: an event between two heads would reach nobody
        self.store.on_committed = lambda events: bus.ring()
        return {"observation-tail": tail.run, "bus": bus.run}

    def admit(self) -> None:
        """Raises BackendError when a bus without which nothing is taken is away."""
        if self.required and self.bus is not None and not self.bus.connected:
            raise BackendError("the bus between web processes is away", code="bus_unavailable")

    @property
    def connected(self) -> Callable[[], bool] | None:
        """Whether the bus is there, for who asks later; None for a process that has none to lose."""
        bus = self.bus
        return None if bus is None or isinstance(bus, MemoryBus) else lambda: bus.connected

    async def joined(self) -> str | None:
        """What readiness says of a bus that is required."""
        lost = self.required and self.bus is not None and not self.bus.connected
        return "the bus between web processes is away" if lost else None


async def open_observations(stack: AsyncExitStack, settings: Settings, dsn: str | None) -> Observations:
    """Open, migrate, prune. `dsn`: the database of the other half. Raises SetupError, BackendError."""
    check_sharing(settings)
    await _claim(stack, settings)
    location, bell, path = settings.observations_location, MemoryWakeup(), readings_file(settings)
    if path is not None:
        store: Any = SqliteObservationStore(path, SystemClock(), retention_s=_retention_s(settings))
        event_log: Any = SqliteEventLog(path)
        pool = None
    else:
        pool = await _pool(stack, location)
        store = PostgresObservationStore(
            pool, SystemClock(), retention_s=_retention_s(settings), migration=settings.migration
        )
        event_log = PostgresObservationLog(pool)
    await store.start()
    stack.push_async_callback(store.aclose)
    await event_log.start()
    stack.push_async_callback(event_log.aclose)
    bus = await _bus(stack, settings, pool, location if pool else dsn, f"{CHANNEL}_{event_log.epoch}", bell)
    return Observations(store, event_log, bus, bell, settings.bus_required)


async def check_free(settings: Settings) -> None:
    """Raises SetupError when a web process that no bus joins with ours has the store, or when the file is of a newer
    version; BackendError.
    """
    if (path := readings_file(settings)) is not None:
        _check_version(path)
    async with AsyncExitStack() as stack:
        await _claim(stack, settings)


def _check_version(path: Path) -> None:
    """A file that cannot be read at all is for the store to say."""
    try:
        due_sqlite(path)
    except SetupError as error:
        if error.__cause__ is None:
            raise


async def _claim(stack: AsyncExitStack, settings: Settings) -> None:
    shared = settings.bus != "memory"
    if (path := readings_file(settings)) is not None:
        stack.enter_context(claim_file(path, shared=shared))
    else:
        claim = await claim_database(_direct(settings, settings.observations_location), shared=shared)
        stack.callback(claim.terminate)


async def _bus(
    stack: AsyncExitStack, settings: Settings, pool: Pool | None, dsn: str | None, channel: str, bell: MemoryWakeup
) -> Bus | None:
    if settings.bus == "redis":
        return _redis_bus(settings, channel, bell)
    if settings.bus == "postgres":
        assert dsn is not None
        return PostgresBus(pool or await _pool(stack, dsn), _direct(settings, dsn), channel, bell.ring)
    return MemoryBus(bell.ring) if pool else None


def _redis_bus(settings: Settings, channel: str, bell: MemoryWakeup) -> Bus:
    assert settings.redis_url is not None
    try:
        from planetwire.stream.bus_redis import RedisBus
    except ModuleNotFoundError as error:
        raise SetupError("PLANETWIRE_BUS=redis needs the package `redis`: install planetwire[redis]") from error
    return RedisBus(settings.redis_url.get_secret_value(), channel, bell.ring)


async def _pool(stack: AsyncExitStack, dsn: str) -> Pool:
    pool = await open_pool(dsn, application="observations", max_size=CONNECTIONS_MAX)
    stack.push_async_callback(close_pool, pool)
    return pool


def _direct(settings: Settings, dsn: str) -> str:
    """The server itself, where the address may lead to a pooler."""
    return settings.database_direct_url or dsn if dsn == settings.database_url else dsn


def _retention_s(settings: Settings) -> float:
    return settings.patch_event_retention_hours * 3600
