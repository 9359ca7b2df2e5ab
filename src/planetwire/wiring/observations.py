"""The observation store as settings ask for it: its backend, its log, and the bus between web processes.

Who feeds the hub: a lone process with a file of its own hands over what it commits. Where others may append too, each
process follows the log, and the bus only says when to look.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planetwire.cities import CITIES
from planetwire.database.postgres import Pool
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
from planetwire.stream.hub import Hub
from planetwire.stream.log_observations_postgres import PostgresObservationLog
from planetwire.stream.log_sqlite import SqliteEventLog
from planetwire.stream.tail import Tail
from planetwire.wiring.buses import Joining, bus_kind, direct_of, joining_names, open_store_pool
from planetwire.wiring.choosing import by_scheme

FILE = "sqlite:///"
CHANNEL = "planet_observation_patches"
TOPICS = [f"city:{city.key}" for city in CITIES]

Loop = Callable[[], Awaitable[None]]
Publish = Callable[[Sequence[LogEvent]], None]


def readings_file(settings: Settings) -> Path | None:
    """The observation file; None where readings lie in a database."""
    location = settings.observations_location
    return Path(location.removeprefix(FILE)) if location.startswith(FILE) else None


def check_sharing(settings: Settings) -> None:
    """Raises SetupError for web processes that would not hear each other, and for places that are none."""
    store_kind(settings)
    bus = bus_kind(settings)
    if settings.web_workers > 1 and settings.terminal and not bus.joins:
        raise SetupError(
            f"PLANETWIRE_WEB_WORKERS={settings.web_workers} with PLANETWIRE_BUS={settings.bus}: an observation that one"
            f" web process takes would not reach the streams of the others; set PLANETWIRE_BUS={joining_names()}"
        )
    if settings.bus_required and not bus.joins:
        raise SetupError(f"PLANETWIRE_BUS_REQUIRED needs a bus: set PLANETWIRE_BUS={joining_names()}")


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
    bell = MemoryWakeup()
    opened = await store_kind(settings).open(stack, settings)
    store, event_log = opened.store, opened.log
    await store.start()
    stack.push_async_callback(store.aclose)
    await event_log.start()
    stack.push_async_callback(event_log.aclose)
    shared_dsn = settings.observations_location if opened.pool else dsn
    channel = f"{CHANNEL}_{event_log.epoch}"
    joining = Joining(stack, settings, channel, bell.ring, opened.pool, shared_dsn)
    bus = await bus_kind(settings).join(joining)
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
    await store_kind(settings).claim(stack, settings, bus_kind(settings).joins)


@dataclass(frozen=True, slots=True)
class Opened:
    """A store with its log, neither started yet; `pool` where they lie in a database."""

    store: Any
    log: Any
    pool: Pool | None


@dataclass(frozen=True, slots=True)
class StoreKind:
    """`check` raises SetupError for an address that is none; `claim(stack, settings, shared)` takes it for this process
    alone, or to share, and raises one when others have it.
    """

    check: Callable[[Settings], object]
    open: Callable[[AsyncExitStack, Settings], Awaitable[Opened]]
    claim: Callable[[AsyncExitStack, Settings, bool], Awaitable[None]]


def store_kind(settings: Settings) -> StoreKind:
    """By the scheme of its address. Raises SetupError."""
    kind = by_scheme("PLANETWIRE_OBSERVATIONS_URL", settings.observations_location, STORES)
    kind.check(settings)
    return kind


async def _open_file(stack: AsyncExitStack, settings: Settings) -> Opened:
    path = _file(settings)
    store = SqliteObservationStore(path, SystemClock(), retention_s=_retention_s(settings))
    return Opened(store, SqliteEventLog(path), None)


async def _claim_file(stack: AsyncExitStack, settings: Settings, shared: bool) -> None:
    stack.enter_context(claim_file(_file(settings), shared=shared))


def _file(settings: Settings) -> Path:
    path = readings_file(settings)
    if path is None:
        raise SetupError("PLANETWIRE_OBSERVATIONS_URL: a file is sqlite:///<path>")
    return path


async def _open_database(stack: AsyncExitStack, settings: Settings) -> Opened:
    pool = await open_store_pool(stack, settings.observations_location)
    store = PostgresObservationStore(
        pool, SystemClock(), retention_s=_retention_s(settings), migration=settings.migration
    )
    return Opened(store, PostgresObservationLog(pool), pool)


async def _claim_database(stack: AsyncExitStack, settings: Settings, shared: bool) -> None:
    claim = await claim_database(direct_of(settings, settings.observations_location), shared=shared)
    stack.callback(claim.terminate)


def _retention_s(settings: Settings) -> float:
    return settings.patch_event_retention_hours * 3600


IN_FILE = StoreKind(_file, _open_file, _claim_file)
IN_DATABASE = StoreKind(lambda settings: None, _open_database, _claim_database)
STORES: Mapping[str, StoreKind] = {"sqlite": IN_FILE, "postgresql": IN_DATABASE, "postgres": IN_DATABASE}
