"""What several web processes may share, and one has for itself: snapshots, login codes, sessions, counts."""

from __future__ import annotations

from collections.abc import Mapping
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


def _opened(stack: AsyncExitStack, settings: Settings, session_key: bytes) -> Shared:
    rates, sessions = rates_of(settings.limits), FileSessions(settings.data_dir / "sessions")
    if settings.redis_url is None:
        codes = FileCodes(settings.data_dir / "run" / "codes") if settings.web_workers > 1 else MemoryCodes()
        return Shared(codes=codes, limits=MemoryLimits(rates), sessions=sessions)
    link = _link(stack, settings.redis_url.get_secret_value(), session_key)
    from planetwire.web.stores.cache_redis import RedisCache
    from planetwire.web.stores.codes_redis import RedisCodes
    from planetwire.web.stores.limits_redis import RedisLimits
    from planetwire.web.stores.sessions_redis import RedisSessions

    cache = RedisCache(link)
    stack.push_async_callback(cache.aclose)
    return Shared(cache, RedisCodes(link), RedisLimits(link, rates), RedisSessions(link, sessions))


def _link(stack: AsyncExitStack, url: str, session_key: bytes) -> RedisLink:
    try:
        from planetwire.web.stores.link_redis import RedisLink
    except ModuleNotFoundError as error:
        raise SetupError("PLANETWIRE_REDIS_URL needs the package `redis`: install planetwire[redis]") from error
    prefix = f"planetwire:{blake2b(session_key, digest_size=6).hexdigest()}"
    link = RedisLink(url, prefix, SystemClock())
    stack.push_async_callback(link.aclose)
    return link


def job_log_of(stack: AsyncExitStack, settings: Settings, pool: Pool, session_key: bytes) -> JobLog:
    """Where jobs' lines are: in Redis when it is set, else in a table that keeps no journal."""
    keep_s = settings.jobs.log_hours * 3_600
    if settings.redis_url is None:
        return PostgresJobLog(pool, keep_s)
    link = _link(stack, settings.redis_url.get_secret_value(), session_key)
    from planetwire.web.stores.joblog_redis import RedisJobLog

    return RedisJobLog(link, keep_s)
