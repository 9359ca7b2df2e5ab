"""Time and wake-ups, as every stage sees them."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Time and waiting, so that tests need neither."""

    def now(self) -> datetime:
        """Aware UTC."""

    def monotonic(self) -> float:
        """Seconds that never go back."""

    async def sleep(self, seconds: float) -> None:
        """Wait; cancellable."""


class Wakeup(Protocol):
    """A hint that something may be there. It carries nothing and may be lost: always look, never count."""

    async def wait(self, timeout_s: float) -> bool:
        """True if rung, False after the timeout. Rings between two waits collapse into one."""

    def ring(self) -> None:
        """Wake this process's waiters."""

    async def aclose(self) -> None:
        """Release the connection, if there is one."""
