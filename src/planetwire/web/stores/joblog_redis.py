"""The last lines of each job in Redis, an expiring list a job: port JobLog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import orjson
from redis.asyncio import Redis

from planetwire.errors import BackendError
from planetwire.model import JobLine
from planetwire.web.stores.link_redis import RedisLink

LINES_KEPT = 200
JOBS_KEPT = 10_000  # with lines; jobs with the lowest ids are dropped first


class RedisJobLog:
    """Port JobLog. `keep_s`: how long a job's lines live after the last of them."""

    def __init__(self, link: RedisLink, keep_s: float, *, jobs_kept: int = JOBS_KEPT) -> None:
        self._link = link
        self._jobs_kept = jobs_kept
        self._keep_s = keep_s

    async def append(self, lines: Mapping[int, Sequence[JobLine]]) -> None:
        """See the port."""

        async def push(redis: Redis) -> Any:
            async with redis.pipeline(transaction=False) as pipe:
                for task_id, added in lines.items():
                    key = self._key(task_id)
                    pipe.rpush(key, *(_bytes(line) for line in added[-LINES_KEPT:]))
                    pipe.ltrim(key, -LINES_KEPT, -1)
                    pipe.pexpire(key, int(self._keep_s * 1000))
                    pipe.zadd(index, {str(task_id): task_id})
                pipe.zrange(index, 0, -self._jobs_kept - 1)
                return (await pipe.execute())[-1]

        index = self._link.key("joblog")
        done, past = await self._link.ask(push)
        if not done:
            raise BackendError("Redis took no lines")
        if past:
            await self._forget(index, past)

    async def _forget(self, index: str, past: Sequence[bytes]) -> None:
        async def forget(redis: Redis) -> Any:
            async with redis.pipeline(transaction=False) as pipe:
                pipe.delete(*(self._key(int(task_id)) for task_id in past))
                pipe.zrem(index, *past)
                return await pipe.execute()

        await self._link.ask(forget)

    async def read(self, task_id: int) -> Sequence[JobLine]:
        """See the port."""

        async def fetch(redis: Redis) -> Any:
            return await redis.lrange(self._key(task_id), 0, -1)

        done, found = await self._link.ask(fetch)
        if not done:
            raise BackendError("Redis does not answer")
        return [_line(each) for each in found or ()]

    async def prune(self) -> int:
        """See the port. Redis expires keys by itself."""
        return 0

    def _key(self, task_id: int) -> str:
        return self._link.key("joblog", task_id)


def _bytes(line: JobLine) -> bytes:
    return orjson.dumps([line.at.isoformat(), line.event, line.text])


def _line(raw: bytes) -> JobLine:
    at, event, text = orjson.loads(raw)
    return JobLine(datetime.fromisoformat(at), event, text)
