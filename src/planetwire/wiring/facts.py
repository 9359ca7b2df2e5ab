"""Facts with what the layers derive of them: the store that jobs write to, and the loop for what others write."""

from __future__ import annotations

import ast
import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from planetwire.catalogue.catalogue import Snapshot
from planetwire.catalogue.follow import Follower, Prepare
from planetwire.database.postgres import Pool
from planetwire.datasets.plugins import recipe
from planetwire.datasets.registry import plugin_named
from planetwire.facts.by_hand import ByHand
from planetwire.facts.by_hand_postgres import PostgresByHandFacts
from planetwire.facts.derived_postgres import Projection
from planetwire.facts.facts_postgres import PostgresFactStore
from planetwire.facts.gazetteer_geonames import GeonamesGazetteer
from planetwire.facts.recipes_postgres import note_recipes
from planetwire.layers.registry import EarthLayerAdapterRegistry
from planetwire.log import get_logger
from planetwire.model.facts import FACT_TABLE
from planetwire.ports import Wakeup
from planetwire.runtime.clock import SystemClock

log = get_logger()

# What every derived row is made with, beside what its dataset says of it.
SHARED = (
    "model/coordinates.py",
    "layers/values.py",
    "layers/places.py",
    "facts/clean.py",
    "facts/places.py",
    "facts/gazetteer_geonames.py",
    "facts/derived_postgres.py",
    "facts/derived_postgres.sql",
    "facts/owned_postgres.py",
    "model/tables.py",
)
LANGUAGE = ("declared/layer.py", "declared/rows.py", "declared/values.py", "declared/units.py", "declared/times.py")


def deriving_facts(pool: Pool, registry: EarthLayerAdapterRegistry) -> PostgresFactStore:
    """A store that writes what the layers make of a fact beside it."""
    return PostgresFactStore(pool, _projection(registry))


def add_by_hand(
    loops: dict[str, Callable[[], Awaitable[None]]], pool: Pool, changes: Wakeup, follower: Follower
) -> None:
    """Run beside the worker. `changes` rings when something was written."""
    waiting = PostgresByHandFacts(pool, _projection(follower.catalogue.registry))
    loops["facts-by-hand"] = ByHand(waiting, changes, SystemClock(), before=follower.look).run


@cache
def _gazetteer() -> GeonamesGazetteer:
    """One a process: it is large once it was asked."""
    return GeonamesGazetteer()


async def derive_anew(
    pool: Pool, registry: EarthLayerAdapterRegistry, declared: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Note the facts whose derived rows were made otherwise, by another version or another declaration.

    `declared`: by source the sum of its declaration. Raises BackendError.
    """
    sources = await note_recipes(pool, await asyncio.to_thread(recipes, registry, declared))
    if sources:
        log.info("facts.derived.outdated", sources=sources)


def deriving_anew(pool: Pool) -> Prepare:
    """Before a snapshot is used, the facts that it derives otherwise are noted."""

    async def prepare(snapshot: Snapshot) -> None:
        await derive_anew(pool, snapshot.registry, {name: one.sha256 for name, one in snapshot.declared.items()})

    return prepare


def recipes(
    registry: EarthLayerAdapterRegistry, declared: Mapping[str, str] = MappingProxyType({})
) -> dict[tuple[str, str], str]:
    """By source and layer a sum over the program that derives its rows; comments and form are no part of it.

    Of a declared source its declaration is a part too.
    """
    shared = [_syntax(name) for name in SHARED]
    language = _sum([*map(_syntax, LANGUAGE), *shared])
    deriving = [one.id for one in registry.all() if one.derive is not None]
    programs = {layer: _program(layer, shared) or language for layer in deriving}
    pairs = [(source, layer) for table, source, layer in registry.feeds() if table == FACT_TABLE and layer in programs]
    return {
        (source, layer): _sum([declared[source], programs[layer]]) if source in declared else programs[layer]
        for source, layer in pairs
    }


def _program(layer: str, shared: Sequence[str]) -> str | None:
    """Of a layer that is shipped or a plug-in's; None for one that is declared as data."""
    if _is_file(own := f"datasets/{layer}/derive.py"):
        return _sum([_syntax(own), *shared])
    plugin = plugin_named(layer)
    return None if plugin is None else _sum([recipe(plugin), *shared])


def _is_file(name: str) -> bool:
    return files("planetwire").joinpath(name).is_file()


def _syntax(name: str) -> str:
    """What a file says, without comments and form; of a file that is no Python, its text."""
    text = text_of(name)
    return ast.dump(ast.parse(text)) if name.endswith(".py") else text


def _sum(parts: Sequence[str]) -> str:
    return hashlib.sha256("".join(parts).encode()).hexdigest()


def text_of(name: str) -> str:
    """Of a file of this package."""
    return files("planetwire").joinpath(name).read_text(encoding="utf-8")


def _projection(registry: EarthLayerAdapterRegistry) -> Projection:
    return Projection(registry.derivers, _gazetteer())
