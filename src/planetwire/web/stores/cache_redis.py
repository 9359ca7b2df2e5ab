"""Encoded snapshots that several web processes share: port `Cache`, this process's memory before Redis.

The key holds epoch and revision of the newest event whose cache patterns mean the body, as the log has them: what lies
under a key is the layer at that revision or later, whoever stored it and however late. So a pattern drops what it
means for every process, and no race, no FLUSHALL and no counter that began anew can bring old data back: a reader
that was slow stores under a revision that nobody asks for any more.

What is deleted is deleted for room alone: bodies that a pattern meant, and of what is shared the oldest. Each process
deletes what it stored itself, by key: nobody walks through a server that others may have filled.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import zstandard
from redis.asyncio import Redis

from planetwire.model import Cursor
from planetwire.model.cache_names import is_meant
from planetwire.web.snapshots.encodings import compress
from planetwire.web.stores.cache_memory import BYTES_MAX, MemoryCache
from planetwire.web.stores.link_redis import RedisLink

KEPT_S = 900  # of a process that died, or could not delete
BODY_BYTES_MAX = 2 * 1024 * 1024  # more, compressed, does not pass within the time that a reader has
SHARED_MAX = 64  # bodies of one process that lie there
SENDING_MAX = 8  # on their way at once; more are not shared


class RedisCache:
    """As `MemoryCache` for what this process has; Redis is asked on a miss only. Without Redis, memory alone."""

    def __init__(self, link: RedisLink, memory: MemoryCache | None = None, *, max_shared: int = SHARED_MAX) -> None:
        self._link = link
        self._memory = memory or MemoryCache()
        self._max_shared = max_shared
        self._shared: OrderedDict[str, str] = OrderedDict()  # key → name
        self._sending: set[asyncio.Task[object]] = set()

    def generation(self, name: str) -> int:
        """Of this process; the revision in the key is the generation that all share."""
        return self._memory.generation(name)

    async def get(self, name: str) -> bytes | None:
        """What this process holds. Redis is not asked: a hit costs no round trip."""
        return await self._memory.get(name)

    async def find(self, name: str, cursor: Cursor) -> bytes | None:
        """What any process stored for exactly this cursor; None when nobody has, or Redis does not answer."""
        key = self._key(name, cursor)

        async def fetch(redis: Redis) -> bytes | None:
            packed = await redis.get(key)
            return packed if isinstance(packed, bytes) else None

        _, packed = await self._link.ask(fetch)
        return None if packed is None else await asyncio.to_thread(_opened, packed)

    async def put(self, name: str, generation: int, cursor: Cursor, body: bytes) -> bool:
        """Keep here unless the generation moved on, and hand to Redis without waiting for it."""
        kept = await self._memory.put(name, generation, cursor, body)
        if kept:
            self._send(lambda: self._share(name, generation, self._key(name, cursor), body))
        return kept

    async def _share(self, name: str, generation: int, key: str, body: bytes) -> None:
        """Compressed whatever it is, so that a large plain body passes too: all forms can be made of it."""
        packed = await asyncio.to_thread(compress, body, "zstd")
        if len(packed) > BODY_BYTES_MAX or generation != self.generation(name):
            return
        self._shared[key] = name
        await self._link.ask(lambda redis: redis.set(key, packed, ex=KEPT_S, nx=True))
        if len(self._shared) > self._max_shared:
            await self._forget([self._shared.popitem(last=False)[0]])

    async def invalidate(self, patterns: Sequence[str]) -> None:
        """Drop what this process holds, and what it shared: nobody asks for it under the next revision."""
        past = [key for key, name in self._shared.items() if is_meant(name, patterns)]
        if past and self._send(lambda: self._forget(past)):
            for key in past:
                del self._shared[key]
        await self._memory.invalidate(patterns)

    async def _forget(self, keys: Sequence[str]) -> None:
        await self._link.ask(lambda redis: redis.unlink(*keys))

    def _send(self, work: Callable[[], Awaitable[Any]]) -> bool:
        """In the background, boundedly: nothing waits for it, and nothing is wrong when it is left out."""
        if len(self._sending) >= SENDING_MAX or self._link.bypassed:
            return False
        task = asyncio.ensure_future(work())
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)
        return True

    async def aclose(self) -> None:
        """Give up what is on its way; the link belongs to whoever made it."""
        sending = list(self._sending)
        for task in sending:
            task.cancel()
        await asyncio.gather(*sending, return_exceptions=True)

    def _key(self, name: str, cursor: Cursor) -> str:
        return self._link.key("snapshot", cursor, name)


def _opened(packed: bytes) -> bytes | None:
    """None for what is no body of ours: somebody else wrote under our key."""
    try:
        if not 0 <= zstandard.frame_content_size(packed) <= BYTES_MAX:
            return None
        return zstandard.ZstdDecompressor().decompress(packed)
    except zstandard.ZstdError:
        return None
