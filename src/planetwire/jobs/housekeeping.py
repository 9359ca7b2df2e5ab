"""Periodic maintenance of the ledger: repairs jobs that no claim can see (there must be none), deletes expired rows."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence

from planetwire.errors import BackendError
from planetwire.log import get_logger
from planetwire.ports import Clock

log = get_logger()

PERIOD_S = 30.0
BATCHES = 20  # of each prune in one round; a large backlog takes several rounds


class Housekeeping:
    """`sweep` once and each of `prunes` until it finds nothing, every 30 s ± 20 %, in every work process."""

    def __init__(
        self, sweep: Callable[[], Awaitable[int]], prunes: Sequence[Callable[[], Awaitable[int]]], clock: Clock
    ) -> None:
        self._sweep = sweep
        self._prunes = prunes
        self._clock = clock

    async def run(self) -> None:
        """Until cancelled; a database error skips one round."""
        while True:
            await self._clock.sleep(PERIOD_S * random.uniform(0.8, 1.2))
            try:
                await self.step()
            except BackendError as error:
                log.warning("data_job.upkeep.failed", what="housekeeping", error=error.message)

    async def step(self) -> int:
        """One round; how many rows were deleted. Raises BackendError."""
        await self._sweep()
        gone = 0
        for prune in self._prunes:
            for _ in range(BATCHES):
                now_gone = await prune()
                gone += now_gone
                if not now_gone:
                    break
        return gone
