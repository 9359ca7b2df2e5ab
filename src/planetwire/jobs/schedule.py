"""Submits a collect job for each source whose time has come, once per tick whatever the number of processes.

When a source is due is kept in the database, and reckoned from the database's clock alone: a restart neither resets
an interval nor repeats a run, and a wrong clock here changes nothing.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from datetime import datetime, timedelta

from planetwire.errors import BackendError, InputError
from planetwire.log import get_logger
from planetwire.model import DueSource, NextRun
from planetwire.model.cron import JITTER, plan, zone_of
from planetwire.ports import Clock, ScheduleBook

log = get_logger()

POLL_S = 1.0
LATE_S = 60.0  # with `skip`, what is later than this was missed
PRUNED_ROWS = 100  # with every step that fired: more go than come


class Schedule:
    """`share`: which part of the permitted jitter a run gets, 0 to 1."""

    def __init__(
        self, book: ScheduleBook, clock: Clock, poll_s: float = POLL_S, *, share: Callable[[], float] = random.random
    ) -> None:
        self._book = book
        self._clock = clock
        self._poll_s = poll_s
        self._share = share
        self._refused: dict[str, str] = {}

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                await self.step()
            except BackendError as error:
                log.warning("data_job.schedule.failed", error=error.message)
            await self._clock.sleep(self._poll_s)

    async def step(self) -> int:
        """Fire what is due; how many jobs were new. Raises BackendError; what was due then stays due."""
        new = 0
        for due in await self._book.due():
            try:
                then = follow(due, self._share())
            except InputError as error:
                self._refuse(due.source, error.message)
                continue
            new += await self._book.settle(due, then)
        if new:
            await self._book.prune(PRUNED_ROWS)
        return new

    def _refuse(self, source: str, why: str) -> None:
        """A schedule that was written past the check waits for a better one; said once."""
        if self._refused.get(source) != why:
            self._refused[source] = why
            log.warning("data_job.schedule.refused", source=source, error=why)


def follow(due: DueSource, share: float) -> NextRun:
    """What to do about a source that is due. Raises InputError for a schedule that is none."""
    by_calendar = due.cron is not None
    if due.retry_at is not None and due.due_at is not None and due.due_at > due.now:  # its own time is still to come
        return NextRun(due.retry_at, due.tick_at, due.due_at)
    tick_at, next_run_at = _by_calendar(due, share) if by_calendar else (None, _by_interval(due, share))
    if due.retry_at is not None:
        fire_at: datetime | None = due.retry_at
    elif due.due_at is None:  # never planned: a calendar is waited for, an interval begins now
        fire_at = None if by_calendar else due.now
    else:
        fire_at = None if _missed(due) else _tick_of(due, due.due_at)
    return NextRun(fire_at, tick_at, max(next_run_at, _allowed_at(due) or next_run_at))


def _by_calendar(due: DueSource, share: float) -> tuple[datetime, datetime]:
    return plan(due.cron or "", zone_of(due.time_zone), due.now, share)


def _by_interval(due: DueSource, share: float) -> datetime:
    """From now, longer by the jitter; after a run that was skipped, the next one of the same beat."""
    if due.due_at is not None and _missed(due):
        beats = math.floor((due.now - due.due_at).total_seconds() / due.interval_s) + 1
        return due.due_at + timedelta(seconds=beats * due.interval_s)
    return due.now + timedelta(seconds=due.interval_s * (1 + JITTER * share))


def _tick_of(due: DueSource, due_at: datetime) -> datetime:
    """The name of this firing: all who see the same tick give it the same."""
    if due.cron is not None and due.tick_at is not None and due.tick_at <= due.now:
        return due.tick_at
    return due_at


def _missed(due: DueSource) -> bool:
    """Whether nobody was there at the time. Waiting for the floor is not being late."""
    if due.misfire != "skip" or due.due_at is None:
        return False
    could_run_at = max(due.due_at, _allowed_at(due) or due.due_at)
    return due.now - could_run_at > timedelta(seconds=LATE_S)


def _allowed_at(due: DueSource) -> datetime | None:
    return due.answered_at + timedelta(seconds=due.floor_s) if due.answered_at is not None else None
