"""The pause after failures."""

from __future__ import annotations

from datetime import UTC, datetime

from planetwire.runtime.backoff import Backoff
from planetwire.runtime.clock import ManualClock


class _Slept(ManualClock):
    def __init__(self) -> None:
        super().__init__(datetime(2026, 1, 1, tzinfo=UTC))
        self.pauses: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


async def test_it_doubles_up_to_its_bound_and_begins_anew_after_a_success() -> None:
    clock = _Slept()
    backoff = Backoff(0.5, 3, clock)
    for _ in range(5):
        await backoff.pause()
    backoff.reset()
    await backoff.pause()
    assert clock.pauses == [0.5, 1, 2, 3, 3, 0.5]
