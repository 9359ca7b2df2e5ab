"""The loop that keeps logs small."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest
from structlog.testing import capture_logs

from planetwire.errors import BackendError
from planetwire.outbox.upkeep import prune
from planetwire.runtime.clock import ManualClock


class Turns(ManualClock):
    """Ends the loop after so many rounds."""

    def __init__(self, rounds: int) -> None:
        super().__init__(datetime(2026, 1, 1, tzinfo=UTC))
        self.left = rounds
        self.batches = 0

    async def sleep(self, seconds: float) -> None:
        if seconds != prune.EVERY_S:
            self.batches += 1
            return
        self.left -= 1
        if not self.left:
            raise asyncio.CancelledError


async def test_each_kind_is_pruned_until_nothing_is_left_and_only_what_went_is_told() -> None:
    first, second = iter([5, 2, 0, 0, 0]), iter([0, 0, 0])

    async def changes() -> int:
        return next(first)

    async def hints() -> int:
        return next(second)

    clock = Turns(3)
    with capture_logs() as logs, pytest.raises(asyncio.CancelledError):
        await prune.prune_forever((changes, hints), clock)
    assert [entry["rows"] for entry in logs if entry["event"] == "earth.log.pruned"] == [[7, 0]]
    assert clock.batches == 2, "others are let in after each batch that found something"


async def test_a_store_that_fails_is_tried_again_with_the_next_round() -> None:
    answers = iter([BackendError("away"), 3, 0])

    async def step() -> int:
        answer = next(answers)
        if isinstance(answer, BackendError):
            raise answer
        return answer

    with capture_logs() as logs, pytest.raises(asyncio.CancelledError):
        await prune.prune_forever((step,), Turns(2))
    assert [entry["event"] for entry in logs] == ["earth.log.prune_failed", "earth.log.pruned"]
