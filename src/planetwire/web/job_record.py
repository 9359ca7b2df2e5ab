"""A ledger row as JSON: what `GET /api/v1/jobs/{id}` gives and `datasource_tasks` frames carry."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime

from planetwire.model import Job, Json

_COLUMNS = tuple(field.name for field in fields(Job))


def job_record(job: Job) -> Json:
    """Keys are the ledger's columns; times are ISO UTC with Z."""
    return {column: _plain(getattr(job, column)) for column in _COLUMNS}


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return value
