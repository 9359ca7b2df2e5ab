"""The real clock, and one that tests move by hand."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta


def utc_text(at: datetime) -> str:
    """An aware time as `2026-05-26T10:02:00Z`; milliseconds only when there are any."""
    spec = "milliseconds" if at.microsecond else "seconds"
    return at.astimezone(UTC).isoformat(timespec=spec).replace("+00:00", "Z")


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Aware UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait; cancellable."""
        await asyncio.sleep(seconds)


class ManualClock:
    """Stands still until `advance` is called, which wakes the sleepers that are due."""

    def __init__(self, start: datetime) -> None:
        self._now = start
        self._elapsed_s = 0.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        """Aware UTC."""
        return self._now

    def monotonic(self) -> float:
        """Seconds advanced so far."""
        return self._elapsed_s

    @property
    def sleepers(self) -> int:
        """How many are sleeping."""
        return sum(not future.done() for _, future in self._sleepers)

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock was advanced by `seconds`."""
        future = asyncio.get_running_loop().create_future()
        self._sleepers.append((self._elapsed_s + seconds, future))
        await future

    def advance(self, seconds: float) -> None:
        """Advance the time and wake the sleepers that are due."""
        self._elapsed_s += seconds
        self._now += timedelta(seconds=seconds)
        due = [f for at, f in self._sleepers if at <= self._elapsed_s]
        self._sleepers = [(at, f) for at, f in self._sleepers if at > self._elapsed_s]
        for future in due:
            if not future.done():
                future.set_result(None)
