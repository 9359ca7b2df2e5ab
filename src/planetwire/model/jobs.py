"""Jobs: their types, their ledger rows, and the lease under which they run."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from planetwire.model.common import Json


class Lane(StrEnum):
    """What the ledger needs to know of a task type; in the database, the function `planet_task_lane`."""

    FILL = "fill"  # writes facts of its source, one job of a source at a time; a retry starts over
    CLEAR = "clear"  # deletes them, never while a fill job runs; a retry continues where the last one stopped; audited
    FREE = "free"  # touches no facts, needs no source and waits for no job


class TaskType(StrEnum):
    """The kind of work of a job."""

    COLLECT = "collect"
    CLEAR_DATA = "clear_data"
    CLEAR_CACHE = "clear_cache"
    EARTH_REFRESH = "earth_refresh"

    @property
    def lane(self) -> Lane:
        """The lane of its jobs."""
        return _LANES[self]

    @property
    def is_write(self) -> bool:
        """Whether its jobs write: such a job needs a source, and one runs at a time per source."""
        return self.lane is not Lane.FREE


_LANES = {
    TaskType.COLLECT: Lane.FILL,
    TaskType.CLEAR_DATA: Lane.CLEAR,
    TaskType.CLEAR_CACHE: Lane.FREE,
    TaskType.EARTH_REFRESH: Lane.FREE,
}


class JobStatus(StrEnum):
    """queued → running → completed | failed; queued → cancelled; running → cancelling → cancelled | completed."""

    QUEUED = "queued"
    RUNNING = "running"
    CANCELLING = "cancelling"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Final states never change again."""
        return self in (JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED)


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A request for a job. `source` may be None unless the type is a write."""

    task_type: TaskType
    source: str | None
    payload: Json = field(default_factory=dict)
    priority: int = 100
    idempotency_key: str | None = None


class Job(NamedTuple):
    """One ledger row as clients see it. Times are aware UTC; `progress` is 0..1. A tuple: made ten times as fast."""

    id: int
    task_type: TaskType
    source: str | None
    status: JobStatus
    priority: int
    payload: Json
    progress: float
    records_processed: int
    records_total: int | None
    message: str | None
    error_code: str | None
    error: str | None
    attempts: int
    max_attempts: int
    idempotency_key: str | None
    worker_id: str | None
    lease_seq: int
    lease_until: datetime | None
    heartbeat_at: datetime | None
    scheduled_at: datetime | None
    created_at: datetime
    started_at: datetime | None
    cancel_requested_at: datetime | None
    finished_at: datetime | None
    phase: str | None = None  # of a running job: fetch, write, clear
    batches: int = 0  # committed; a cancel keeps them
    rejects: int = 0
    sample: str | None = None  # the first faulty record, or the start of the faulty body
    deadline_at: datetime | None = None  # its lease ends then, whatever the heartbeats
    retried_as: int | None = None


@dataclass(frozen=True, slots=True)
class DueSource:
    """A source whose time has come, as the database saw it at `now`, its clock. `due_at`: None before any plan.

    `tick_at` is the tick of `cron` that `due_at` stands for, before jitter and floor. `retry_at`: the next
    try after a transient failure, regardless of the schedule. The floor counts from `answered_at`.
    """

    source: str
    now: datetime
    due_at: datetime | None
    tick_at: datetime | None
    retry_at: datetime | None
    answered_at: datetime | None
    interval_s: float
    floor_s: float
    cron: str | None
    time_zone: str | None
    misfire: str


@dataclass(frozen=True, slots=True)
class NextRun:
    """What follows for a due source: the tick that fires now, or None to skip it, and when it is due again."""

    fire_at: datetime | None
    tick_at: datetime | None
    next_run_at: datetime


class ClaimedJob(NamedTuple):
    """The columns of a claimed job that its worker needs; those that the claim itself sets are left out."""

    id: int
    task_type: TaskType
    source: str | None
    priority: int
    payload: Json
    records_processed: int
    attempts: int
    max_attempts: int


class Lease(NamedTuple):
    """The time-limited right to run one job; `seq` is the fencing token checked by every batch."""

    job: ClaimedJob
    worker_id: str
    seq: int


class JobLine(NamedTuple):
    """A line of a job's log: `event` is a stable word, `text` at most 500 characters without control characters."""

    at: datetime
    event: str
    text: str
