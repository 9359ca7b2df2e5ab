"""`clear_data`: deletes a source's facts, then the rows that its layers own, in chunks that each commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from planetwire.jobs.telling import Tell, silent
from planetwire.model import Lease
from planetwire.model.facts import FACT_TABLE
from planetwire.ports import FactStore, JobQueue

CHUNK_ROWS = 5_000  # about 20 ms; larger chunks get another query plan and delay a cancel


@dataclass(frozen=True, slots=True)
class ClearDataTask:
    """Handler of `clear_data` jobs. `owned_tables` names a source's derived tables, none without an adapter.

    After a crash a new run continues where the last one stopped: it deletes whatever rows are left.
    """

    queue: JobQueue
    facts: FactStore
    owned_tables: Callable[[str], Sequence[str]]
    chunk_rows: int = CHUNK_ROWS
    tell: Tell = silent

    async def __call__(self, lease: Lease) -> str | None:
        """Facts first: a reader in between sees an empty layer, never derived rows without their facts."""
        source = lease.job.source or ""
        _, left = await self.facts.features([source], 0)
        total = lease.job.records_processed + left
        for table in (FACT_TABLE, *self.owned_tables(source)):
            while await self._chunk(lease, table, source, total):
                pass
        return None

    async def _chunk(self, lease: Lease, table: str, source: str, total: int) -> int:
        async with self.queue.batch(lease) as tx:
            gone = await self.facts.clear_chunk(tx, table, source, self.chunk_rows)
            tx.progress(gone, total=total, phase="clear" if table == FACT_TABLE else "clear_derived")
        if gone:
            self.tell(lease.job.id, "batch", f"{gone:,} rows deleted from {table}")
        return gone
