"""What several web processes may share, and one has in its memory: snapshots, login codes, counts of wrong sign-ins."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING

from planetwire.clock import SystemClock
from planetwire.errors import SetupError
from planetwire.jobs.joblog_postgres import PostgresJobLog
from planetwire.ports import Cache, JobLog
from planetwire.postgres import Pool
from planetwire.settings import Settings
from planetwire.web.auth import FailureBrake, LoginCodes
from planetwire.web.cache_memory import MemoryCache
from planetwire.web.codes_file import FileCodes
from planetwire.web.codes_memory import MemoryCodes
from planetwire.web.failures_memory import MemoryBrake

if TYPE_CHECKING:
    from planetwire.web.link_redis import RedisLink


@dataclass(frozen=True, slots=True)
class Shared:
    """Without Redis each process has its own, and everything works; of several on one port any takes a login code."""

    cache: Cache = field(default_factory=MemoryCache)
    codes: LoginCodes = field(default_factory=MemoryCodes)
    brake: FailureBrake = field(default_factory=MemoryBrake)


async def open_shared(stack: AsyncExitStack, settings: Settings, session_key: bytes, login_code: str | None) -> Shared:
    """In Redis when it is set; raises SetupError without its client. Processes that take each other's cookies share."""
    shared = _opened(stack, settings, session_key)
    if login_code is not None:
        await shared.codes.offer(login_code)
    return shared


def _opened(stack: AsyncExitStack, settings: Settings, session_key: bytes) -> Shared:
    if settings.redis_url is None:
        several = settings.web_workers > 1
        return Shared(codes=FileCodes(settings.data_dir / "run" / "codes")) if several else Shared()
    link = _link(stack, settings.redis_url.get_secret_value(), session_key)
    from planetwire.web.cache_redis import RedisCache
    from planetwire.web.codes_redis import RedisCodes
    from planetwire.web.failures_redis import RedisBrake

    cache = RedisCache(link)
    stack.push_async_callback(cache.aclose)
    return Shared(cache, RedisCodes(link), RedisBrake(link))


def _link(stack: AsyncExitStack, url: str, session_key: bytes) -> RedisLink:
    try:
        from planetwire.web.link_redis import RedisLink
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
    from planetwire.web.joblog_redis import RedisJobLog

    return RedisJobLog(link, keep_s)
