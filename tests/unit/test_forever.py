"""The loop that every long-running part is: when it waits, when it pauses, what ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import pytest

from planetwire.errors import BackendError, StateError
from planetwire.runtime.backoff import Backoff
from planetwire.runtime.clock import ManualClock
from planetwire.runtime.forever import run_forever

FIRST_S, MOST_S = 0.5, 3.0
ENOUGH = "enough"  # the step after the last told one


class Told(ManualClock):
    """A clock that passes at once, and writes down with all the others what happened in which order."""

    def __init__(self, *outcomes: object) -> None:
        """One outcome a step: what it gives, or raises."""
        super().__init__(datetime(2026, 1, 1, tzinfo=UTC))
        self.events: list[object] = []
        self._outcomes = iter(outcomes)

    async def sleep(self, seconds: float) -> None:
        self.events.append(("pause", seconds))

    async def step(self) -> object:
        outcome = next(self._outcomes, asyncio.CancelledError(ENOUGH))
        self.events.append("step")
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    async def wait(self, outcome: object) -> None:
        self.events.append(("wait", outcome))

    def on_error(self, error: BackendError, retry_s: float) -> None:
        self.events.append((error.message, retry_s))

    def on_crash(self, error: Exception) -> None:
        self.events.append(repr(error))

    async def run(self, **options: Callable[[Exception], None]) -> list[object]:
        """Until the outcomes are used up."""
        backoff = Backoff(FIRST_S, MOST_S, self)
        with pytest.raises(asyncio.CancelledError, match=ENOUGH):
            await run_forever(self.step, self.wait, self.on_error, backoff, **options)
        return self.events


async def test_each_step_is_followed_by_the_wait_for_what_it_gave() -> None:
    assert await Told(0.5, 7.0).run() == ["step", ("wait", 0.5), "step", ("wait", 7.0), "step"]


async def test_a_failed_step_is_told_of_then_paused_after_then_tried_again_without_a_wait() -> None:
    events = await Told(BackendError("away"), "fine").run()
    assert events == ["step", ("away", 0.5), ("pause", 0.5), "step", ("wait", "fine"), "step"]


async def test_pauses_double_up_to_their_bound_and_begin_anew_after_a_success() -> None:
    away = [BackendError("away") for _ in range(5)]
    events = await Told(*away, "fine", BackendError("again")).run()
    paused = [event[1] for event in events if isinstance(event, tuple) and event[0] == "pause"]
    assert paused == [0.5, 1.0, 2.0, 3.0, 3.0, 0.5]


async def test_what_is_no_failure_of_a_backend_ends_the_loop_unless_it_is_to_survive() -> None:
    told = Told(StateError("a bug"), "never")
    with pytest.raises(StateError, match="a bug"):
        await run_forever(told.step, told.wait, told.on_error, Backoff(FIRST_S, MOST_S, told))
    assert told.events == ["step"]
    survived = Told(ValueError("a bug"), BackendError("away"), "fine")
    assert await survived.run(on_crash=survived.on_crash) == [
        *("step", "ValueError('a bug')", ("pause", 0.5)),
        *("step", ("away", 1.0), ("pause", 1.0)),
        *("step", ("wait", "fine"), "step"),
    ]


async def test_a_failure_that_cannot_pass_is_raised_by_who_is_told_of_it() -> None:
    def refuse(error: BackendError, _: float) -> None:
        raise error

    told, pruned = Told(BackendError("pruned")), Backoff(FIRST_S, MOST_S)
    with pytest.raises(BackendError, match="pruned"):
        await run_forever(told.step, told.wait, refuse, pruned)
    assert told.events == ["step"]


@pytest.mark.parametrize("where", ["step", "wait", "pause"])
async def test_a_cancel_passes_at_once_wherever_it_meets_the_loop(where: str) -> None:
    reached = asyncio.Event()
    told = Told(*([BackendError("away")] if where == "pause" else ["fine"]))

    async def hang(*_: object) -> None:
        reached.set()
        await asyncio.Event().wait()

    stuck: Callable[..., Awaitable[None]] = hang
    setattr(told, {"step": "step", "wait": "wait", "pause": "sleep"}[where], stuck)
    running = asyncio.ensure_future(
        run_forever(told.step, told.wait, told.on_error, Backoff(FIRST_S, MOST_S, told), on_crash=told.on_crash)
    )
    await reached.wait()
    seen = list(told.events)
    running.cancel()
    await asyncio.wait([running])
    assert running.cancelled()
    assert told.events == seen
