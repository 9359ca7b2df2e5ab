"""Simulated providers that are independent of others: modules of this folder with a `SIMULATION`, discovered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules

from planetwire.demo import providers as folder
from planetwire.demo.providers.answer import Answer, Query


@dataclass(frozen=True, slots=True)
class Simulation:
    """The stand-in for the provider of a source. `answer`: by seed, query and simulated seconds since 1970.

    The same three give the same bytes. `interval_s`: how often the demo requests it.
    """

    source: str
    path: str
    interval_s: int
    answer: Callable[[int, Query, float], Answer]


def simulations() -> tuple[Simulation, ...]:
    """Those of all modules of this folder, in order of their names."""
    modules = (import_module(f"{folder.__name__}.{module.name}") for module in iter_modules(folder.__path__))
    found = [getattr(module, "SIMULATION", None) for module in modules]
    return tuple(one for one in found if isinstance(one, Simulation))
