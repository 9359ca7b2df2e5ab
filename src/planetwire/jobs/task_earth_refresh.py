"""`earth_refresh`: asks the relay to refresh a layer, or a source's layers, that no row change touched."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from planetwire.errors import InputError
from planetwire.model import Action, Json, Lease
from planetwire.ports import JobQueue, JobTx

WriteHint: TypeAlias = Callable[[JobTx, str | None, str | None, Action], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class EarthRefreshTask:
    """Handler of `earth_refresh` jobs. `payload` may hold `layer`; without layer and source: every layer."""

    queue: JobQueue
    write_hint: WriteHint

    async def __call__(self, lease: Lease) -> str | None:
        """Raises InputError when `layer` is no text."""
        layer = layer_of(lease.job.payload)
        async with self.queue.batch(lease) as tx:
            await self.write_hint(tx, layer, lease.job.source, Action.MANUAL_REFRESH)
        return None


def layer_of(payload: Json) -> str | None:
    """The layer that a keyless job names, or None. Raises InputError when it is no text."""
    layer = payload.get("layer")
    if layer is not None and not isinstance(layer, str):
        raise InputError("payload.layer must be the id of a layer", code="bad_request")
    return layer
