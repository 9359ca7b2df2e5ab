"""Encoded snapshots that several web processes share: port `Cache`, this process's memory before Redis.

The key holds epoch and revision of the layer, as the log has them: what lies under a key is the layer at that
revision or later, whoever stored it and however late. So no race, no FLUSHALL and no counter that began anew can
bring old data back: a reader that was slow stores under a revision that nobody asks for any more.
"""

from __future__ import annotations

import asyncio

from redis.asyncio import Redis

from planetwire.model import Cursor
from planetwire.web.cache_memory import MemoryCache
from planetwire.web.link_redis import RedisLink

KEPT_S = 900  # a body that nobody asked for so long is made again
BODY_BYTES_MAX = 2 * 1024 * 1024  # more does not pass within the time that a reader has
STORING_MAX = 8  # bodies on their way at once; more are not shared


class RedisCache:
    """As `MemoryCache` for what this process has; Redis is asked on a miss only. Without Redis, memory alone."""

    def __init__(self, link: RedisLink, memory: MemoryCache | None = None) -> None:
        self._link = link
        self._memory = memory or MemoryCache()
        self._storing: set[asyncio.Task[object]] = set()

    def generation(self, layer: str) -> int:
        """Of this process; the revision in the key is the generation that all share."""
        return self._memory.generation(layer)

    async def get(self, layer: str, variant: str) -> bytes | None:
        """What this process holds. Redis is not asked: a hit costs no round trip."""
        return await self._memory.get(layer, variant)

    async def find(self, layer: str, variant: str, cursor: Cursor) -> bytes | None:
        """What any process stored for exactly this cursor; None when nobody has, or Redis does not answer."""
        key = self._key(layer, variant, cursor)

        async def fetch(redis: Redis) -> bytes | None:
            body = await redis.get(key)
            return body if isinstance(body, bytes) else None

        _, body = await self._link.ask(fetch)
        return body

    async def put(self, layer: str, variant: str, generation: int, cursor: Cursor, body: bytes) -> bool:
        """Keep here unless the generation moved on, and hand to Redis without waiting for it."""
        kept = await self._memory.put(layer, variant, generation, cursor, body)
        if kept and len(body) <= BODY_BYTES_MAX and len(self._storing) < STORING_MAX and not self._link.bypassed:
            task = asyncio.create_task(self._store(self._key(layer, variant, cursor), body), name="share snapshot")
            self._storing.add(task)
            task.add_done_callback(self._storing.discard)
        return kept

    async def _store(self, key: str, body: bytes) -> None:
        await self._link.ask(lambda redis: redis.set(key, body, ex=KEPT_S, nx=True))

    async def invalidate(self, layer: str) -> int:
        """Drop what this process holds. What lies in Redis is not asked for under the next revision."""
        return await self._memory.invalidate(layer)

    async def aclose(self) -> None:
        """Give up what is on its way; the link belongs to whoever made it."""
        storing = list(self._storing)
        for task in storing:
            task.cancel()
        await asyncio.gather(*storing, return_exceptions=True)

    def _key(self, layer: str, variant: str, cursor: Cursor) -> str:
        return self._link.key("layer", layer, cursor, variant)
