"""Encoded snapshots shared by several web processes: port `Cache`, with this process's memory in front of Redis.

The key contains epoch and revision of the newest event in the log whose cache patterns match the body, so its value is
the layer at that revision or later, whichever process stored it and however late. So an event invalidates the body for
every process, and no race, FLUSHALL or reset counter can bring old data back: a slow reader stores under a revision
that is no longer requested.

Deletion only saves space: of bodies that a pattern matched, and of the oldest shared ones. Each process deletes its own
bodies, by key: nothing scans a server that other programs may have filled.
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

KEPT_S = 900  # expiry, in case the process cannot delete
BODY_BYTES_MAX = 2 * 1024 * 1024  # compressed; a larger body is not transferred within a reader's time limit
SHARED_MAX = 64  # bodies of one process in Redis
SENDING_MAX = 8  # concurrent transfers; more bodies are not shared


class RedisCache:
    """A `MemoryCache`; Redis is queried on a miss only. Without Redis, memory alone."""

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
        """The body in this process; without a round trip to Redis."""
        return await self._memory.get(name)

    async def find(self, name: str, cursor: Cursor) -> bytes | None:
        """The body that any process stored for exactly this cursor; None if there is none, or Redis does not answer."""
        key = self._key(name, cursor)

        async def fetch(redis: Redis) -> bytes | None:
            packed = await redis.get(key)
            return packed if isinstance(packed, bytes) else None

        _, packed = await self._link.ask(fetch)
        return None if packed is None else await asyncio.to_thread(_opened, packed)

    async def put(self, name: str, generation: int, cursor: Cursor, body: bytes) -> bool:
        """Store here unless the generation has changed, and send to Redis without waiting."""
        kept = await self._memory.put(name, generation, cursor, body)
        if kept:
            self._send(lambda: self._share(name, generation, self._key(name, cursor), body))
        return kept

    async def _share(self, name: str, generation: int, key: str, body: bytes) -> None:
        """Always compressed, so that a large plain body fits too; all codings can be made from it."""
        packed = await asyncio.to_thread(compress, body, "zstd")
        if len(packed) > BODY_BYTES_MAX or generation != self.generation(name):
            return
        self._shared[key] = name
        await self._link.ask(lambda redis: redis.set(key, packed, ex=KEPT_S, nx=True))
        if len(self._shared) > self._max_shared:
            await self._forget([self._shared.popitem(last=False)[0]])

    async def invalidate(self, patterns: Sequence[str]) -> None:
        """Drop the matching bodies here and those shared: the next revision has another key."""
        past = [key for key, name in self._shared.items() if is_meant(name, patterns)]
        if past and self._send(lambda: self._forget(past)):
            for key in past:
                del self._shared[key]
        await self._memory.invalidate(patterns)

    async def _forget(self, keys: Sequence[str]) -> None:
        await self._link.ask(lambda redis: redis.unlink(*keys))

    def _send(self, work: Callable[[], Awaitable[Any]]) -> bool:
        """In the background, with a bound; skipping it is harmless."""
        if len(self._sending) >= SENDING_MAX or self._link.bypassed:
            return False
        task = asyncio.ensure_future(work())
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)
        return True

    async def aclose(self) -> None:
        """Cancel transfers; the link is closed by its creator."""
        sending = list(self._sending)
        for task in sending:
            task.cancel()
        await asyncio.gather(*sending, return_exceptions=True)

    def _key(self, name: str, cursor: Cursor) -> str:
        return self._link.key("snapshot", cursor, name)


def _opened(packed: bytes) -> bytes | None:
    """None for a value that is not ours: another program wrote to our key."""
    try:
        if not 0 <= zstandard.frame_content_size(packed) <= BYTES_MAX:
            return None
        return zstandard.ZstdDecompressor().decompress(packed)
    except zstandard.ZstdError:
        return None
