"""Submits a collect job for each source whose time has come, once per interval whatever the number of processes.

When a source is due is kept in the database: a restart neither resets an interval nor repeats a run.
"""

from __future__ import annotations

from collections.abc import Mapping

from planetwire.errors import BackendError
from planetwire.log import get_logger
from planetwire.model import JobRequest, TaskType
from planetwire.ports import Clock, JobQueue, SourceStore

log = get_logger()

POLL_S = 1.0


class Schedule:
    """`intervals`: seconds between two runs of each source, unless the operator set another."""

    def __init__(
        self,
        queue: JobQueue,
        sources: SourceStore,
        intervals: Mapping[str, float],
        clock: Clock,
        poll_s: float = POLL_S,
    ) -> None:
        self._queue = queue
        self._sources = sources
        self._intervals = intervals
        self._clock = clock
        self._poll_s = poll_s
        self._owed: set[str] = set()  # given out to us, but not submitted yet

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                await self.step()
            except BackendError as error:
                log.warning("data_job.schedule.failed", error=error.message)
            await self._clock.sleep(self._poll_s)

    async def step(self) -> int:
        """Submit what is due; how many jobs were new. Raises BackendError; what was due then stays owed."""
        self._owed.update(await self._sources.due(self._intervals))
        new = 0
        for source in sorted(self._owed):
            _, created = await self._queue.submit(JobRequest(TaskType.COLLECT, source, {"scheduled": True}))
            self._owed.discard(source)
            new += created
        return new
