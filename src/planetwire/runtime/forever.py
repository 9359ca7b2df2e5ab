"""The loop of every long-running task: a step, a wait, and a back-off while a backend is unreachable."""

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
    """Until cancelled. `wait` gets the step's result; after a failure the step is retried without it.

    `on_error` is called with each BackendError and the pause that follows, and may raise to end the loop. `on_crash` is
    called with every other exception; without it those end the loop, as an unknown bug should. Errors of `wait` always
    do.
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
