"""What joins the web processes that follow one log: the port `Bus`, and what its backends share.

The log is the truth and the bus is a hint. Whoever hears nothing looks at the log each second, so a bus that is away
costs time and no event; and since a ring carries nothing, none can be doubled or overtake another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

RETRY_S = 0.1  # wait after the connection was lost …
RETRY_MAX_S = 5.0  # … doubling up to this
SELF_TEST_S = 5.0  # how often the listening connection proves that it is alive …
ECHO_S = 2.0  # … by an answer within this time; also for what is sent


class Bus(Protocol):
    """Tells every web process that the log has grown."""

    @property
    def connected(self) -> bool:
        """Whether rings go round at the moment."""

    def ring(self) -> None:
        """Wake all who follow the log, in this process at once. Never waits, never raises; may be lost."""

    async def run(self) -> None:
        """Carry rings, until cancelled. Comes back after every loss, and rings here then: something may be missed."""


class Ringer:
    """Sends rings, one at a time: those that come meanwhile are one more. So a busy log costs the carrier little."""

    def __init__(self, send: Callable[[], Awaitable[object]]) -> None:
        self._send = send
        self._due = asyncio.Event()

    def ring(self) -> None:
        """Send as soon as the one before is through."""
        self._due.set()

    async def run(self) -> None:
        """Until cancelled, or `send` fails: what is due then stays due."""
        while True:
            await self._due.wait()
            self._due.clear()  # before sending: what comes meanwhile is due again
            try:
                async with asyncio.timeout(ECHO_S):
                    await self._send()
            except BaseException:
                self._due.set()
                raise
            task = asyncio.current_task()
            if task is not None and task.cancelling():  # redis-py loses a cancel that meets its answer, and who runs
                raise asyncio.CancelledError  # this waits for its end without telling it again
