"""Facts that were written past the jobs get their derived rows: search follows a repair typed into psql.

A trigger notes which they are, in the transaction that writes them, so none is forgotten; doing one twice changes
nothing. It runs beside each worker, and what one is at the others pass by.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from planetwire.log import get_logger
from planetwire.ports import Clock, Wakeup
from planetwire.runtime.backoff import Backoff
from planetwire.runtime.forever import run_forever

log = get_logger()

LOOK_S = 1.0  # without a ring, and for facts that somebody held
RETRY_S = 1.0  # after the database could not be reached …
RETRY_MAX_S = 30.0  # … doubling up to this
ERROR_CHARS = 300


class ByHandFacts(Protocol):
    """What waits for its derived rows. Each call is one transaction."""

    async def any(self) -> bool:
        """Whether anything waits: nearly always not."""

    async def keys(self, after: int) -> int | None:
        """Do a page of single facts noted beyond `after`; the last that was looked at, None when there is none."""

    async def source(self) -> bool:
        """Do a page of a whole source; False when none waits."""


async def nothing() -> None:
    """There is nothing to do first."""


class ByHand:
    """The loop."""

    def __init__(
        self,
        waiting: ByHandFacts,
        wakeup: Wakeup,
        clock: Clock,
        *,
        before: Callable[[], Awaitable[object]] = nothing,
    ) -> None:
        """`wakeup` rings when something was written. `before`: done first when something waits."""
        self._before = before
        self._waiting = waiting
        self._wakeup = wakeup
        self._clock = clock

    async def run(self) -> None:
        """Until cancelled; survives every failure of the database, and every fact."""
        await run_forever(
            self.step,
            lambda _: self._wakeup.wait(LOOK_S),
            lambda error, _: log.warning("facts.by_hand.failed", error=error.message),
            Backoff(RETRY_S, RETRY_MAX_S, self._clock),
            on_crash=_crashed,
        )

    async def step(self) -> None:
        """All that waits and that nobody holds; single facts between the pages of a source. Raises BackendError."""
        while await self._waiting.any():
            await self._before()
            after: int | None = 0
            while after is not None:
                after = await self._waiting.keys(after)
            if not await self._waiting.source():
                return


def _crashed(error: Exception) -> None:
    """Nobody else may stop for a fact that we did not think of."""
    log.exception("facts.by_hand.crashed", error=repr(error)[:ERROR_CHARS])
