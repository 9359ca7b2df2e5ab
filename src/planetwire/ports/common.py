"""Time and wake-ups, for every stage."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Time and waiting, replaceable in tests."""

    def now(self) -> datetime:
        """Aware UTC."""

    def monotonic(self) -> float:
        """Seconds that never go back."""

    async def sleep(self, seconds: float) -> None:
        """Wait; cancellable."""


class Wakeup(Protocol):
    """A hint that something may have changed. It has no payload and may be lost: always check, never count."""

    async def wait(self, timeout_s: float) -> bool:
        """True if rung, False after the timeout. Rings between two waits count as one."""

    def ring(self) -> None:
        """Wake this process's waiters."""

    async def aclose(self) -> None:
        """Release the connection, if there is one."""
