"""The output of `jobs watch`: progress bars on a terminal, else one line or one JSON record a change."""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from planetwire.jobs.ledger.board_postgres import Standing
from planetwire.model import Job, JobStatus
from planetwire.supervise.commands import jobs_text as text
from planetwire.text.printable import printable
from planetwire.web.earth.job_record import job_record

PACE_S = 10.0  # the rate is that of the last so many seconds
LINE_EVERY_S = 5.0  # for a job whose progress alone changes
BAR = 24
WAITING_SHOWN = 5
RUNNING = (JobStatus.RUNNING, JobStatus.CANCELLING)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The result of one poll: jobs by id, all counts, the ledger's clock, and the state of the sources."""

    jobs: Sequence[Job]
    counts: Mapping[str, int]
    now: datetime
    standing: Mapping[str, Standing]


class Pace:
    """The rates of jobs, computed from their progress at earlier polls."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[tuple[int, int], deque[tuple[float, int]]] = {}  # by job and attempt

    def note(self, jobs: Sequence[Job]) -> None:
        """Record the progress of running jobs; drop those that no longer run."""
        at = self._clock()
        running = {(job.id, job.attempts): job for job in jobs if job.status in RUNNING}
        self._seen = {key: seen for key, seen in self._seen.items() if key in running}
        for key, job in running.items():
            seen = self._seen.setdefault(key, deque())
            seen.append((at, job.records_processed))
            while len(seen) > 2 and seen[1][0] <= at - PACE_S:
                seen.popleft()

    def rate(self, job: Job) -> float:
        """Records a second; 0 while unknown."""
        seen = self._seen.get((job.id, job.attempts))
        if not seen or seen[-1][0] <= seen[0][0]:
            return 0.0
        return (seen[-1][1] - seen[0][1]) / (seen[-1][0] - seen[0][0])

    def words(self, job: Job) -> str:
        """Records, rate, time left."""
        parts = [text.records(job)] if job.records_processed or job.records_total else []
        rate = self.rate(job)
        if rate > 0:
            parts.append(f"{rate:,.0f}/s")
            if job.records_total and job.status is JobStatus.RUNNING:
                parts.append(f"{text.span(max(job.records_total - job.records_processed, 0) / rate)} left")
        return ", ".join(parts)


class Screen(Protocol):
    """The output of a watch."""

    def __enter__(self) -> Self:
        """Ready to show."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the terminal as it was."""

    def show(self, snapshot: Snapshot) -> None:
        """Jobs that have not ended."""

    def ended(self, job: Job) -> None:
        """Once a job."""

    def say(self, words: str) -> None:
        """About the watch itself."""


class Plain:
    """Lines, flushed one by one, so that a reader at the other end of a pipe sees them at once."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._pace = Pace(clock)
        self._printed: dict[int, tuple[object, float]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to restore."""

    def show(self, snapshot: Snapshot) -> None:
        """A line for each job whose state changed, or that made progress for a while."""
        self._pace.note(snapshot.jobs)
        printed = {job.id: self._printed.get(job.id) for job in snapshot.jobs}
        self._printed = {}
        for job in snapshot.jobs:
            before, at = printed[job.id] or (None, 0.0)
            reason, words = self._state(job, snapshot)
            moved = job.status in RUNNING and self._clock() - at >= LINE_EVERY_S
            if reason != before or moved:
                self.line(job, words)
                at = self._clock()
            self._printed[job.id] = (reason, at)

    def _state(self, job: Job, snapshot: Snapshot) -> tuple[object, str]:
        if job.status is JobStatus.QUEUED:
            reason, words = text.waits_for(job, snapshot.now, snapshot.standing)
            return ("queued", reason, job.attempts), f"queued: {words}"
        return (text.state(job), job.attempts), ": ".join(filter(None, (text.state(job), self._pace.words(job))))

    def line(self, job: Job, words: str) -> None:
        """One change."""
        self.say(f"job {job.id} {job.task_type} {job.source or '–'} {words}")

    def ended(self, job: Job) -> None:
        """Its last line."""
        self.line(job, text.ending(job))

    def say(self, words: str) -> None:
        """With the time, since such lines end up in files."""
        print(f"{datetime.now(UTC):%H:%M:%S}Z {printable(words)}", flush=True)


class Records(Plain):
    """A job's JSON record a line, in place of words."""

    def line(self, job: Job, words: str) -> None:
        """One change."""
        print(printable(json.dumps(job_record(job), ensure_ascii=False)), flush=True)

    def say(self, words: str) -> None:
        """Not among the records."""
        print(f"planetwire: {printable(words)}", file=sys.stderr, flush=True)


class Bars:
    """Progress bars that move, and above them a line for each job that ended."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._pace = Pace()

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def show(self, snapshot: Snapshot) -> None:
        """Running jobs, then some of those that wait, then the counts; no more than the terminal has lines for."""
        self._pace.note(snapshot.jobs)
        running = [job for job in snapshot.jobs if job.status in RUNNING]
        waiting = [job for job in snapshot.jobs if job.status is JobStatus.QUEUED]
        room = max(self._console.height - WAITING_SHOWN - 4, 1)
        grid = Table.grid(padding=(0, 2))
        for _ in range(5):
            grid.add_column(no_wrap=True, overflow="ellipsis")
        for job in running[:room]:
            grid.add_row(*self._head(job, snapshot), self._bar(job), Text(self._pace.words(job)))
        for job in waiting[:WAITING_SHOWN]:
            grid.add_row(*self._head(job, snapshot), "", Text(text.waits_for(job, snapshot.now, snapshot.standing)[1]))
        hidden = len(running[room:]) + len(waiting[WAITING_SHOWN:])
        more = [Text(f"… and {hidden} more", style="dim")] if hidden else []
        self._live.update(Group(grid, *more, Text(text.counted(snapshot.counts), style="dim")), refresh=True)

    def _head(self, job: Job, snapshot: Snapshot) -> tuple[Text, Text, Text]:
        shown = text.state(job)
        if job.status is JobStatus.CANCELLING:
            shown = f"cancelling {text.since(job.cancel_requested_at, snapshot.now)}"
        return Text(f"job {job.id}"), Text(f"{job.task_type} {text.clean(job.source) or '–'}"), Text(shown)

    def _bar(self, job: Job) -> ProgressBar:
        total = float(job.records_total) if job.records_total else None
        return ProgressBar(total=total, completed=job.records_processed, width=BAR, pulse=total is None)

    def ended(self, job: Job) -> None:
        """Stays above the bars."""
        style = "green" if job.status is JobStatus.COMPLETED else "red" if job.status is JobStatus.FAILED else "yellow"
        self._live.console.print(
            Text(f"job {job.id} {job.task_type} {text.clean(job.source) or '–'} {text.ending(job)}", style=style)
        )

    def say(self, words: str) -> None:
        """Above the bars too."""
        self._live.console.print(Text(printable(words), style="dim"))
