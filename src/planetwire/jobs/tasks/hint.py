"""`clear_cache` and `earth_refresh`: ask the relay to broadcast although no row changed.

Snapshots are cached in the web processes, where a job cannot reach them: the relay has them invalidated before it
tells browsers to reload a layer.
"""

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
class HintTask:
    """Handler of jobs that ask the relay for `action`. `payload` may hold `layer`; without it all layers of the source,
    without a source too every layer.
    """

    action: Action
    queue: JobQueue
    write_hint: WriteHint
    known: KnownLayer

    async def __call__(self, lease: Lease) -> str | None:
        """Raises InputError when `layer` is no text, NotFound when there is none of that id."""
        layer = _layer_of(lease.job.payload, self.known)
        async with self.queue.batch(lease) as tx:
            await self.write_hint(tx, layer, lease.job.source, self.action)
        return None


def _layer_of(payload: Json, known: KnownLayer) -> str | None:
    layer = payload.get("layer")
    if layer is not None and not isinstance(layer, str):
        raise InputError("payload.layer must be the id of a layer", code="bad_request")
    if layer is not None:
        known(layer)
    return layer
