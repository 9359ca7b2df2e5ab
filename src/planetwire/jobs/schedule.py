"""Submits a collect job for each source that is due, once per tick whatever the number of processes.

Due times are stored in the database and computed from its clock alone: a restart neither resets an interval nor
repeats a run, and a wrong clock of this host has no effect.
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
LATE_S = 60.0  # with `skip`, a run that is later than this is skipped
PRUNED_ROWS = 100  # after every step that fired: more than one step adds


class Schedule:
    """`share` gives the fraction of the permitted jitter that a run gets, 0 to 1."""

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
        """Fire all due sources; returns how many jobs were new. Raises BackendError; sources not fired stay due."""
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
        """An invalid schedule, written to the database by hand, is skipped until corrected; logged once."""
        if self._refused.get(source) != why:
            self._refused[source] = why
            log.warning("data_job.schedule.refused", source=source, error=why)


def follow(due: DueSource, share: float) -> NextRun:
    """What follows for a due source. Raises InputError for an invalid schedule."""
    by_calendar = due.cron is not None
    if due.retry_at is not None and due.due_at is not None and due.due_at > due.now:  # the regular run is still ahead
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
    """One interval from now plus jitter; after a skipped run, the next multiple of the interval from the due time."""
    if due.due_at is not None and _missed(due):
        intervals = math.floor((due.now - due.due_at).total_seconds() / due.interval_s) + 1
        return due.due_at + timedelta(seconds=intervals * due.interval_s)
    return due.now + timedelta(seconds=due.interval_s * (1 + JITTER * share))


def _tick_of(due: DueSource, due_at: datetime) -> datetime:
    """The identity of this firing: every process that sees the same tick computes the same."""
    if due.cron is not None and due.tick_at is not None and due.tick_at <= due.now:
        return due.tick_at
    return due_at


def _missed(due: DueSource) -> bool:
    """Whether the run is too late because no process ran at the time. Waiting for the floor does not count."""
    if due.misfire != "skip" or due.due_at is None:
        return False
    could_run_at = max(due.due_at, _allowed_at(due) or due.due_at)
    return due.now - could_run_at > timedelta(seconds=LATE_S)


def _allowed_at(due: DueSource) -> datetime | None:
    return due.answered_at + timedelta(seconds=due.floor_s) if due.answered_at is not None else None
