"""Connects the web processes that follow one log: the port `Bus`, and what its backends share.

The log is authoritative, the bus only a hint. Without a wake-up (a ring) the log is polled each second, so a bus
that is down costs time but no event; and since a ring has no payload, no event can be duplicated or reordered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

RETRY_S = 0.1  # wait after the connection was lost …
RETRY_MAX_S = 5.0  # … doubling up to this
SELF_TEST_S = 5.0  # how often the listening connection is tested …
ECHO_S = 2.0  # … by an answer within this time; also the timeout of a send


class Bus(Protocol):
    """Tells every web process that the log has grown."""

    @property
    def connected(self) -> bool:
        """Whether rings are being delivered."""

    def ring(self) -> None:
        """Wake all followers of the log, in this process at once. Never waits, never raises; may be lost."""

    async def run(self) -> None:
        """Carry rings, until cancelled. Reconnects after every loss, and then rings here: some may have been missed."""


class Ringer:
    """Sends rings one at a time. Those requested during a send become one, so a busy log costs the server little."""

    def __init__(self, send: Callable[[], Awaitable[object]]) -> None:
        self._send = send
        self._due = asyncio.Event()

    def ring(self) -> None:
        """Send as soon as the previous send has ended."""
        self._due.set()

    async def run(self) -> None:
        """Until cancelled, or `send` fails: a ring that is due then stays due."""
        while True:
            await self._due.wait()
            self._due.clear()  # before sending: a later ring is due again
            try:
                async with asyncio.timeout(ECHO_S):
                    await self._send()
            except BaseException:
                self._due.set()
                raise
            task = asyncio.current_task()
            if task is not None and task.cancelling():  # redis-py loses a cancel that meets its answer, and
                raise asyncio.CancelledError  # the canceller waits for our end without cancelling again
