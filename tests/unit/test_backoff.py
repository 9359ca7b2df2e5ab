"""The pause after failures."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from planetwire.runtime.backoff import Backoff, doubled_s
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


@pytest.mark.parametrize(("failures", "pause_s"), [(1, 5.0), (2, 10.0), (9, 1_280.0), (10, 1_800.0), (10**9, 1_800.0)])
def test_the_pause_after_a_count_of_failures_never_leaves_its_bounds(failures: int, pause_s: float) -> None:
    assert doubled_s(failures, 5, 1_800) == pause_s


async def test_who_waits_in_another_way_lengthens_it_by_hand() -> None:
    backoff = Backoff(1, 30)
    seen = []
    for _ in range(7):
        seen.append(backoff.next_s)
        backoff.lengthen()
    assert seen == [1, 2, 4, 8, 16, 30, 30]
    assert backoff.failures == 7
