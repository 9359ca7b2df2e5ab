"""`Sessions` of web processes on several hosts.

A session belongs to the store that accepted it: one opened while Redis was unreachable is in this data dir. While Redis
is unreachable its sessions may be valid or ended, so they neither grant access nor are reported as ended.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import orjson
from redis.asyncio import Redis

from planetwire.errors import BackendError
from planetwire.ports import Session, Sessions
from planetwire.web.stores.link_redis import RedisLink
from planetwire.web.stores.sessions_file import CODE
from planetwire.web.stores.sessions_memory import SESSIONS_MAX

T = TypeVar("T")


class RedisSessions:
    """One key a session, and one set of them ordered by their end."""

    def __init__(
        self, link: RedisLink, own: Sessions, now: Callable[[], float] = time.time, most: int = SESSIONS_MAX
    ) -> None:
        self._link = link
        self._own = own
        self._now = now
        self._most = most
        self._list = link.key("sessions")

    async def open(self, key: str, session: Session) -> None:
        """In Redis; in this data dir when Redis does not answer."""
        body = orjson.dumps({"who": session.who, "bound": session.bound, "expires_at": session.expires_at})
        life_ms = max(1, int((session.expires_at - self._now()) * 1000))

        async def put(redis: Redis) -> Any:
            async with redis.pipeline(transaction=True) as pipe:
                pipe.set(self._key(key), body, px=life_ms)
                pipe.zadd(self._list, {key: session.expires_at})
                pipe.zremrangebyscore(self._list, "-inf", self._now())
                pipe.zrange(self._list, 0, -self._most - 1)
                over = [name.decode() for name in (await pipe.execute())[-1]]
            return await self._drop(redis, over)

        done, _ = await self._link.ask(put)
        if not done:
            await self._own.open(key, session)

    async def find(self, key: str) -> Session | None:
        """See the port."""
        found = await self._own.find(key)
        if found is not None:
            return found
        body: Any = await self._ask(lambda redis: redis.get(self._key(key)))
        if body is None:
            return None
        kept = orjson.loads(body)
        session = Session(kept["who"], kept["bound"], kept["expires_at"])
        return session if session.expires_at > self._now() else None

    async def end(self, key: str) -> None:
        """See the port."""
        await self._own.end(key)
        await self._ask(lambda redis: self._drop(redis, [key]))

    async def end_all(self) -> int:
        """See the port."""
        ended = await self._own.end_all()

        async def drop_all(redis: Redis) -> int:
            names: Any = await redis.zrange(self._list, 0, -1)
            return await self._drop(redis, [name.decode() for name in names])

        return ended + await self._ask(drop_all)

    async def _drop(self, redis: Redis, keys: list[str]) -> int:
        if not keys:
            return 0
        async with redis.pipeline(transaction=True) as pipe:
            pipe.delete(*map(self._key, keys))
            pipe.zrem(self._list, *keys)
            gone: int = (await pipe.execute())[0]
        return gone

    def _key(self, key: str) -> str:
        return self._link.key("session", key)

    async def _ask(self, question: Callable[[Redis], Awaitable[T]]) -> T:
        done, answer = await self._link.ask(question)
        if not done:
            raise BackendError("the store of the sessions does not answer; try again in a moment", code=CODE)
        return answer  # type: ignore[return-value]
