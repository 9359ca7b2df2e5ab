"""Requires a confirmation before a clear is repeated, and shows what it would delete."""

from __future__ import annotations

from planetwire.errors import ConfirmNeeded
from planetwire.model import Job, Lane
from planetwire.model.facts import RowsOf, rows_record


async def confirm_clear(job: Job, rows_of: RowsOf) -> None:
    """Raises ConfirmNeeded if the job is a clear that could be retried."""
    if job.task_type.lane is not Lane.CLEAR or not job.status.is_final:
        return
    rows = rows_record(job.source or "", await rows_of(job.source or ""))
    deletes = f"this deletes {rows['facts']:,} records of {job.source} and all that was made from them"
    raise ConfirmNeeded(f'{deletes}; send {{"confirm": true}} if that is meant', rows)
