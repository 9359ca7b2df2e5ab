"""What several web processes may share, and one has for itself: snapshots, login codes, sessions, counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING

from planetwire.database.postgres import Pool
from planetwire.errors import SetupError
from planetwire.jobs.ledger.joblog_postgres import PostgresJobLog
from planetwire.ports import Cache, JobLog, Limit, Limits, LoginCodes, Sessions
from planetwire.runtime.clock import SystemClock
from planetwire.settings import LimitSettings, Settings
from planetwire.web.stores.cache_memory import MemoryCache
from planetwire.web.stores.codes_file import FileCodes
from planetwire.web.stores.codes_memory import MemoryCodes
from planetwire.web.stores.limits_memory import MemoryLimits
from planetwire.web.stores.sessions_file import FileSessions
from planetwire.web.stores.sessions_memory import MemorySessions
from planetwire.wiring.choosing import by_scheme

if TYPE_CHECKING:
    from planetwire.web.stores.link_redis import RedisLink


@dataclass(frozen=True, slots=True)
class Shared:
    """Without Redis each process counts for itself; sessions are the data dir's, and so is a code of several."""

    cache: Cache = field(default_factory=MemoryCache)
    codes: LoginCodes = field(default_factory=MemoryCodes)
    limits: Limits = field(default_factory=MemoryLimits)
    sessions: Sessions = field(default_factory=MemorySessions)


async def open_shared(stack: AsyncExitStack, settings: Settings, session_key: bytes, login_code: str | None) -> Shared:
    """In Redis when it is set; raises SetupError without its client. Processes that take each other's cookies share."""
    shared = _opened(stack, settings, session_key)
    if login_code is not None:
        await shared.codes.offer(login_code)
    return shared


def rates_of(limits: LimitSettings) -> Mapping[Limit, int]:
    """As the settings name them."""
    return {
        Limit.SIGN_IN: limits.sign_in_failures,
        Limit.INGEST: limits.ingest_per_minute,
        Limit.STREAM: limits.openings_per_minute,
    }


def job_log_of(stack: AsyncExitStack, settings: Settings, pool: Pool, session_key: bytes) -> JobLog:
    """Where jobs' lines are: in Redis when it is set, else in a table that keeps no journal."""
    return _place(settings).job_log(stack, settings, pool, session_key)


def _opened(stack: AsyncExitStack, settings: Settings, session_key: bytes) -> Shared:
    return _place(settings).shared(stack, settings, session_key)


@dataclass(frozen=True, slots=True)
class Place:
    """Where all of it is: `shared(stack, settings, session_key)`, `job_log(stack, settings, pool, session_key)`."""

    shared: Callable[[AsyncExitStack, Settings, bytes], Shared]
    job_log: Callable[[AsyncExitStack, Settings, Pool, bytes], JobLog]


def _place(settings: Settings) -> Place:
    """By the scheme of the address that is set. Raises SetupError."""
    if settings.redis_url is None:
        return OWN
    return by_scheme("PLANETWIRE_REDIS_URL", settings.redis_url.get_secret_value(), PLACES)


def _sessions(settings: Settings) -> FileSessions:
    return FileSessions(settings.data_dir / "sessions")


def _own(stack: AsyncExitStack, settings: Settings, session_key: bytes) -> Shared:
    codes = FileCodes(settings.data_dir / "run" / "codes") if settings.web_workers > 1 else MemoryCodes()
    return Shared(codes=codes, limits=MemoryLimits(rates_of(settings.limits)), sessions=_sessions(settings))


def _own_job_log(stack: AsyncExitStack, settings: Settings, pool: Pool, session_key: bytes) -> JobLog:
    return PostgresJobLog(pool, settings.jobs.log_hours * 3_600)


def _in_redis(stack: AsyncExitStack, settings: Settings, session_key: bytes) -> Shared:
    link = _link(stack, settings, session_key)
    from planetwire.web.stores.cache_redis import RedisCache
    from planetwire.web.stores.codes_redis import RedisCodes
    from planetwire.web.stores.limits_redis import RedisLimits
    from planetwire.web.stores.sessions_redis import RedisSessions

    cache = RedisCache(link)
    stack.push_async_callback(cache.aclose)
    limits = RedisLimits(link, rates_of(settings.limits))
    return Shared(cache, RedisCodes(link), limits, RedisSessions(link, _sessions(settings)))


def _redis_job_log(stack: AsyncExitStack, settings: Settings, pool: Pool, session_key: bytes) -> JobLog:
    link = _link(stack, settings, session_key)
    from planetwire.web.stores.joblog_redis import RedisJobLog

    return RedisJobLog(link, settings.jobs.log_hours * 3_600)


def _link(stack: AsyncExitStack, settings: Settings, session_key: bytes) -> RedisLink:
    try:
        from planetwire.web.stores.link_redis import RedisLink
    except ModuleNotFoundError as error:
        raise SetupError("PLANETWIRE_REDIS_URL needs the package `redis`: install planetwire[redis]") from error
    url = settings.redis_url
    assert url is not None  # else the place is our own
    prefix = f"planetwire:{blake2b(session_key, digest_size=6).hexdigest()}"
    link = RedisLink(url.get_secret_value(), prefix, SystemClock())
    stack.push_async_callback(link.aclose)
    return link


OWN, REDIS = Place(_own, _own_job_log), Place(_in_redis, _redis_job_log)
PLACES: Mapping[str, Place] = {"redis": REDIS, "rediss": REDIS, "unix": REDIS}
