"""Ledger rows as the values that cross boundaries."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import Any

from planetwire.model import ClaimedJob, Job, JobStatus, Lease, TaskType
from planetwire.text import plain_json

_values = itemgetter(*Job._fields)
_TYPE, _STATUS = Job._fields.index("task_type"), Job._fields.index("status")
_TYPES = {kind.value: kind for kind in TaskType}
_STATUSES = {status.value: status for status in JobStatus}


def job_of(row: Mapping[str, Any]) -> Job:
    """The row's contract columns; columns of later schemas are ignored."""
    values = list(_values(row))
    values[_TYPE] = _TYPES[values[_TYPE]]
    values[_STATUS] = _STATUSES[values[_STATUS]]
    return Job._make(values)


def lease_of(row: Mapping[str, Any], worker_id: str) -> Lease:
    """A row that a claim returned."""
    number, task_type, source, priority, payload, records, attempts, most, seq = row.values()
    job = ClaimedJob(number, _TYPES[task_type], source, priority, plain_json.loads(payload), records, attempts, most)
    return Lease(job, worker_id, seq)
