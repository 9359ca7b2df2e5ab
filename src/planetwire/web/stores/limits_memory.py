"""`Limits` counted in this process."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping

from planetwire.ports import Limit

WINDOW_S = 60.0
KEYS_MAX = 10_000  # of a kind; the one whose minute began first is dropped first
DEFAULTS: Mapping[Limit, int] = {Limit.SIGN_IN: 10, Limit.INGEST: 120_000, Limit.STREAM: 1_200}


class MemoryLimits:
    """A count and the begin of its minute per kind and key."""

    def __init__(self, rates: Mapping[Limit, int] = DEFAULTS, now: Callable[[], float] = time.monotonic) -> None:
        """`rates`: so many of each kind per key and minute."""
        self._rates = rates
        self._now = now
        self._counts: dict[Limit, OrderedDict[str, tuple[float, int]]] = {kind: OrderedDict() for kind in Limit}

    async def take(self, kind: Limit, key: str, cost: int = 1) -> float:
        """See the port."""
        wait_s = self.wait_s(kind, key, cost)
        if not wait_s:
            self.note(kind, key, cost)
        return wait_s

    def wait_s(self, kind: Limit, key: str, cost: int) -> float:
        """The result of `take` without taking."""
        since, used = self._counts[kind].get(key, (0.0, 0))
        if not used or used + min(cost, self._rates[kind]) <= self._rates[kind]:
            return 0.0
        return max(0.0, since + WINDOW_S - self._now())

    def note(self, kind: Limit, key: str, cost: int) -> None:
        """Take even beyond the limit."""
        counts, now, spent = self._counts[kind], self._now(), min(cost, self._rates[kind])
        since, used = counts.get(key, (now, 0))
        if now - since < WINDOW_S and used:
            counts[key] = (since, used + spent)
            return
        counts.pop(key, None)
        counts[key] = (now, spent)
        while len(counts) > KEYS_MAX:
            counts.popitem(last=False)
