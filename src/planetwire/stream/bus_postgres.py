"""Rings between web processes through PostgreSQL's NOTIFY: port `Bus`, also across hosts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from planetwire.database.postgres import ECHO_S, SELF_TEST_S, Listener, Pool, translated
from planetwire.database.sql import queries_beside
from planetwire.errors import BackendError
from planetwire.log import get_logger
from planetwire.runtime.backoff import Backoff
from planetwire.stream.bus import RETRY_MAX_S, RETRY_S, Ringer

log = get_logger()
Q = queries_beside(__file__)


class PostgresBus:
    """One per process. Behind a pooler no ring arrives, and all processes poll each second."""

    def __init__(
        self,
        pool: Pool,
        listen_dsn: str,
        channel: str,
        on_ring: Callable[[], None],
        *,
        self_test_s: float = SELF_TEST_S,
        echo_s: float = ECHO_S,
    ) -> None:
        """`listen_dsn` connects to the server itself; the pool may go through a pooler."""
        self._pool = pool
        self._channel = channel
        self._on_ring = on_ring
        self._ringer = Ringer(self._send)
        self._backoff = Backoff(RETRY_S, RETRY_MAX_S)
        self._listener = Listener(
            listen_dsn,
            (channel,),
            lambda channel: on_ring(),
            on_connected=lambda: log.info("stream.bus.connected", bus="postgres"),
            self_test_s=self_test_s,
            echo_s=echo_s,
        )

    @property
    def connected(self) -> bool:
        """See the port."""
        return self._listener.connected

    def ring(self) -> None:
        """See the port."""
        self._on_ring()
        self._ringer.ring()

    async def run(self) -> None:
        """See the port."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._listen())
            group.create_task(self._keep_ringing())

    async def _listen(self) -> None:
        await self._listener.run()
        log.warning("stream.bus.poll_only", reason="a pooler stands before the database")

    async def _keep_ringing(self) -> None:
        while True:
            try:
                await self._ringer.run()
            except (BackendError, TimeoutError) as error:
                if not self._backoff.failures:
                    log.warning("stream.bus.lost", bus="postgres", error=repr(error))
                await self._backoff.pause()

    async def _send(self) -> None:
        async with translated():
            await self._pool.execute(Q.ring, self._channel)
        self._backoff.reset()
