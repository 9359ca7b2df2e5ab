"""Shows what a clear would delete, and requires a confirmation before one is repeated."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from planetwire.errors import ConfirmNeeded
from planetwire.model import Job, Json, Lane

FACT_TABLE = "collected_data"

RowsOf: TypeAlias = Callable[[str], Awaitable[Mapping[str, int]]]  # a source's rows by table, facts first


def rows_record(source: str, rows: Mapping[str, int]) -> Json:
    """`facts`, `derived` by table, and all `rows` together."""
    facts = rows.get(FACT_TABLE, 0)
    derived = {table: count for table, count in rows.items() if table != FACT_TABLE}
    return {"source": source, "rows": facts + sum(derived.values()), "facts": facts, "derived": derived}


async def confirm_clear(job: Job, rows_of: RowsOf) -> None:
    """Raises ConfirmNeeded if the job is a clear that could be retried."""
    if job.task_type.lane is not Lane.CLEAR or not job.status.is_final:
        return
    rows = rows_record(job.source or "", await rows_of(job.source or ""))
    deletes = f"this deletes {rows['facts']:,} records of {job.source} and all that was made from them"
    raise ConfirmNeeded(f'{deletes}; send {{"confirm": true}} if that is meant', rows)
