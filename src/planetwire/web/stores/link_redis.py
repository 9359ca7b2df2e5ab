"""The way to Redis, which may be gone at any moment: every question has 50 ms, and a silent server is left alone.

What is kept there is a convenience of several web processes. Whoever asks has an answer of its own for the case that
none comes, so nothing here ever raises for a server that is away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from planetwire.errors import SetupError
from planetwire.log import get_logger
from planetwire.ports import Clock
from planetwire.runtime.backoff import Backoff

log = get_logger()

T = TypeVar("T")

ANSWER_S = 0.05  # a reader waits no longer; the database answers in that time too
BYPASS_S = 1.0  # left alone after a failure …
BYPASS_MAX_S = 30.0  # … doubling up to this
CONNECTIONS_MAX = 16
AWAY = (RedisError, OSError, TimeoutError)


class RedisLink:
    """One client a process. `prefix` keeps installations apart that share a server."""

    def __init__(self, url: str, prefix: str, clock: Clock, *, answer_s: float = ANSWER_S) -> None:
        """Raises SetupError for an address that is none. Nothing is sent yet: the server may be away at the start."""
        try:
            self._client = Redis.from_url(
                url,
                max_connections=CONNECTIONS_MAX,
                socket_connect_timeout=answer_s,
                socket_timeout=answer_s,
                retry=Retry(NoBackoff(), 0),
                client_name="planetwire",
            )
        except (RedisError, ValueError) as error:
            raise SetupError(f"PLANETWIRE_REDIS_URL: {error}") from error
        self.prefix = prefix
        self.failures = 0
        self._clock = clock
        self._answer_s = answer_s
        self._back_at = float("-inf")
        self._backoff = Backoff(BYPASS_S, BYPASS_MAX_S, clock)

    @property
    def bypassed(self) -> bool:
        """Whether it failed last and is not asked for the moment."""
        return self._clock.monotonic() < self._back_at

    def key(self, *parts: object) -> str:
        """A key of this installation."""
        return ":".join((self.prefix, *map(str, parts)))

    async def ask(self, question: Callable[[Redis], Awaitable[T]]) -> tuple[bool, T | None]:
        """(True, the answer), or (False, None) when there was none in time or the server is left alone."""
        if self.bypassed:
            return False, None
        try:
            async with asyncio.timeout(self._answer_s):
                answer = await question(self._client)
        except AWAY as error:
            self._went_away(error)
            return False, None
        if self._backoff.failures:
            self._backoff.reset()
            log.info("web.redis.returned")
        return True, answer

    def _went_away(self, error: Exception) -> None:
        self.failures += 1
        if self.bypassed:
            return  # somebody who asked at the same time has noted it
        if not self._backoff.failures:
            log.warning("web.redis.bypassed", error=repr(error))
        self._back_at = self._clock.monotonic() + self._backoff.next_s
        self._backoff.lengthen()

    async def aclose(self) -> None:
        """Close the connections; may be called twice."""
        with suppress(*AWAY):
            await self._client.aclose()
