"""The outbox, outlets, snapshots and the registry of layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from planetwire.model import BusMessage, Change, Cursor, Hint, Json, LayerAdapter, LayerEvent, LogEvent


class ChangeLog(Protocol):
    """The outbox and the log behind it, as the relay sees them. Fenced by the leader's term."""

    async def lead(self, holder: str, ttl_s: float) -> int | None:
        """Take or renew leadership; returns the term, or None while another holds it."""

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

        Ids are not commit order: use `after` only to continue after the previous page, never to begin. Rows that
        differ only in their counts are aggregated, unless `singly`.
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
        """Back off these rows only; after five attempts they wait until retried by hand."""

    async def lag(self) -> Json:
        """Backlog count and age, quarantined rows, unmapped pairs."""

    async def open_gate(self, seconds: float) -> None:
        """Ask writers to send wake-ups for a while (contracts §1)."""


class DataChangeBus(Protocol):
    """The relay's second output, to other services: at least once, repeats with the same id, order within a key."""

    async def send(self, message: BusMessage) -> None:
        """Returns once the receiver has confirmed it. Raises BusError; then it may or may not have it."""

    async def aclose(self) -> None:
        """Close the connections."""


class Cache(Protocol):
    """Encoded snapshots. A reader that began before an invalidation may not fill the cache afterwards.

    No method raises if a shared store is unreachable: then only this process's own memory is used.
    """

    def generation(self, name: str) -> int:
        """Rises with every invalidation that matches the name, in this process. Names: `cache_names.py`."""

    async def get(self, name: str) -> bytes | None:
        """The body of the present generation that this process holds, or None."""

    async def find(self, name: str, cursor: Cursor) -> bytes | None:
        """After a miss: a body that any process stored for exactly this cursor, or None."""

    async def put(self, name: str, generation: int, cursor: Cursor, body: bytes) -> bool:
        """Store, unless the generation has changed; then False.

        `cursor`: of the newest event whose patterns match the name, read before the rows of the body.
        """

    async def invalidate(self, patterns: Sequence[str]) -> None:
        """Drop exactly the bodies whose names match a pattern: those of this process, and those that it shared."""

    async def aclose(self) -> None:
        """Release everything without waiting."""


class LayerRegistry(Protocol):
    """`EarthLayerAdapterRegistry`: source, table, layer, cache, owned rows, strategy. Pure."""

    def layers_of(self, table: str, source: str | None) -> Sequence[str]:
        """Layers fed by the pair; empty when unmapped. Source None: every layer fed by the table."""

    def layers_of_source(self, source: str | None) -> Sequence[str]:
        """Layers fed by the source from any table, or through the Terminal; None: all layers."""

    def adapter(self, layer: str) -> LayerAdapter:
        """Raises NotFound."""

    def all(self) -> Sequence[LayerAdapter]:
        """Every layer, in the order of declaration."""

    def sources_of(self, layer: str) -> Sequence[str]:
        """Sources whose facts the layer shows, including aliases. Raises NotFound."""

    def owned_tables(self, source: str) -> Sequence[str]:
        """Derived tables from which `clear_data` of the source deletes."""
