"""The outbox, outlets, snapshots and the registry of layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from planetwire.model import BusMessage, Change, Cursor, Hint, Json, LayerAdapter, LayerEvent, LogEvent


class ChangeLog(Protocol):
    """The outbox and the log behind it, as the relay sees them. Fenced by the leader's term."""

    async def lead(self, holder: str, ttl_s: float) -> int | None:
        """Take or renew leadership; the term, or None while another holds it."""

    async def resign(self, holder: str, term: int) -> None:
        """Give leadership up, if still held."""

    async def pending(
        self,
        limit: int,
        *,
        held: Sequence[int] = (),
        held_hints: Sequence[int] = (),
        singly: bool = False,
        after: int = 0,
    ) -> tuple[Sequence[Change], Sequence[Hint]]:
        """Unconsumed rows that are due and not `held`, oldest first.

        Ids are not commit order: `after` an id only to go on where the page before ended, never to begin. Rows that
        differ in their numbers only come added up, unless asked for `singly`.
        """

    async def publish(
        self,
        term: int,
        events: Sequence[LayerEvent],
        *,
        consumed: Sequence[int],
        hints: Sequence[int],
        skipped: Mapping[int, str],
    ) -> Sequence[LogEvent]:
        """Append the events and mark the rows, in one transaction. Raises LeaseLost when the term is over."""

    async def defer(self, ids: Sequence[int], error: str, *, hints: Sequence[int] = ()) -> None:
        """Back the rows off alone; after five attempts they wait until retried by hand."""

    async def lag(self) -> Json:
        """Backlog count and age, quarantined rows, unmapped pairs."""

    async def open_gate(self, seconds: float) -> None:
        """Ask writers to ring the doorbell for a while (contracts §1)."""


class DataChangeBus(Protocol):
    """The relay's second way out, to other services: at least once, an id that repeats keep, order within a key."""

    async def send(self, message: BusMessage) -> None:
        """Returns once the other side has it for good. Raises BusError; then it may or may not have it."""

    async def aclose(self) -> None:
        """Close the connections."""


class Cache(Protocol):
    """Encoded snapshots. A reader that began before an invalidation may not fill the cache afterwards.

    Nothing raises because a shared store is away: then this process's own memory is all there is.
    """

    def generation(self, name: str) -> int:
        """Moves with every invalidation that means the name, in this process. Names: `cache_names.py`."""

    async def get(self, name: str) -> bytes | None:
        """The body of the present generation that this process holds, or None."""

    async def find(self, name: str, cursor: Cursor) -> bytes | None:
        """After a miss: what any process stored for exactly this cursor, or None."""

    async def put(self, name: str, generation: int, cursor: Cursor, body: bytes) -> bool:
        """Store, unless the generation moved on; then False.

        `cursor` is that of the newest event whose patterns mean the name, and was read before the rows of the body.
        """

    async def invalidate(self, patterns: Sequence[str]) -> None:
        """Drop exactly the bodies whose names a pattern means: those of this process, and those that it shared."""

    async def aclose(self) -> None:
        """Wait for nothing, leave nothing behind."""


class LayerRegistry(Protocol):
    """`EarthLayerAdapterRegistry`: source, table, layer, cache, owned rows, strategy. Pure."""

    def layers_of(self, table: str, source: str | None) -> Sequence[str]:
        """Layers fed by the pair; empty when unmapped. Source None: every layer fed by the table."""

    def layers_of_source(self, source: str | None) -> Sequence[str]:
        """Layers fed by the source from whatever table, or through the Terminal; None: all layers."""

    def adapter(self, layer: str) -> LayerAdapter:
        """Raises NotFound."""

    def all(self) -> Sequence[LayerAdapter]:
        """Every layer, in the order of declaration."""

    def sources_of(self, layer: str) -> Sequence[str]:
        """Sources whose facts the layer shows, other spellings included. Raises NotFound."""

    def owned_tables(self, source: str) -> Sequence[str]:
        """Derived tables from which `clear_data` of the source deletes."""
