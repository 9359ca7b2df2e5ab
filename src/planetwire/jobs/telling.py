"""Buffers the lines that a worker logs about its jobs, bounded in number, length and content, and writes them in bulk.

Adding a line never waits and never fails: no job depends on its log.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from planetwire.jobs.ledger.ends_postgres import HOPELESS
from planetwire.jobs.running import Outcome
from planetwire.log import get_logger
from planetwire.model import ClaimedJob, JobLine
from planetwire.ports import Clock, JobLog

log = get_logger()

LINE_MAX = 500
LINES_MAX = 200  # of one job; the oldest are dropped
JOBS_MAX = 500  # with unwritten lines; those of the oldest job are dropped first
FLUSH_S = 0.5
REST_S = 10.0  # after a failure

# Secrets that a feed or a driver may have put into an error's text.
_USER_INFO = re.compile(r"(?<=://)[^/@\s]*@")
_NAME = r"\b([\w-]*(?:token|key|secret|password|passwd|authorization)[\w-]*)"
_SECRET = re.compile(_NAME + r"""(["']?\s*[=:]\s*["']?)(?:bearer\s+)?[^\s&,;)"']+""", re.IGNORECASE)
_SCANNED_MAX = 4 * LINE_MAX  # bounds the work; the rest would be cut anyway

Tell: TypeAlias = Callable[[int, str, str], None]  # job, event, text


def silent(task_id: int, event: str, text: str) -> None:
    """Discards the line."""


def line_text(text: str) -> str:
    """The text on one line, at most 500 characters; control characters, user info in URLs and named secrets removed."""
    shown = " ".join("".join(c if c.isprintable() else " " for c in text[:_SCANNED_MAX]).split())
    shown = _SECRET.sub(r"\1\2***", _USER_INFO.sub("***@", shown))
    return shown if len(shown) <= LINE_MAX else shown[: LINE_MAX - 1] + "…"


def end_line(job: ClaimedJob, status: str, outcome: Outcome) -> tuple[str, str]:
    """Event and text of the last line of a run."""
    if outcome.error is not None:
        code, text = outcome.error
        left = job.max_attempts - job.attempts
        again = f"; {left} more attempt{'' if left == 1 else 's'} left" if left > 0 and code not in HOPELESS else ""
        after = f", not before {outcome.retry_after_s:g} s from now" if again and outcome.retry_after_s else ""
        return status, f"[{code}] {text}{again}{after}"
    if status == "released":
        return status, "given back to the queue: this worker ends"
    if status == "lost":
        return status, "another worker took the job over, or it was ended by the ledger"
    return status, outcome.message or ""


class Telling:
    """Buffers lines and writes them to the job log twice a second. Call `tell` from the event loop's thread only."""

    def __init__(self, job_log: JobLog, clock: Clock) -> None:
        self._log = job_log
        self._clock = clock
        self._unwritten: dict[int, deque[JobLine]] = {}

    def tell(self, task_id: int, event: str, text: str) -> None:
        """Buffer one line."""
        lines = self._unwritten.get(task_id)
        if lines is None:
            if len(self._unwritten) >= JOBS_MAX:
                self._unwritten.pop(next(iter(self._unwritten)))
            lines = self._unwritten[task_id] = deque(maxlen=LINES_MAX)
        lines.append(JobLine(self._clock.now(), event, line_text(text)))

    async def run(self) -> None:
        """Write, until cancelled. Lines that could not be written are lost."""
        failing = False
        while True:
            await self._clock.sleep(REST_S if failing else FLUSH_S)
            try:
                await self.flush()
                failing = False
            except Exception as error:  # of any kind: losing lines must not end a job
                if not failing:
                    log.warning("data_job.log.failed", error=repr(error))
                failing = True

    async def flush(self) -> None:
        """Write all buffered lines. Raises BackendError; the lines are then lost."""
        lines_of, self._unwritten = self._unwritten, {}
        if lines_of:
            await self._log.append({task_id: list(lines) for task_id, lines in lines_of.items()})
