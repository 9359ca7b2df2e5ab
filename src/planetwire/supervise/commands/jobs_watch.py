"""`planetwire jobs watch`: polls the ledger a few times a second and prints changes. Read-only."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Sequence

from rich.console import Console

from planetwire.errors import BackendError, NotFound
from planetwire.jobs.ledger.board_postgres import PostgresJobBoard
from planetwire.model import Job, JobStatus
from planetwire.settings import Settings
from planetwire.supervise.commands.command import say
from planetwire.supervise.commands.jobs_cli import run
from planetwire.supervise.commands.jobs_screen import RUNNING, Bars, Plain, Records, Screen, Snapshot
from planetwire.supervise.commands.jobs_text import counted
from planetwire.wiring.commands import Ledger, canonical

BUSY_S = 0.25  # between two polls while a job runs …
IDLE_S = 1.0  # … and while none does
GIVE_UP_S = 60.0  # without an answer of the database
SOURCE_JOBS = 50
INTERRUPTED, TERMINATED = 130, 143


class Watch:
    """Which jobs are watched: the named ones, those of a source, or all running ones."""

    def __init__(self, board: PostgresJobBoard, task_ids: Sequence[int] = (), source: str | None = None) -> None:
        self._board = board
        self._ids = tuple(dict.fromkeys(task_ids))
        self._source = source
        self._started: set[int] = set()  # seen running, end not seen yet
        self._over: dict[int, Job] = {}  # named ones that ended: a final row never changes

    async def poll(self) -> Snapshot:
        """Raises NotFound for a named job that is not there."""
        jobs = {job.id: job for job in await self._found()}
        for task_id in self._started - jobs.keys():
            try:
                jobs[task_id] = await self._board.get(task_id)  # it ended, and is no longer among the latest
            except NotFound:
                continue
        self._started = {job.id for job in jobs.values() if job.id in self._started and not job.status.is_final}
        self._started |= {job.id for job in jobs.values() if job.status in RUNNING}
        shown = [job for _, job in sorted(jobs.items()) if self._wanted(job)]
        waiting = [job.source for job in shown if job.status is JobStatus.QUEUED]
        now, standing = await self._board.standing(waiting)
        return Snapshot(shown, await self._board.counts(), now, standing)

    def _wanted(self, job: Job) -> bool:
        named = bool(self._ids) or self._source is not None
        return named or job.status is not JobStatus.QUEUED or job.id in self._started

    async def _found(self) -> Sequence[Job]:
        if self._ids:
            return await self._named()
        if self._source is None:
            return await self._board.active()
        pages = [
            await self._board.page(status=status, source=self._source, cursor=None, limit=SOURCE_JOBS)
            for status in (JobStatus.RUNNING, JobStatus.CANCELLING, None)
        ]
        return [job for found, _ in pages for job in found]

    async def _named(self) -> Sequence[Job]:
        active = {job.id: job for job in await self._board.active()}
        for task_id in self._ids:
            if task_id not in self._over:
                job = active.get(task_id) or await self._board.get(task_id)
                active[task_id] = job
                if job.status.is_final:
                    self._over[task_id] = job
        return [self._over.get(task_id) or active[task_id] for task_id in self._ids]

    def outcome(self) -> int | None:
        """None while a named job is active, or if none is named; else 0 if all completed, 1 if not."""
        if not self._ids or len(self._over) < len(self._ids):
            return None
        return 0 if all(job.status is JobStatus.COMPLETED for job in self._over.values()) else 1

    @property
    def shows_ended(self) -> bool:
        """Whether jobs that had ended before the first poll are shown too."""
        return bool(self._ids)


async def follow(
    watch: Watch, screen: Screen, *, once: bool = False, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> int:
    """Until the named jobs have ended; the exit status. Raises NotFound, and BackendError without a database."""
    shown_ended: set[int] | None = set() if watch.shows_ended else None
    lost_at: float | None = None
    first = True
    with screen:
        while True:
            try:
                snapshot = await watch.poll()
            except BackendError as error:
                lost_at = _lost(error, lost_at, screen, first=first)
                await sleep(IDLE_S)
                continue
            if lost_at is not None:
                screen.say("the database answers again")
                lost_at = None
            first = False
            shown_ended = _show_changes(snapshot, shown_ended, screen)
            outcome = watch.outcome()
            if once:
                screen.say(counted(snapshot.counts))
            if outcome is not None or once:
                return outcome or 0
            await sleep(BUSY_S if any(job.status in RUNNING for job in snapshot.jobs) else IDLE_S)


def _lost(error: BackendError, lost_at: float | None, screen: Screen, *, first: bool) -> float:
    """Since when the database does not answer. Raises the error at the first poll, and when it lasts too long."""
    now = time.monotonic()
    if first or (lost_at is not None and now - lost_at >= GIVE_UP_S):
        raise error
    if lost_at is None:
        screen.say(f"the database does not answer; looking again for {GIVE_UP_S:g} s")
    return now if lost_at is None else lost_at


def _show_changes(snapshot: Snapshot, shown_ended: set[int] | None, screen: Screen) -> set[int]:
    """Show each ended job once; `shown_ended` None: skip jobs that had ended before the first poll."""
    over = [job for job in snapshot.jobs if job.status.is_final]
    for job in over if shown_ended is not None else ():
        if shown_ended is not None and job.id not in shown_ended:
            screen.ended(job)
    going_on = [job for job in snapshot.jobs if not job.status.is_final]
    screen.show(Snapshot(going_on, snapshot.counts, snapshot.now, snapshot.standing))
    return {job.id for job in over}


def _screen(*, once: bool, as_json: bool) -> Screen:
    if as_json:
        return Records()
    console = Console()
    moves = console.is_terminal and not console.is_dumb_terminal and not once
    return Bars(console) if moves else Plain()


def watch(settings: Settings, task_ids: Sequence[int], *, source: str | None, once: bool, as_json: bool) -> int:
    """The exit status."""

    async def work(ledger: Ledger) -> int:
        task = asyncio.current_task()
        if task is not None and threading.current_thread() is threading.main_thread():  # elsewhere no signal arrives
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        aim = Watch(ledger.board, task_ids, canonical(source) if source else None)
        return await follow(aim, _screen(once=once, as_json=as_json), once=once)

    logging.getLogger("asyncpg").setLevel(logging.CRITICAL + 1)  # a lost server is reported in one line, no tracebacks
    try:
        return run(settings, work)
    except KeyboardInterrupt:
        say("stopped looking; the jobs go on", err=True)
        return INTERRUPTED
    except asyncio.CancelledError:
        return TERMINATED
