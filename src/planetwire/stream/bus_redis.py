"""Rings between web processes through Redis: port `Bus` over one pub/sub channel.

A subscription can hang while its connection looks open, so it is tested with PING now and then.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from planetwire.errors import SetupError
from planetwire.log import get_logger
from planetwire.runtime.backoff import Backoff
from planetwire.stream.bus import ECHO_S, RETRY_MAX_S, RETRY_S, SELF_TEST_S, Ringer

log = get_logger()

UNREACHABLE = (RedisError, OSError, TimeoutError, EOFError)


class RedisBus:
    """One per process. `channel` separates logs that share a server."""

    def __init__(
        self,
        url: str,
        channel: str,
        on_ring: Callable[[], None],
        *,
        self_test_s: float = SELF_TEST_S,
        echo_s: float = ECHO_S,
    ) -> None:
        """Raises SetupError for an invalid address. Redis may be unreachable at the start."""
        try:
            self._client = Redis.from_url(
                url,
                protocol=2,
                retry=Retry(NoBackoff(), 0),
                socket_connect_timeout=echo_s,
                client_name="planetwire-bus",
            )
        except (RedisError, ValueError) as error:
            raise SetupError(f"PLANETWIRE_REDIS_URL: {error}") from error
        self.connected = False
        self._channel = channel
        self._on_ring = on_ring
        self._self_test_s = self_test_s
        self._echo_s = echo_s
        self._ringer = Ringer(lambda: self._client.publish(channel, b""))
        self._answered = asyncio.Event()

    def ring(self) -> None:
        """See the port."""
        self._on_ring()
        self._ringer.ring()

    async def run(self) -> None:
        """See the port."""
        backoff, logged = Backoff(RETRY_S, RETRY_MAX_S), False
        try:
            while True:
                try:
                    await self._carry()
                except* UNREACHABLE as errors:
                    if self.connected or not logged:
                        log.warning("stream.bus.lost", bus="redis", error=repr(errors.exceptions[0]))
                    logged = True
                    backoff.reset() if self.connected else backoff.lengthen()
                self.connected = False
                await asyncio.sleep(backoff.next_s)
        finally:
            with suppress(*UNREACHABLE):
                await self._client.aclose()

    async def _carry(self) -> None:
        """Runs until the connection is lost, which raises."""
        connection = self._client.connection_pool.make_connection()  # type: ignore[no-untyped-call]
        try:
            async with asyncio.timeout(self._echo_s):
                await connection.connect()
                await connection.send_command("SUBSCRIBE", self._channel)
                await connection.read_response(timeout=math.inf)
            self.connected = True
            log.info("stream.bus.connected", bus="redis")
            self._on_ring()
            async with asyncio.TaskGroup() as group:
                group.create_task(self._receive(connection))
                group.create_task(self._test(connection))
                group.create_task(self._ringer.run())
        finally:
            await connection.disconnect(nowait=True)

    async def _receive(self, connection: Any) -> None:
        while True:
            reply = await connection.read_response(timeout=math.inf)
            if reply[0] == b"message":
                self._on_ring()
            self._answered.set()

    async def _test(self, connection: Any) -> None:
        while True:
            await asyncio.sleep(self._self_test_s)
            self._answered.clear()
            async with asyncio.timeout(self._echo_s):
                await connection.send_command("PING")
                await self._answered.wait()
