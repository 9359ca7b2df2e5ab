"""The ledger, for workers, routes and the schedule."""

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

        `error` is (code, text); `retry_after_s`: the minimum back-off; `sample`: of the faulty input. False if the
        lease was lost: then nothing was written. Idempotent.
        """

    async def cancel(self, task_id: int) -> Job:
        """Queued → cancelled, running → cancelling; again: no change. Raises NotFound, StateError if final."""

    async def rescue(self, limit: int = 100) -> int:
        """Take back jobs whose lease ran out: requeued, failed after the last attempt, or cancelled."""


class JobUpkeep(Protocol):
    """Further operations of workers and operators on the ledger."""

    async def look(self, leases: Sequence[Lease]) -> Mapping[int, JobStatus]:
        """Status of the leases still owned, without extending them; a missing id is lost."""

    async def release(self, leases: Sequence[Lease]) -> int:
        """Release unfinished jobs without counting the attempt; `cancelling` ones end cancelled. Returns how many."""

    async def open_gate(self, seconds: float) -> None:
        """Ask writers to send wake-ups on `planet_task_control` for a while (contracts §1)."""

    async def park(self) -> int:
        """Hide jobs of busy and paused sources from claims; returns how many. 0: every runnable job is visible."""

    async def pause(self, source: str, paused: bool) -> None:
        """No write job of the source starts while it is paused; a running one continues. Idempotent."""

    async def sweep(self) -> int:
        """Check some more sources for hidden runnable jobs; returns how many there were: must be 0."""

    async def prune(self) -> int:
        """Delete some of the finished jobs past their retention; returns how many."""


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
        """Failed jobs that were not retried, newest first; the second value is the next cursor or None."""

    async def counts(self) -> Mapping[str, int]:
        """The numbers of `running`, `queued` and `dead` jobs; counted up to 10,000 and at most every 2 s."""


class JobDesk(Protocol):
    """People's actions on the ledger. Each is one transaction with its audit row."""

    async def submit(self, by: Actor, request: JobRequest) -> tuple[Job, bool]:
        """As JobQueue's."""

    async def cancel(self, by: Actor, task_id: int) -> Job:
        """As JobQueue's; a repeated cancel is not audited again."""

    async def retry(self, by: Actor, jobs: Sequence[Job]) -> tuple[Job, bool]:
        """One job for the work of all these ended jobs, with the first one's parameters; recorded with each of them.

        Retried one by one they would share a job only while it waits. Raises StateError while one is active.
        """

    async def pause(self, by: Actor, source: str, paused: bool) -> None:
        """As JobUpkeep's."""


class ScheduleBook(Protocol):
    """The next run of each source. All times are by the store's clock."""

    async def due(self) -> Sequence[DueSource]:
        """Enabled sources that are due and past their floor, in name order; read-only."""

    async def settle(self, due: DueSource, then: NextRun) -> bool:
        """Fire and plan the next run atomically; returns whether a job was created. Once per tick across processes."""

    async def prune(self, limit: int) -> int:
        """Delete up to `limit` old firings; returns how many."""
