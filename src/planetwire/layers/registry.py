"""`EarthLayerAdapterRegistry`: the one place that binds source, table, layer, cache, owned rows and refresh.

A layer is added by a declaration file beside this one and its name in `NAMES`, by nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module

from planetwire.errors import NotFound
from planetwire.model import Deriver, LayerAdapter

# One file each, in the order in which the page lists them. `make new-layer` adds a line.
NAMES = (
    "satellites",
    "earthquakes",
    "weather_stations",
    "interactables",
)


def declared(name: str) -> LayerAdapter:
    """The declaration in the file of this name: a constant of the same name in capitals."""
    adapter = getattr(import_module(f"planetwire.layers.{name}"), name.upper())
    if not isinstance(adapter, LayerAdapter) or adapter.id != name:
        raise TypeError(f"layers/{name}.py declares no layer {name}")
    return adapter


LAYERS = tuple(declared(name) for name in NAMES)
ANY = "*"


class EarthLayerAdapterRegistry:
    """Look-ups over the declarations. Raises ValueError when two of them contradict each other."""

    def __init__(self, adapters: Iterable[LayerAdapter] = LAYERS) -> None:
        self._adapters: dict[str, LayerAdapter] = {}
        self._aliases: dict[str, str] = {}
        self._feeds: dict[str, dict[str, list[str]]] = {}
        for adapter in adapters:
            self._add(adapter)

    def _add(self, adapter: LayerAdapter) -> None:
        if adapter.id in self._adapters:
            raise ValueError(f"layer {adapter.id} is declared twice")
        self._adapters[adapter.id] = adapter
        for alias, source in adapter.aliases.items():
            if self._aliases.setdefault(alias, source) != source:
                raise ValueError(f"alias {alias} stands for two sources")
        for table, source in adapter.feeds:
            self._feeds.setdefault(table, {}).setdefault(source, []).append(adapter.id)

    def layers_of(self, table: str, source: str | None) -> Sequence[str]:
        """Layers fed by the pair: by its name, else by the table as a whole, else none.

        Source None means every source of the table, hence every layer the table feeds.
        """
        feeds = self._feeds.get(table, {})
        if source is None:
            return tuple(dict.fromkeys(layer for layers in feeds.values() for layer in layers))
        return tuple(feeds.get(self.canonical(source), feeds.get(ANY, [])))

    def layers_of_source(self, source: str | None) -> Sequence[str]:
        """Layers fed by the source from whatever table, or through the Terminal; None: all layers."""
        if source is None:
            return tuple(self._adapters)
        name = self.canonical(source)
        return tuple(a.id for a in self._adapters.values() if name in a.sources or name in a.readings_of)

    def canonical(self, source: str) -> str:
        """The source that an other spelling stands for; itself if there is none."""
        return self._aliases.get(source, source)

    def adapter(self, layer: str) -> LayerAdapter:
        """Raises NotFound `unknown_layer`."""
        try:
            return self._adapters[layer]
        except KeyError:
            raise NotFound(f"there is no layer {layer[:60]!r}", code="unknown_layer") from None

    def all(self) -> Sequence[LayerAdapter]:
        """Every layer, in the order of declaration."""
        return tuple(self._adapters.values())

    def feeds(self) -> Sequence[tuple[str, str, str]]:
        """(table, source or "*", layer) of every feed; other spellings of a source have lines of their own."""
        return tuple(
            (table, name, adapter.id)
            for adapter in self._adapters.values()
            for table, source in adapter.feeds
            for name in (source, *(alias for alias, real in adapter.aliases.items() if real == source))
        )

    def sources_of(self, layer: str) -> Sequence[str]:
        """Sources whose facts the layer shows, other spellings included: old rows are shown too."""
        adapter = self.adapter(layer)
        return (*adapter.sources, *adapter.aliases)

    def owned_tables(self, source: str) -> Sequence[str]:
        """Derived tables from which `clear_data` of the source deletes, under the name that it was given."""
        name = self.canonical(source)
        owners = [adapter for adapter in self._adapters.values() if name in adapter.sources]
        return tuple(dict.fromkeys(table for adapter in owners for table in adapter.owned_tables))

    def derivers(self, source: str) -> Sequence[tuple[str, Deriver]]:
        """Layers that make derived rows of the source's facts, each with how."""
        adapters = [self._adapters[layer] for layer in self.layers_of("collected_data", source)]
        return [(adapter.id, adapter.derive) for adapter in adapters if adapter.derive is not None]
