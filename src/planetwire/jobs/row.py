"""A ledger row as the value that crosses boundaries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from planetwire.model import Job, JobStatus, TaskType

_COLUMNS = tuple(field.name for field in fields(Job))


def job_of(row: Mapping[str, Any]) -> Job:
    """The row's contract columns; columns of later schemas are ignored."""
    values = {column: row[column] for column in _COLUMNS}
    values["task_type"] = TaskType(values["task_type"])
    values["status"] = JobStatus(values["status"])
    return Job(**values)
