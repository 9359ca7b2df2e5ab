"""One job in this process: its coroutine, why it is being ended, and what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal, NamedTuple, TypeAlias

from planetwire.errors import FeedError, LeaseLost, PlanetwireError
from planetwire.log import get_logger
from planetwire.model import JobStatus, Lease

log = get_logger()

Handler: TypeAlias = Callable[[Lease], Awaitable[str | None]]
Reason: TypeAlias = Literal["cancel", "lost", "stop", "deadline"]
Phase: TypeAlias = Literal["new", "handling", "ending"]

STOPPED = "stopped; committed batches are kept"
DEADLINE = ("deadline_exceeded", "the job ran longer than its type may")


class Outcome(NamedTuple):
    """What to write to the ledger. `status` None: nothing; the job is queued again if `release` is set."""

    status: JobStatus | None
    message: str | None = None
    error: tuple[str, str] | None = None
    retry_after_s: float | None = None
    sample: str | None = None
    release: bool = False


class Running:
    """A claimed job. Its coroutine is interrupted only while the handler runs, never while its end is written.

    `ends_at`: its deadline by the worker's monotonic clock.
    """

    __slots__ = ("_ended", "_phase", "_reason", "ends_at", "lease", "task")

    def __init__(self, lease: Lease, ends_at: float, ended: Callable[[Running], None]) -> None:
        self._ended = ended
        self.lease = lease
        self.ends_at = ends_at
        self.task: asyncio.Task[None] | None = None
        self._phase: Phase = "new"
        self._reason: Reason | None = None

    def gone(self, task: object) -> None:
        """The coroutine has ended, with or without an error."""
        self._ended(self)

    def end(self, reason: Reason) -> None:
        """Make the handler stop. The first reason stays; idempotent."""
        if self._reason is None and self._phase != "ending":
            self._reason = reason
            if self._phase == "handling" and self.task is not None:
                self.task.cancel()

    async def handle(self, handler: Handler) -> Outcome:
        """Run the handler; whatever it raises becomes an outcome."""
        self._phase = "handling"
        try:
            if self._reason is not None:
                raise asyncio.CancelledError
            return Outcome(JobStatus.COMPLETED, await handler(self.lease))
        except asyncio.CancelledError:
            return self._interrupted()
        except LeaseLost:
            # Being stopped, or taken by a rescue: finishing writes only in the first case.
            return Outcome(JobStatus.CANCELLED, STOPPED)
        except PlanetwireError as error:
            after_s, sample = (error.retry_after_s, error.sample) if isinstance(error, FeedError) else (None, None)
            return Outcome(JobStatus.FAILED, error=(error.code, error.message), retry_after_s=after_s, sample=sample)
        except Exception as error:
            log.exception("data_job.handler.crashed", task_id=self.lease.job.id)
            return Outcome(JobStatus.FAILED, error=("internal", f"an error of ours: {type(error).__name__}"))
        finally:
            self._phase = "ending"

    def _interrupted(self) -> Outcome:
        if self._reason == "cancel":
            return Outcome(JobStatus.CANCELLED, STOPPED)
        if self._reason == "lost":
            return Outcome(None)
        if self._reason == "stop":
            return Outcome(None, release=True)
        if self._reason == "deadline":
            return Outcome(JobStatus.FAILED, error=DEADLINE)
        # Cancelled by unknown code: to release the job without counting an attempt could repeat for ever.
        return Outcome(JobStatus.FAILED, error=("interrupted", "the job was interrupted"))
