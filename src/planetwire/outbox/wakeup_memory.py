"""A doorbell inside one process: port `Wakeup`."""

from __future__ import annotations

import asyncio


class MemoryWakeup:
    """The bell of one waiter. Several rings between two waits count as one."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    async def wait(self, timeout_s: float) -> bool:
        """True if rung, False after the timeout."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._rung.wait()
        except TimeoutError:
            return False
        self._rung.clear()
        return True

    def ring(self) -> None:
        """Wake the waiter, now or at its next wait. Only from the event loop's thread."""
        self._rung.set()

    async def aclose(self) -> None:
        """Nothing to release."""
