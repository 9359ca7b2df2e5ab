"""The ledger, as workers, routes and the schedule see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from planetwire.model import Actor, DueSource, Job, JobRequest, JobStatus, Lease, NextRun


class JobTx(Protocol):
    """The open transaction of one batch. Backends of other ports that share the database write through it."""

    connection: Any

    def progress(
        self,
        records: int,
        *,
        total: int | None = None,
        message: str | None = None,
        phase: str | None = None,
        rejects: int = 0,
        sample: str | None = None,
    ) -> None:
        """Count `records` more rows; stored in the same commit, so progress equals committed rows.

        `rejects` adds up too; of the samples, at most 200 characters of the first is kept.
        """


class JobQueue(Protocol):
    """The ledger. At most one running write job per source; a lost lease cannot commit; final is final."""

    async def submit(self, request: JobRequest) -> tuple[Job, bool]:
        """The job and True, or a queued same-type job of the source (or of the idempotency key) and False."""

    async def claim(self, worker_id: str, task_types: Sequence[str], limit: int) -> Sequence[Lease]:
        """Up to `limit` runnable jobs, FIFO by (priority, id) within a source. Never two of one source."""

    async def heartbeat(self, leases: Sequence[Lease]) -> Mapping[int, JobStatus]:
        """Extend the leases still owned; a missing id is lost, `cancelling` asks the job to stop."""

    def batch(self, lease: Lease) -> AbstractAsyncContextManager[JobTx]:
        """One fenced transaction: rows and progress commit together, or LeaseLost and neither does."""

    async def finish(
        self,
        lease: Lease,
        status: JobStatus,
        *,
        message: str | None = None,
        error: tuple[str, str] | None = None,
        retry_after_s: float | None = None,
        sample: str | None = None,
    ) -> bool:
        """Move to a final state (or back to queued with back-off when `failed` and attempts remain).

        `error` is (code, text); `retry_after_s` is the least back-off; `sample`: what was at fault. False when the
        lease was lost: then nothing was written. Idempotent.
        """

    async def cancel(self, task_id: int) -> Job:
        """Queued → cancelled, running → cancelling; again: no change. Raises NotFound, StateError if final."""

    async def rescue(self, limit: int = 100) -> int:
        """Take back jobs whose lease ran out: requeued, failed after the last attempt, or cancelled."""


class JobUpkeep(Protocol):
    """What a worker needs beside the queue, and what operators do to it."""

    async def look(self, leases: Sequence[Lease]) -> Mapping[int, JobStatus]:
        """Status of the leases still owned, without extending them; a missing id is lost."""

    async def release(self, leases: Sequence[Lease]) -> int:
        """Give jobs back unfinished, the attempt not counted; `cancelling` ones end cancelled. How many."""

    async def open_gate(self, seconds: float) -> None:
        """Ask writers to ring the doorbell `planet_task_control` for a while (contracts §1)."""

    async def park(self) -> int:
        """Take jobs of busy and paused sources out of the way of claims; how many. 0: whatever can run is seen."""

    async def pause(self, source: str, paused: bool) -> None:
        """No write job of the source starts while it is paused; one that runs goes on. Idempotent."""

    async def sweep(self) -> int:
        """Look at some more sources for jobs that nobody sees; how many there were: must be 0."""

    async def prune(self) -> int:
        """Delete some of the finished jobs that are past their time; how many."""


class JobBoard(Protocol):
    """Read side of the ledger for people; bounded whatever the backlog."""

    async def get(self, task_id: int) -> Job:
        """Raises NotFound."""

    async def page(
        self, *, status: str | None, source: str | None, cursor: int | None, limit: int
    ) -> tuple[Sequence[Job], int | None]:
        """Newest first; the second value is the next cursor or None."""

    async def active(self) -> Sequence[Job]:
        """Running and cancelling jobs, the first 50 waiting, and jobs finished in the last 30 s."""

    async def dead(self, *, source: str | None, cursor: int | None, limit: int) -> tuple[Sequence[Job], int | None]:
        """Failed jobs that nobody has tried again, newest first; the second value is the next cursor or None."""

    async def counts(self) -> Mapping[str, int]:
        """How many are `running`, `queued` and `dead`; counted up to 10,000 and at most every 2 s."""


class JobDesk(Protocol):
    """What people do to the ledger. Each wish and the audit row that names who had it are one transaction."""

    async def submit(self, by: Actor, request: JobRequest) -> tuple[Job, bool]:
        """As JobQueue's."""

    async def cancel(self, by: Actor, task_id: int) -> Job:
        """As JobQueue's; a repeated wish is no second act."""

    async def retry(self, by: Actor, jobs: Sequence[Job]) -> tuple[Job, bool]:
        """One job for the work that all of these ended jobs name, as the first names it; noted with each of them.

        Tried again one by one they would share a job only while that one waits. Raises StateError while one is active.
        """

    async def pause(self, by: Actor, source: str, paused: bool) -> None:
        """As JobUpkeep's."""


class ScheduleBook(Protocol):
    """When each source runs next. All its times are the store's clock."""

    async def due(self) -> Sequence[DueSource]:
        """Enabled sources whose time has come and whose floor has passed, in name order; reading changes nothing."""

    async def settle(self, due: DueSource, then: NextRun) -> bool:
        """Fire and plan on, together or not at all; whether a new job was made. Once per tick across processes."""

    async def prune(self, limit: int) -> int:
        """Forget up to `limit` firings that are old enough; how many."""
