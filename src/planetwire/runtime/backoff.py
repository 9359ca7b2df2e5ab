"""Back-off of a loop that must survive failures."""

from __future__ import annotations

from planetwire.ports import Clock
from planetwire.runtime.clock import SystemClock

AFTER_FAILURES_S = (60.0, 120.0, 300.0, 900.0)  # before the retry of a transient feed failure; the last one repeats
DOUBLINGS_MAX = 60  # beyond, the float would overflow


def after_failures_s(failures: int) -> float:
    """The pause after so many failures in a row, from 1."""
    return AFTER_FAILURES_S[min(failures, len(AFTER_FAILURES_S)) - 1]


def doubled_s(failures: int, first_s: float, most_s: float) -> float:
    """The pause after so many failures in a row, from 1: first `first_s`, doubling up to `most_s`."""
    return min(first_s * 2.0 ** min(failures - 1, DOUBLINGS_MAX), most_s)


class Backoff:
    """First `first_s`, doubling up to `most_s`, until it works again."""

    def __init__(self, first_s: float, most_s: float, clock: Clock | None = None) -> None:
        """`clock`: the machine's, unless another is given."""
        self.failures = 0  # in a row
        self._first_s = first_s
        self._most_s = most_s
        self._clock = clock or SystemClock()

    @property
    def next_s(self) -> float:
        """How long the next pause is."""
        return doubled_s(self.failures + 1, self._first_s, self._most_s)

    def reset(self) -> None:
        """After a success: the next pause is the first again."""
        self.failures = 0

    def lengthen(self) -> None:
        """Count a failure, for callers that wait by other means than `pause`."""
        self.failures += 1

    async def pause(self) -> None:
        """Wait `next_s` and lengthen it."""
        await self._clock.sleep(self.next_s)
        self.lengthen()
