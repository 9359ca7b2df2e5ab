"""`Catalogue`: the sources and layers of this process. What holds a view of it always sees those of the moment.

Invariant: a snapshot never changes; all views change together, between two steps of the loop. Whatever runs keeps the
feed that it took at its beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar, overload

from planetwire.collect.feeds import FactFeed, ObservationFeed
from planetwire.datasets.dataset import Dataset
from planetwire.datasets.registry import by_source, datasets
from planetwire.errors import PlanetwireError
from planetwire.layers.canary import RelayRegistry
from planetwire.layers.interactables import INTERACTABLES
from planetwire.layers.registry import EarthLayerAdapterRegistry, Index
from planetwire.model import LayerAdapter

GONE_MAX = 1_000  # layers that are remembered after they went
SHIPPED = -1  # revision of a snapshot before the store was read

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Declared:
    """A source that was declared as data, and what stands for its text when it is asked whether that changed."""

    dataset: Dataset
    sha256: str


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """The sources and layers at one revision of the store. `declared`, `faults`: by name of the source.

    `faults`: declarations that cannot be used. Equal to itself alone. Raises ValueError for two that contradict each
    other.
    """

    revision: int
    declared: Mapping[str, Declared] = field(default_factory=dict)
    faults: Mapping[str, PlanetwireError] = field(default_factory=dict)
    layers: tuple[LayerAdapter, ...] = field(init=False)
    fact_feeds: Mapping[str, FactFeed] = field(init=False)
    observation_feeds: Mapping[str, ObservationFeed] = field(init=False)
    index: Index = field(init=False)

    def __post_init__(self) -> None:
        every = [*datasets(), *(one.dataset for one in self.declared.values())]
        every.sort(key=lambda one: (one.rank, one.layer.id))
        made = {
            "layers": (*_joined(one.layer for one in every), INTERACTABLES),
            "fact_feeds": by_source(feed for one in every for feed in one.fact_feeds),
            "observation_feeds": by_source(feed for one in every for feed in one.observation_feeds),
        }
        for name, value in made.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "index", Index(self.layers))

    @property
    def registry(self) -> EarthLayerAdapterRegistry:
        """Look-ups at this revision, whatever comes after."""
        return EarthLayerAdapterRegistry(now=lambda: self.index)


class Catalogue:
    """One a process. `current` is replaced as a whole, by whoever follows the store."""

    def __init__(self) -> None:
        self.current = Snapshot(SHIPPED)
        self._gone: dict[str, LayerAdapter] = {}
        self.registry = EarthLayerAdapterRegistry(now=lambda: self.current.index)
        self.fact_feeds: Mapping[str, FactFeed] = LiveMapping(lambda: self.current.fact_feeds)
        self.observation_feeds: Mapping[str, ObservationFeed] = LiveMapping(lambda: self.current.observation_feeds)
        self.layer_ids: Sequence[str] = LiveSequence(lambda: [layer.id for layer in self.current.layers])

    def relay_registry(self) -> RelayRegistry:
        """As the relay sees the layers."""
        return RelayRegistry(now=lambda: self.current.index, gone=self._gone)

    def swap(self, snapshot: Snapshot) -> None:
        """From now on this is what all views show."""
        for layer in self.current.layers:
            if layer.id not in snapshot.index.adapters:
                self._gone.pop(layer.id, None)
                self._gone[layer.id] = layer
        for name in [name for name in self._gone if name in snapshot.index.adapters]:
            del self._gone[name]
        while len(self._gone) > GONE_MAX:
            del self._gone[next(iter(self._gone))]
        self.current = snapshot


class LiveMapping(Mapping[str, T]):
    """The mapping of the moment."""

    def __init__(self, now: Callable[[], Mapping[str, T]]) -> None:
        self._now = now

    def __getitem__(self, key: str) -> T:
        return self._now()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._now())

    def __len__(self) -> int:
        return len(self._now())


class LiveSequence(Sequence[T]):
    """The sequence of the moment."""

    def __init__(self, now: Callable[[], Sequence[T]]) -> None:
        self._now = now

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...

    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self._now()[index]

    def __iter__(self) -> Iterator[T]:
        return iter(self._now())

    def __len__(self) -> int:
        return len(self._now())


def _joined(layers: Iterable[LayerAdapter]) -> list[LayerAdapter]:
    """Each once; a source that joins a layer adds its own to what was declared first."""
    found: dict[str, LayerAdapter] = {}
    for layer in layers:
        first = found.setdefault(layer.id, layer)
        if first is not layer:
            found[layer.id] = first.joined(layer)
    return list(found.values())
