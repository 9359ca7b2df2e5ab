"""What may join web processes, by PLANETWIRE_BUS. Another bus is its file in `stream/` and an entry in `BUSES`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass

from planetwire.database.postgres import Pool, close_pool, open_pool
from planetwire.errors import SetupError
from planetwire.settings import Settings
from planetwire.stream.bus import Bus
from planetwire.stream.bus_memory import MemoryBus
from planetwire.stream.bus_postgres import PostgresBus
from planetwire.wiring.choosing import by_name

CONNECTIONS_MAX = 8
DATABASE = ("postgresql://", "postgres://")


@dataclass(frozen=True, slots=True)
class Joining:
    """What a bus may need. `pool`: of an observation store in a database; `dsn`: of whatever database there is."""

    stack: AsyncExitStack
    settings: Settings
    channel: str
    ring: Callable[[], None]
    pool: Pool | None
    dsn: str | None


@dataclass(frozen=True, slots=True)
class BusKind:
    """`lacks`: what the settings miss for it, None: nothing. `joins`: it reaches other processes."""

    join: Callable[[Joining], Awaitable[Bus | None]]
    lacks: Callable[[Settings], str | None]
    joins: bool = True


def bus_kind(settings: Settings) -> BusKind:
    """The one that is set, which can be had. Raises SetupError."""
    kind = by_name("PLANETWIRE_BUS", settings.bus, BUSES)
    lacking = kind.lacks(settings)
    if lacking is not None:
        raise SetupError(f"PLANETWIRE_BUS={settings.bus} needs {lacking}")
    return kind


def joining_names() -> str:
    """To be set by who needs one that joins."""
    return " or ".join(name for name, kind in BUSES.items() if kind.joins)


async def open_store_pool(stack: AsyncExitStack, dsn: str) -> Pool:
    """One pool for what a web process does with readings."""
    pool = await open_pool(dsn, application="observations", max_size=CONNECTIONS_MAX)
    stack.push_async_callback(close_pool, pool)
    return pool


def direct_of(settings: Settings, dsn: str) -> str:
    """The server itself, where the address may lead to a pooler."""
    return settings.database_direct_url or dsn if dsn == settings.database_url else dsn


def _lacks_nothing(settings: Settings) -> str | None:
    return None


async def _memory(joining: Joining) -> Bus | None:
    """A lone process with a file of its own needs none: it hands over what it commits."""
    return MemoryBus(joining.ring) if joining.pool else None


def _lacks_database(settings: Settings) -> str | None:
    if settings.earth or settings.observations_location.startswith(DATABASE):
        return None
    return "a database: set PLANETWIRE_OBSERVATIONS_URL=postgresql://…"


async def _postgres(joining: Joining) -> Bus | None:
    dsn = joining.dsn
    assert dsn is not None  # see `_lacks_database`
    pool = joining.pool or await open_store_pool(joining.stack, dsn)
    return PostgresBus(pool, direct_of(joining.settings, dsn), joining.channel, joining.ring)


def _lacks_redis(settings: Settings) -> str | None:
    return None if settings.redis_url is not None else "PLANETWIRE_REDIS_URL"


async def _redis(joining: Joining) -> Bus | None:
    try:
        from planetwire.stream.bus_redis import RedisBus
    except ModuleNotFoundError as error:
        raise SetupError("PLANETWIRE_BUS=redis needs the package `redis`: install planetwire[redis]") from error
    url = joining.settings.redis_url
    assert url is not None  # see `_lacks_redis`
    return RedisBus(url.get_secret_value(), joining.channel, joining.ring)


BUSES: Mapping[str, BusKind] = {
    "memory": BusKind(_memory, _lacks_nothing, joins=False),
    "postgres": BusKind(_postgres, _lacks_database),
    "redis": BusKind(_redis, _lacks_redis),
}
