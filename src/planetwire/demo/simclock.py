"""The server's own time: with a given start and rate, and adjustable forwards."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

ADVANCE_MAX_S = 10 * 366 * 86_400


class SimClock:
    """Epoch seconds of the simulated world. Monotonic; with `rate` 0 it stands still until advanced."""

    def __init__(
        self, start_s: float | None = None, rate: float = 1.0, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        if rate < 0:
            raise ValueError("the rate of time cannot be negative")
        self.start_s = time.time() if start_s is None else start_s
        self.rate = rate
        self._monotonic = monotonic
        self._began = monotonic()
        self._pushed_s = 0.0

    def now_s(self) -> float:
        """Epoch seconds, UTC."""
        return self.start_s + (self._monotonic() - self._began) * self.rate + self._pushed_s

    def advance(self, seconds: float) -> float:
        """Advance the time; returns the new one. Raises ValueError for a step back or one of more than ten years."""
        if not 0 <= seconds <= ADVANCE_MAX_S:
            raise ValueError("time only goes forward, ten years at most")
        self._pushed_s += seconds
        return self.now_s()


def parse_start(text: str) -> float:
    """Epoch seconds of an ISO time; one without a zone is UTC. Raises ValueError."""
    at = datetime.fromisoformat(text)
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
