"""Wrong credentials per address, counted in this process: `FailureBrake` of auth.py."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

FAILURES_MAX = 10  # wrong credentials of one address per window
FAILURE_WINDOW_S = 60.0
ADDRESSES_MAX = 10_000  # remembered; the one that failed longest ago goes first


class MemoryBrake:
    """The window begins with the first wrong try."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._failures: OrderedDict[str, tuple[float, int]] = OrderedDict()

    async def note(self, address: str) -> None:
        """One more wrong try."""
        since, count = self._failures.pop(address, (self._now(), 0))
        if self._now() - since >= FAILURE_WINDOW_S:
            since, count = self._now(), 0
        self._failures[address] = (since, count + 1)
        while len(self._failures) > ADDRESSES_MAX:
            self._failures.popitem(last=False)

    async def closed(self, address: str) -> bool:
        """Whether the address has to wait for its window to end."""
        since, count = self._failures.get(address, (0.0, 0))
        return count >= FAILURES_MAX and self._now() - since < FAILURE_WINDOW_S
