"""A ledger row as JSON: what `GET /api/v1/jobs/{id}` gives and `datasource_tasks` frames carry."""

from __future__ import annotations

from datetime import UTC, datetime

from planetwire.model import Job, Json

TEXTS = frozenset({"error", "sample", "last_error"})


def job_record(job: Job) -> Json:
    """Keys are the ledger's columns; times are ISO UTC with Z."""
    return {column: _plain(getattr(job, column)) for column in Job._fields}


def for_strangers(record: Json) -> Json:
    """The row without texts that may reveal details of the installation or of a feed's answer; `error_code` stays.

    Also for a source's record, whose last error is that of its last job.
    """
    hidden = dict.fromkeys(TEXTS & record.keys())
    if record.get("error_code") is not None:
        hidden |= dict.fromkeys({"message"} & record.keys())  # of a failed job: contains the error text
    return record | hidden


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return value
