"""Derives the rows of facts that no job wrote, so that search follows a repair typed into psql.

A trigger notes them in the transaction that writes them, so none is missed; deriving is idempotent. The loop runs
beside each worker; notes that one of them has locked are skipped by the others.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from planetwire.log import get_logger
from planetwire.ports import Clock, Wakeup
from planetwire.runtime.backoff import Backoff
from planetwire.runtime.forever import run_forever

log = get_logger()

POLL_S = 1.0  # without a wake-up, and for facts that were locked
RETRY_S = 1.0  # after the database could not be reached …
RETRY_MAX_S = 30.0  # … doubling up to this
ERROR_CHARS = 300


class ByHandFacts(Protocol):
    """The notes of facts whose derived rows are missing. Each call is one transaction."""

    async def any(self) -> bool:
        """Whether there are any notes: usually none."""

    async def keys(self, after: int) -> int | None:
        """Derive a page of single facts, noted after id `after`; returns the last id read, None if there was none."""

    async def source(self) -> bool:
        """Derive a page of a source noted as a whole; False if there is none."""


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
        """`wakeup`: of changes to facts. `before`: awaited before noted facts are derived."""
        self._before = before
        self._waiting = waiting
        self._wakeup = wakeup
        self._clock = clock

    async def run(self) -> None:
        """Until cancelled; survives every failure of the database, and errors in deriving."""
        await run_forever(
            self.step,
            lambda _: self._wakeup.wait(POLL_S),
            lambda error, _: log.warning("facts.by_hand.failed", error=error.message),
            Backoff(RETRY_S, RETRY_MAX_S, self._clock),
            on_crash=_crashed,
        )

    async def step(self) -> None:
        """Derive all noted facts not locked by others; single ones between pages of a source. Raises BackendError."""
        while await self._waiting.any():
            await self._before()
            after: int | None = 0
            while after is not None:
                after = await self._waiting.keys(after)
            if not await self._waiting.source():
                return


def _crashed(error: Exception) -> None:
    """An unexpected fact must not stop the rest of the process."""
    log.exception("facts.by_hand.crashed", error=repr(error)[:ERROR_CHARS])
