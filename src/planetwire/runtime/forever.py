"""The loop of everything that works as long as its process does: a step, a wait, and a pause when a backend is away."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from planetwire.errors import BackendError
from planetwire.runtime.backoff import Backoff

T = TypeVar("T")


async def run_forever(
    step: Callable[[], Awaitable[T]],
    wait: Callable[[T], Awaitable[object]],
    on_error: Callable[[BackendError, float], None],
    backoff: Backoff,
    *,
    on_crash: Callable[[Exception], None] | None = None,
) -> None:
    """Until cancelled. `wait` gets what the step gave; after a failure the step is tried again without waiting for it.

    `on_error` is told of each BackendError and of the pause that follows, and may raise to end the loop. `on_crash` is
    told of every other exception; without it those end the loop, as a bug should that nobody has thought of. What
    `wait` raises always does.
    """
    while True:
        try:
            outcome = await step()
        except BackendError as error:
            on_error(error, backoff.next_s)
            await backoff.pause()
        except Exception as error:
            if on_crash is None:
                raise
            on_crash(error)
            await backoff.pause()
        else:
            backoff.reset()
            await wait(outcome)
