"""`EarthLayerAdapterRegistry`: the one place that binds source, table, layer, cache, owned rows and refresh.

Pure: the declarations are passed in, those of the datasets by `datasets/registry.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from planetwire.errors import NotFound
from planetwire.model import Derivation, LayerAdapter

ANY = "*"


class Index:
    """The declarations at one moment, by what is looked up. Raises ValueError when two contradict each other."""

    def __init__(self, adapters: Iterable[LayerAdapter]) -> None:
        self.adapters: dict[str, LayerAdapter] = {}
        self.aliases: dict[str, str] = {}
        self.feeds: dict[str, dict[str, list[str]]] = {}
        self._owned: set[str | None] = set()
        for adapter in adapters:
            self._add(adapter)

    def _add(self, adapter: LayerAdapter) -> None:
        if adapter.id in self.adapters:
            raise ValueError(f"layer {adapter.id} is declared twice")
        self.adapters[adapter.id] = adapter
        for alias, source in adapter.aliases.items():
            if self.aliases.setdefault(alias, source) != source:
                raise ValueError(f"alias {alias} stands for two sources")
        for owned in adapter.tables:
            if owned.name in self._owned or (owned.card_key is not None and owned.card_key in self._owned):
                raise ValueError(f"table {owned.name}, or its key in cards, is declared twice")
            self._owned |= {owned.name, owned.card_key}
        for table, source in adapter.feeds:
            self.feeds.setdefault(table, {}).setdefault(source, []).append(adapter.id)


class EarthLayerAdapterRegistry:
    """Look-ups over the declarations. Raises ValueError when two of them contradict each other."""

    def __init__(self, adapters: Iterable[LayerAdapter] = (), *, now: Callable[[], Index] | None = None) -> None:
        """`now` gives the declarations of the moment, for a registry that follows them; else they are `adapters`."""
        index = Index(adapters)
        self._now = now or (lambda: index)

    def layers_of(self, table: str, source: str | None) -> Sequence[str]:
        """Layers fed by the pair: by its name, else by the table as a whole, else none.

        Source None means every source of the table, hence every layer the table feeds.
        """
        feeds = self._now().feeds.get(table, {})
        if source is None:
            return tuple(dict.fromkeys(layer for layers in feeds.values() for layer in layers))
        return tuple(feeds.get(self.canonical(source), feeds.get(ANY, [])))

    def layers_of_source(self, source: str | None) -> Sequence[str]:
        """Layers fed by the source from any table, or through the Terminal; None: all layers."""
        if source is None:
            return tuple(self._now().adapters)
        name = self.canonical(source)
        return tuple(a.id for a in self._now().adapters.values() if name in a.sources or name in a.readings_of)

    def canonical(self, source: str) -> str:
        """The source that an alias stands for; any other name is itself."""
        return self._now().aliases.get(source, source)

    def adapter(self, layer: str) -> LayerAdapter:
        """Raises NotFound `unknown_layer`."""
        try:
            return self._now().adapters[layer]
        except KeyError:
            raise NotFound(f"there is no layer {layer[:60]!r}", code="unknown_layer") from None

    def all(self) -> Sequence[LayerAdapter]:
        """Every layer, in the order of declaration."""
        return tuple(self._now().adapters.values())

    def feeds(self) -> Sequence[tuple[str, str, str]]:
        """(table, source or "*", layer) of every feed; aliases of a source have entries of their own."""
        return tuple(
            (table, name, adapter.id)
            for adapter in self._now().adapters.values()
            for table, source in adapter.feeds
            for name in (source, *(alias for alias, real in adapter.aliases.items() if real == source))
        )

    def sources_of(self, layer: str) -> Sequence[str]:
        """Sources whose facts the layer shows, including aliases: old rows are shown too."""
        adapter = self.adapter(layer)
        return (*adapter.sources, *adapter.aliases)

    def owned_tables(self, source: str) -> Sequence[str]:
        """Derived tables from which `clear_data` of the source deletes, under the given name of the source."""
        name = self.canonical(source)
        owners = [adapter for adapter in self._now().adapters.values() if name in adapter.sources]
        return tuple(dict.fromkeys(table for adapter in owners for table in adapter.owned_tables))

    def derivers(self, source: str) -> Sequence[Derivation]:
        """The derivations of the source's facts, one per layer that has any."""
        adapters = [self._now().adapters[layer] for layer in self.layers_of("collected_data", source)]
        return [Derivation(one.id, one.derive, one.tables) for one in adapters if one.derive is not None]
