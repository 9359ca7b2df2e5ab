"""Facts with what the layers derive of them: the store that jobs write to, and the loop for what others write."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache

from planetwire.clock import SystemClock
from planetwire.facts.by_hand import ByHand
from planetwire.facts.by_hand_postgres import PostgresByHandFacts
from planetwire.facts.derived_postgres import Projection
from planetwire.facts.facts_postgres import PostgresFactStore
from planetwire.facts.gazetteer_geonames import GeonamesGazetteer
from planetwire.layers.registry import EarthLayerAdapterRegistry
from planetwire.ports import Wakeup
from planetwire.postgres import Pool


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


def _projection() -> Projection:
    return Projection(EarthLayerAdapterRegistry().derivers, _gazetteer())
