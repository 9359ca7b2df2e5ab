"""Pushes ledger rows to the watchers of `datasource_tasks`. There is no log: a row is the latest state of its job.

Invariant: the ledger is polled at most four times a second, and only while there are watchers; so a job causes at most
four rows a second, and only when it changed.
"""

from __future__ import annotations

import asyncio
from typing import Protocol, TypeAlias

from planetwire.log import get_logger
from planetwire.model import JobStatus, Json
from planetwire.ports import Clock, JobBoard, Wakeup
from planetwire.web.earth.job_record import for_strangers, job_record
from planetwire.web.live.frames import ws_row

log = get_logger()

BUSY_S = 0.25  # between two polls while a job runs, and at least between any two
IDLE_S = 1.0  # between two polls without a wake-up while none runs
READ_TIMEOUT_S = 5.0

Frames: TypeAlias = tuple[bytes, bytes]
"""A row for those who are shown the texts of errors, and for strangers."""

_BUSY = frozenset({JobStatus.RUNNING, JobStatus.CANCELLING})


class RowWatcher(Protocol):
    """A subscriber of job rows."""

    def offer(self, job_id: int, frame: bytes) -> None:
        """The latest row of a job; it replaces an earlier one that was not sent yet."""


class TaskBoard:
    """Reads the active jobs while watched; a row is as `GET /api/v1/jobs/{id}` gives it."""

    def __init__(self, board: JobBoard, clock: Clock, wakeup: Wakeup | None = None) -> None:
        self._board = board
        self._clock = clock
        self._wakeup = wakeup
        self._watchers: dict[RowWatcher, bool] = {}  # True: has the whole active set already
        self._strangers: set[RowWatcher] = set()  # watchers that must not see error texts
        self._nudge = asyncio.Event()
        self._shown: dict[int, Frames] = {}
        self._failing = False

    @property
    def watchers(self) -> int:
        """The number of watchers."""
        return len(self._watchers)

    def attach(self, watcher: RowWatcher, *, sees_errors: bool = True) -> None:
        """The watcher gets the whole active set at the next poll, then changes."""
        self._watchers[watcher] = False
        if not sees_errors:
            self._strangers.add(watcher)
        self._nudge.set()

    def detach(self, watcher: RowWatcher) -> None:
        """Idempotent."""
        self._watchers.pop(watcher, None)
        self._strangers.discard(watcher)

    async def run(self) -> None:
        """Poll and push, until cancelled."""
        while True:
            while not self._watchers:
                self._shown = {}
                self._nudge.clear()
                await self._nudge.wait()
            self._nudge.clear()
            busy = await self._poll()
            await self._clock.sleep(BUSY_S)
            if not busy and not self._nudge.is_set():
                await self._rest(IDLE_S - BUSY_S)

    async def _poll(self) -> bool:
        try:
            async with asyncio.timeout(READ_TIMEOUT_S):
                jobs = await self._board.active()
        except Exception as error:  # the database is unreachable: log it once, poll again later
            if not self._failing:
                log.warning("web.task_rows.failed", error=repr(error))
            self._failing = True
            return False
        self._failing = False
        self._send_changes({job.id: _frames(job_record(job)) for job in jobs})
        return any(job.status in _BUSY for job in jobs)

    def _send_changes(self, rows: dict[int, Frames]) -> None:
        changed = {job_id: frames for job_id, frames in rows.items() if self._shown.get(job_id) != frames}
        self._shown = rows
        for watcher, has_all in list(self._watchers.items()):
            which = 1 if watcher in self._strangers else 0
            for job_id, frames in (changed if has_all else rows).items():
                watcher.offer(job_id, frames[which])
            if watcher in self._watchers:
                self._watchers[watcher] = True

    async def _rest(self, seconds: float) -> None:
        """Until a wake-up, a new watcher, or the time is over."""
        waits = [asyncio.create_task(self._clock.sleep(seconds)), asyncio.create_task(self._nudged())]
        if self._wakeup is not None:
            waits.append(asyncio.create_task(self._woken(self._wakeup, seconds)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waits:
                task.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    async def _nudged(self) -> None:
        await self._nudge.wait()

    @staticmethod
    async def _woken(wakeup: Wakeup, seconds: float) -> None:
        try:
            if not await wakeup.wait(seconds):
                await asyncio.sleep(seconds)  # no wake-up: the clock ends the rest
        except Exception as error:  # a wake-up is a hint; without it the clock suffices
            log.debug("web.task_wakeup.failed", error=repr(error))
            await asyncio.sleep(seconds)


def _frames(record: Json) -> Frames:
    shown, hidden = ws_row(record), for_strangers(record)
    return shown, shown if hidden == record else ws_row(hidden)
