"""Ledger rows for tests that need no ledger."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from planetwire.model import Job, JobStatus, TaskType

_JOB = Job(
    id=1, task_type=TaskType.COLLECT, source="usgs_quakes", status=JobStatus.RUNNING, priority=100, payload={},
    progress=0.0, records_processed=0, records_total=None, message=None, error_code=None, error=None, attempts=1,
    max_attempts=3, idempotency_key=None, worker_id="w", lease_seq=1, lease_until=None, heartbeat_at=None,
    scheduled_at=None, created_at=datetime(2026, 5, 1, tzinfo=UTC), started_at=None, cancel_requested_at=None,
    finished_at=None,
)  # fmt: skip


def a_job(job_id: int, **changes: Any) -> Job:
    return _JOB._replace(id=job_id, **changes)
