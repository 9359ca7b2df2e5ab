"""The datasets there are: each folder beside this file that is a package, found by its name and listed nowhere, and
those that installed packages bring (`plugins.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TypeVar

from planetwire import datasets as folder
from planetwire.collect.feeds import FactFeed, ObservationFeed
from planetwire.datasets.dataset import Dataset
from planetwire.datasets.plugins import Plugin, Plugins, discover, installed, names_of
from planetwire.layers.interactables import INTERACTABLES
from planetwire.layers.registry import EarthLayerAdapterRegistry
from planetwire.model import LayerAdapter, OwnedTable
from planetwire.observing import Sources

F = TypeVar("F", FactFeed, ObservationFeed)


@cache
def shipped() -> tuple[Dataset, ...]:
    """Those of our folders, by rank. Raises TypeError for one without a declaration, or with one of another name."""
    found = [_declared(module.name) for module in iter_modules(folder.__path__) if module.ispkg]
    return tuple(sorted(found, key=_place))


@cache
def plugins() -> Plugins:
    """What installed packages bring, looked for once a process."""
    return discover(shipped(), installed())


@cache
def datasets() -> tuple[Dataset, ...]:
    """All of them, by rank."""
    return tuple(sorted((*shipped(), *(one.dataset for one in plugins().used)), key=_place))


def _place(dataset: Dataset) -> tuple[int, str]:
    return dataset.rank, dataset.layer.id


def _declared(name: str) -> Dataset:
    declared = getattr(import_module(f"{folder.__name__}.{name}.declaration"), "DATASET", None)
    if not isinstance(declared, Dataset) or declared.layer.id != name:
        raise TypeError(f"datasets/{name}/declaration.py declares no DATASET of the layer {name}")
    return declared


def layers() -> tuple[LayerAdapter, ...]:
    """In the order in which the page lists them; last the one that is computed from all others."""
    return (*(one.layer for one in datasets()), INTERACTABLES)


def layer_registry() -> EarthLayerAdapterRegistry:
    """Of all layers. Raises ValueError when two declarations contradict each other."""
    return EarthLayerAdapterRegistry(layers())


def owned_tables() -> tuple[OwnedTable, ...]:
    """Tables that belong to one layer each."""
    return tuple(table for layer in layers() for table in layer.tables)


def fact_feeds() -> dict[str, FactFeed]:
    """Feeds that bring facts, run by collect jobs; by source. Raises ValueError when two have one source."""
    return by_source(feed for one in datasets() for feed in one.fact_feeds)


def observation_feeds() -> dict[str, ObservationFeed]:
    """Feeds that bring observations; by source. Raises ValueError when two have one source."""
    return by_source(feed for one in datasets() for feed in one.observation_feeds)


def feeds() -> dict[str, FactFeed | ObservationFeed]:
    """All of them, by source."""
    return {**fact_feeds(), **observation_feeds()}


def observed_sources() -> Sources:
    """What is known of sources of readings: those that others push, and our feeds."""
    return Sources(feed.observed for feed in observation_feeds().values())


def city_facts() -> str | None:
    """The source under which the newest reading of each city is a fact; None: no layer shows them."""
    return next((one.city_facts for one in datasets() if one.city_facts is not None), None)


def plugin_named(name: str) -> Plugin | None:
    """The plug-in that brings this layer or source, under any of its names; None for all others."""
    return next((one for one in plugins().used if name in names_of(one.dataset)), None)


def by_source(feeds: Iterator[F]) -> dict[str, F]:
    """Raises ValueError when two have one source."""
    found: dict[str, F] = {}
    for feed in feeds:
        if found.setdefault(feed.source, feed) is not feed:
            raise ValueError(f"source {feed.source} has two feeds")
    return found
