"""`clear_cache`: drops the cached snapshots of a source's layers.

The caches live in the web processes and are cleared by the relay before it broadcasts; the job writes the hint
that makes it do so.
"""

from __future__ import annotations

from dataclasses import dataclass

from planetwire.jobs.tasks.earth_refresh import KnownLayer, WriteHint, layer_of
from planetwire.model import Action, Lease
from planetwire.ports import JobQueue


@dataclass(frozen=True, slots=True)
class ClearCacheTask:
    """Handler of `clear_cache` jobs. `payload` may hold `layer`; without layer and source: every layer."""

    queue: JobQueue
    write_hint: WriteHint
    known: KnownLayer

    async def __call__(self, lease: Lease) -> str | None:
        """Raises InputError when `layer` is no text, NotFound when there is none of that id."""
        layer = layer_of(lease.job.payload, self.known)
        async with self.queue.batch(lease) as tx:
            await self.write_hint(tx, layer, lease.job.source, Action.CACHE_CLEARED)
        return None
