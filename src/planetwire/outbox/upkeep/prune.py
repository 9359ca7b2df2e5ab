"""The loop that prunes outbox and event log once a minute, in batches, so that no other statement waits for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from planetwire.errors import BackendError
from planetwire.log import get_logger
from planetwire.ports import Clock

log = get_logger()

EVERY_S = 60.0
BATCHES_MAX = 500  # of one kind per round; the rest goes in the next
PAUSE_S = 0.02  # between two batches, to let others in

Step = Callable[[], Awaitable[int]]


async def prune_forever(steps: Sequence[Step], clock: Clock, every_s: float = EVERY_S) -> None:
    """Run every step until it deletes nothing, each `every_s`, until cancelled. The next round retries after errors."""
    while True:
        try:
            gone = [await _exhaust(step, clock) for step in steps]
            if any(gone):
                log.info("earth.log.pruned", rows=gone)
        except BackendError as error:
            log.warning("earth.log.prune_failed", error=error.message)
        await clock.sleep(every_s)


async def _exhaust(step: Step, clock: Clock) -> int:
    total = 0
    for _ in range(BATCHES_MAX):
        gone = await step()
        total += gone
        if not gone:
            break
        await clock.sleep(PAUSE_S)
    return total
