"""A hidden layer: the diagnostic's own change passes the relay under this name, and changes no other layer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from planetwire.layers.registry import EarthLayerAdapterRegistry, Index
from planetwire.model import LayerAdapter, Provenance

CANARY = LayerAdapter(
    id="canary",
    title="Canary",
    title_zh="金丝雀",
    group="operations",
    kind="none",
    feeds=(("collected_data", "planetwire_canary"),),
    cache_patterns=(),
    provenance=Provenance(publisher="Planetwire", licence="none", coverage="none", limits="never a fact"),
)


class RelayRegistry(EarthLayerAdapterRegistry):
    """The relay's registry: every layer, and the canary for its one pair. The canary is in no list of layers, so that
    changes of a whole table, refreshes of all layers and snapshots skip it.
    """

    def __init__(
        self,
        adapters: Iterable[LayerAdapter] = (),
        *,
        now: Callable[[], Index] | None = None,
        gone: Mapping[str, LayerAdapter] | None = None,
    ) -> None:
        """`gone`: layers that there were before, by id. What was read of their changes still goes out."""
        super().__init__(adapters, now=now)
        self._gone = {} if gone is None else gone

    def layers_of(self, table: str, source: str | None) -> Sequence[str]:
        """As the registry has it."""
        return (CANARY.id,) if (table, source) in CANARY.feeds else super().layers_of(table, source)

    def adapter(self, layer: str) -> LayerAdapter:
        """Raises NotFound `unknown_layer`."""
        return CANARY if layer == CANARY.id else self._gone.get(layer) or super().adapter(layer)
