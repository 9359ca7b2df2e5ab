"""Wrong credentials per address, counted over all web processes: `FailureBrake` of auth.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redis.asyncio import Redis

from planetwire.web.failures_memory import FAILURE_WINDOW_S, FAILURES_MAX, MemoryBrake
from planetwire.web.link_redis import RedisLink


class RedisBrake:
    """This process counts too: without Redis, or after it forgot everything, at least its own count stands."""

    def __init__(self, link: RedisLink, now: Callable[[], float] | None = None) -> None:
        self._link = link
        self._own = MemoryBrake(now) if now else MemoryBrake()

    async def note(self, address: str) -> None:
        """One more wrong try, here and there."""
        await self._own.note(address)
        key = self._link.key("failures", address)

        async def count(redis: Redis) -> Any:
            async with redis.pipeline(transaction=True) as pipe:
                pipe.set(key, 0, ex=int(FAILURE_WINDOW_S), nx=True)  # the window begins with the first
                pipe.incr(key)
                return await pipe.execute()

        await self._link.ask(count)

    async def closed(self, address: str) -> bool:
        """Whether this process or all together have counted enough."""
        if await self._own.closed(address):
            return True
        key = self._link.key("failures", address)
        _, count = await self._link.ask(lambda redis: redis.get(key))
        return int(count or 0) >= FAILURES_MAX
