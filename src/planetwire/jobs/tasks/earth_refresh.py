"""`earth_refresh`: asks the relay to refresh a layer, or a source's layers, that no row change touched."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from planetwire.errors import InputError
from planetwire.model import Action, Json, Lease
from planetwire.ports import JobQueue, JobTx

WriteHint: TypeAlias = Callable[[JobTx, str | None, str | None, Action], Awaitable[None]]
KnownLayer: TypeAlias = Callable[[str], object]  # raises NotFound `unknown_layer`


@dataclass(frozen=True, slots=True)
class EarthRefreshTask:
    """Handler of `earth_refresh` jobs. `payload` may hold `layer`; without layer and source: every layer."""

    queue: JobQueue
    write_hint: WriteHint
    known: KnownLayer

    async def __call__(self, lease: Lease) -> str | None:
        """Raises InputError when `layer` is no text, NotFound when there is none of that id."""
        layer = layer_of(lease.job.payload, self.known)
        async with self.queue.batch(lease) as tx:
            await self.write_hint(tx, layer, lease.job.source, Action.MANUAL_REFRESH)
        return None


def layer_of(payload: Json, known: KnownLayer) -> str | None:
    """The layer that a keyless job names, or None. Raises InputError when it is no text; what `known` raises."""
    layer = payload.get("layer")
    if layer is not None and not isinstance(layer, str):
        raise InputError("payload.layer must be the id of a layer", code="bad_request")
    if layer is not None:
        known(layer)
    return layer
