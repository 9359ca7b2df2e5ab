"""A hidden layer: the diagnostic's own change passes the relay under this name, and changes no other layer."""

from __future__ import annotations

from collections.abc import Sequence

from planetwire.layers.registry import EarthLayerAdapterRegistry
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

    def layers_of(self, table: str, source: str | None) -> Sequence[str]:
        """As the registry has it."""
        return (CANARY.id,) if (table, source) in CANARY.feeds else super().layers_of(table, source)

    def adapter(self, layer: str) -> LayerAdapter:
        """Raises NotFound `unknown_layer`."""
        return CANARY if layer == CANARY.id else super().adapter(layer)
