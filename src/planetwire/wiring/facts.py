"""Facts with what the layers derive of them: the store that jobs write to, and the loop for what others write."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from importlib.resources import files

from planetwire.database.postgres import Pool
from planetwire.facts.by_hand import ByHand
from planetwire.facts.by_hand_postgres import PostgresByHandFacts
from planetwire.facts.derived_postgres import Projection
from planetwire.facts.facts_postgres import PostgresFactStore
from planetwire.facts.gazetteer_geonames import GeonamesGazetteer
from planetwire.facts.recipes_postgres import note_recipes
from planetwire.layers.registry import EarthLayerAdapterRegistry
from planetwire.log import get_logger
from planetwire.ports import Wakeup
from planetwire.runtime.clock import SystemClock

log = get_logger()

FACTS = "collected_data"
# What every derived row is made with, beside the declaration of its layer.
SHARED = (
    "model/coordinates.py",
    "layers/values.py",
    "layers/places.py",
    "facts/clean.py",
    "facts/places.py",
    "facts/gazetteer_geonames.py",
    "facts/derived_postgres.py",
    "facts/derived_postgres.sql",
)


def deriving_facts(pool: Pool) -> PostgresFactStore:
    """A store that writes what the layers make of a fact beside it."""
    return PostgresFactStore(pool, _projection())


def add_by_hand(loops: dict[str, Callable[[], Awaitable[None]]], pool: Pool, changes: Wakeup) -> None:
    """Run beside the worker. `changes` rings when something was written."""
    loops["facts-by-hand"] = ByHand(PostgresByHandFacts(pool, _projection()), changes, SystemClock()).run


@cache
def _gazetteer() -> GeonamesGazetteer:
    """One a process: it is large once it was asked."""
    return GeonamesGazetteer()


async def derive_anew(pool: Pool, registry: EarthLayerAdapterRegistry) -> None:
    """Note the facts whose derived rows another version made otherwise. Raises BackendError."""
    sources = await note_recipes(pool, recipes(registry))
    if sources:
        log.info("facts.derived.outdated", sources=sources)


def recipes(registry: EarthLayerAdapterRegistry) -> dict[tuple[str, str], str]:
    """By source and layer a sum over the program that derives its rows; comments and form are no part of it."""
    shared = [_syntax(name) for name in SHARED]
    sums = {one.id: _sum([_syntax(f"layers/{one.id}.py"), *shared]) for one in registry.all() if one.derive is not None}
    feeds = registry.feeds()
    return {(source, layer): sums[layer] for table, source, layer in feeds if table == FACTS and layer in sums}


def _syntax(name: str) -> str:
    """What a file says, without comments and form; of a file that is no Python, its text."""
    text = text_of(name)
    return ast.dump(ast.parse(text)) if name.endswith(".py") else text


def _sum(parts: Sequence[str]) -> str:
    return hashlib.sha256("".join(parts).encode()).hexdigest()


def text_of(name: str) -> str:
    """Of a file of this package."""
    return files("planetwire").joinpath(name).read_text(encoding="utf-8")


def _projection() -> Projection:
    return Projection(EarthLayerAdapterRegistry().derivers, _gazetteer())
