"""The pause of a loop that must survive failures: longer with each in a row."""

from __future__ import annotations

from planetwire.ports import Clock

AFTER_FAILURES_S = (60.0, 120.0, 300.0, 900.0)  # before a feed that failed in passing is asked again; the last goes on


def after_failures_s(failures: int) -> float:
    """The pause after so many failures in a row, from 1."""
    return AFTER_FAILURES_S[min(failures, len(AFTER_FAILURES_S)) - 1]


class Backoff:
    """First `first_s`, doubling up to `most_s`."""

    def __init__(self, first_s: float, most_s: float, clock: Clock) -> None:
        self.next_s = first_s
        self._first_s = first_s
        self._most_s = most_s
        self._clock = clock

    def reset(self) -> None:
        """It worked: the next pause is the first again."""
        self.next_s = self._first_s

    async def pause(self) -> None:
        """Wait `next_s` and lengthen it."""
        await self._clock.sleep(self.next_s)
        self.next_s = min(self.next_s * 2, self._most_s)
