"""A ledger row as JSON: what `GET /api/v1/jobs/{id}` gives and `datasource_tasks` frames carry."""

from __future__ import annotations

from datetime import UTC, datetime

from planetwire.model import Job, Json


def job_record(job: Job) -> Json:
    """Keys are the ledger's columns; times are ISO UTC with Z."""
    return {column: _plain(getattr(job, column)) for column in Job._fields}


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return value
