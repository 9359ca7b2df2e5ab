"""Doorbells rung by PostgreSQL's NOTIFY: one LISTEN connection a process, a port `Wakeup` for each waiter."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from planetwire.database.postgres import ECHO_S, SELF_TEST_S, Listener
from planetwire.log import get_logger
from planetwire.outbox.wakeup_memory import MemoryWakeup
from planetwire.runtime.ending import end_all

log = get_logger()

DIRECT_URL = "PLANETWIRE_DATABASE_DIRECT_URL"  # the server's own address, not a pooler's


class PostgresWakeup:
    """Listens on the channels until closed, and reconnects by itself.

    A notification may be lost (gate shut, connection lost): waiters poll again after their timeout. Every (re)connect
    rings all bells, after LISTEN, so that changes in the gap are found. Behind a pooler no bell ever rings.
    """

    def __init__(
        self, dsn: str, channels: Sequence[str], *, self_test_s: float = SELF_TEST_S, echo_s: float = ECHO_S
    ) -> None:
        self._bells: dict[str, list[MemoryWakeup]] = {channel: [] for channel in channels}
        self._listener = Listener(
            dsn, tuple(channels), self._ring, on_connected=self._connected, self_test_s=self_test_s, echo_s=echo_s
        )
        self._task: asyncio.Task[None] | None = None

    @property
    def connected(self) -> bool:
        """Whether notifications can arrive now."""
        return self._listener.connected

    def bell(self, channel: str) -> MemoryWakeup:
        """A new bell for one waiter. Raises KeyError for a channel that is not listened to."""
        bell = MemoryWakeup()
        self._bells[channel].append(bell)
        return bell

    def start(self) -> None:
        """Begin to listen, in a task of this object's own."""
        if self._task is None:
            self._task = asyncio.create_task(self._listen(), name="doorbell")

    async def _listen(self) -> None:
        await self._listener.run()
        log.warning("earth.db_changes.poll_only", reason="a pooler stands before the database", set=DIRECT_URL)

    async def aclose(self) -> None:
        """Stop listening; may be called twice."""
        task, self._task = self._task, None
        if task is not None:
            await end_all([task])

    def _ring(self, channel: str) -> None:
        for bell in self._bells[channel]:
            bell.ring()

    def _connected(self) -> None:
        log.info("earth.db_changes.connected", channels=list(self._bells))
