"""Datasets that installed packages bring, found by their entry points (group `planetwire.datasets`).

A plug-in that cannot be used is left out with a reason, whatever is wrong with it; nothing here raises. Its code runs
with our rights: what is checked is what would harm by mistake, not by intention.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from importlib.metadata import Distribution, EntryPoint, entry_points
from typing import Any, get_args

from planetwire.collect.http.client import FetchRules
from planetwire.datasets.dataset import Dataset
from planetwire.layers.canary import CANARY
from planetwire.layers.interactables import INTERACTABLES
from planetwire.layers.registry import Index
from planetwire.model import Derived, Deriver, Fact, LayerAdapter, Strategy
from planetwire.model.cache_names import is_meant, layer_body
from planetwire.model.facts import SOURCE_CHARS_MAX
from planetwire.model.layers import BuiltInKind
from planetwire.model.tables import IDENTIFIER

GROUP = "planetwire.datasets"
FACTS, PLACES, OBJECTS = "collected_data", "resolved_locations", "earth_interactables"
WHY_CHARS = 300
LICENCE_CHARS = 80
RESERVED = frozenset({INTERACTABLES.id, CANARY.id, *CANARY.sources})


@dataclass(frozen=True, slots=True)
class Origin:
    """The installed package that an entry point is of; its own words, "?" where it says nothing."""

    package: str
    version: str
    licence: str

    def __str__(self) -> str:
        return f"{self.package} {self.version}"


@dataclass(frozen=True, slots=True)
class Plugin:
    """A dataset that is used. `name`: of the entry point and of the layer."""

    name: str
    origin: Origin
    dataset: Dataset


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An entry point that is not used, and why."""

    name: str
    origin: Origin
    why: str

    def __str__(self) -> str:
        return f"{self.name} ({self.origin}): {self.why}"


@dataclass(frozen=True, slots=True)
class Plugins:
    """What was found when the process started."""

    used: tuple[Plugin, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


def installed() -> Sequence[EntryPoint]:
    """The entry points of the group. A package whose metadata cannot be read hides none of the others."""
    try:
        return tuple(entry_points(group=GROUP))
    except Exception:  # one file of metadata that is broken
        return tuple(_one_by_one())


def _one_by_one() -> Iterator[EntryPoint]:
    for distribution in Distribution.discover():
        try:
            yield from distribution.entry_points.select(group=GROUP)
        except Exception:
            continue


def discover(shipped: Sequence[Dataset], points: Iterable[EntryPoint]) -> Plugins:
    """Those that can be used beside what is shipped; of two of one name, the first by entry point and package."""
    used: list[Plugin] = []
    left_out: list[LeftOut] = []
    for origin, point in sorted(((_origin(one), one) for one in points), key=lambda one: (one[1].name, one[0].package)):
        loaded, why = _loaded(point)
        why = why or _refusal(point.name, loaded, shipped, used)
        if why is None:
            layer = replace(loaded.layer, derive=guarded(loaded.layer.derive))
            used.append(Plugin(point.name, origin, replace(loaded, layer=layer)))
        else:
            left_out.append(LeftOut(point.name, origin, " ".join(why.split())[:WHY_CHARS]))
    return Plugins(tuple(used), tuple(left_out))


def _loaded(point: EntryPoint) -> tuple[Any, str | None]:
    try:
        return point.load(), None
    except (Exception, SystemExit) as error:
        return None, f"it cannot be imported: {type(error).__name__}: {error}"


def _refusal(name: str, loaded: Any, shipped: Sequence[Dataset], used: Sequence[Plugin]) -> str | None:
    try:
        return "; ".join(faults(name, loaded)) or contradiction(loaded, shipped, used)
    except Exception as error:  # values of types that nobody expects
        return f"its declaration cannot be read: {type(error).__name__}: {error}"


def guarded(derive: Deriver | None) -> Deriver | None:
    """Raises ValueError alone, by which a fact that cannot be derived is put aside and the others go on."""
    if derive is None:
        return None

    @wraps(derive)
    def run(fact: Fact) -> Derived:
        try:
            made = derive(fact)
        except Exception as error:
            raise ValueError(f"derive raised {type(error).__name__}: {error}") from error
        if not isinstance(made, Derived):
            raise ValueError(f"derive gave a {type(made).__name__}, no Derived")
        return made

    return run


def faults(name: str, given: object) -> Iterator[str]:
    """What a plug-in may not be; nothing for one that can be used. `name`: of its entry point."""
    if not isinstance(given, Dataset):
        yield f"it is a {type(given).__name__}, and an entry point names a planetwire.datasets.dataset.Dataset"
    elif not isinstance(given.layer, LayerAdapter) or not isinstance(given.rank, int):
        yield "its layer is no LayerAdapter, or its rank no whole number"
    elif not given.fact_feeds or not all(map(_is_feed, given.fact_feeds)):
        yield "a feed of facts has source, kind, default_url, interval_s, floor_s, sweeps, rules, parse and pieces"
    else:
        yield from _names(name, given)
        yield from _tables(given.layer, [feed.source for feed in given.fact_feeds])
        yield from _layer(given.layer)
        if given.observation_feeds or given.city_facts is not None or given.layer.readings_of:
            yield "a plug-in brings facts; readings of cities are declared as data (`series`)"
        if any(not 0.0 < feed.floor_s <= feed.interval_s for feed in given.fact_feeds):
            yield "floor_s is above 0 and at most interval_s"


def _is_feed(feed: object) -> bool:
    texts = all(isinstance(getattr(feed, name, None), str) for name in ("source", "kind", "default_url"))
    numbers = all(isinstance(getattr(feed, name, None), int | float) for name in ("interval_s", "floor_s", "sweeps"))
    steps = all(callable(getattr(feed, name, None)) for name in ("parse", "pieces"))
    return texts and numbers and steps and isinstance(getattr(feed, "rules", None), FetchRules)


def _names(name: str, given: Dataset) -> Iterator[str]:
    if given.layer.id != name:
        yield f"its layer is {given.layer.id!r}: an entry point has the name of its layer"
    for one in sorted(names_of(given)):
        if not IDENTIFIER.fullmatch(one) or len(one) > SOURCE_CHARS_MAX:
            yield f"{one!r} is no name: small letters, digits and single _, at most {SOURCE_CHARS_MAX}"


def _tables(layer: LayerAdapter, sources: Sequence[str]) -> Iterator[str]:
    if layer.tables:
        own = ", ".join(table.name for table in layer.tables)
        yield (
            f"it declares tables of its own ({own}): those need migrations in our order, so only shipped datasets have"
            f" any; keep the values in `data` of {FACTS}"
        )
        return
    fed = {(table, source) for table, source in layer.feeds}
    if strange := fed - {(table, source) for table in (FACTS, PLACES) for source in sources}:
        yield f"its layer is fed by {_pairs(strange)}: a plug-in's layer shows {FACTS} of its own sources"
    if lacking := {(FACTS, source) for source in sources} - fed:
        yield f"its layer's feeds lack {_pairs(lacking)}"
    if others := set(layer.owned_tables) - {PLACES, OBJECTS}:
        yield f"owned_tables may be {PLACES} and {OBJECTS}, not {', '.join(sorted(others))}"
    if (layer.derive is None) == (OBJECTS in layer.owned_tables):
        yield f"a layer with `derive` has {OBJECTS} among its owned_tables, and one without has not"


def _pairs(pairs: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"({table}, {source})" for table, source in sorted(pairs))


def _layer(layer: LayerAdapter) -> Iterator[str]:
    if layer.kind not in get_args(BuiltInKind):
        yield f"its kind is {layer.kind!r}: the page draws {', '.join(get_args(BuiltInKind))}"
    if not is_meant(layer_body(layer.id, "live"), layer.cache_patterns):
        yield f"its cache_patterns do not mean its own bodies: earth:layer:{layer.id}:*"
    if layer.default_strategy is Strategy.DELTA:
        yield "its default_strategy is delta, which needs rows that browsers know by id"
    if layer.derive is not None and not callable(layer.derive):
        yield "its `derive` cannot be called"


def names_of(given: Dataset) -> frozenset[str]:
    """All that nobody else may be called: its layer, its sources, their other spellings."""
    layer = given.layer
    sources = {*(one.source for one in given.fact_feeds), *(one.source for one in given.observation_feeds)}
    return frozenset({layer.id, *sources, *layer.sources, *layer.aliases, *layer.readings_of})


def contradiction(given: Dataset, shipped: Sequence[Dataset], used: Sequence[Plugin]) -> str | None:
    """Which of its names another has already."""
    mine = names_of(given)
    if taken := mine & RESERVED.union(*map(names_of, shipped)):
        return f"{', '.join(sorted(taken))} is a name of Planetwire itself; give yours another"
    for other in used:
        if taken := mine & names_of(other.dataset):
            return f"{', '.join(sorted(taken))} is a name of the plug-in {other.name} ({other.origin})"
    if len({feed.source for feed in given.fact_feeds}) < len(given.fact_feeds):
        return "two of its feeds have one source"
    try:
        Index((*(one.layer for one in shipped), *(one.dataset.layer for one in used), given.layer))
    except ValueError as error:
        return str(error)
    return None


def _origin(point: EntryPoint) -> Origin:
    if point.dist is None:
        return Origin("?", "?", "?")
    try:
        return Origin(point.dist.name or "?", point.dist.version or "?", _licence(point.dist))
    except Exception:  # metadata that cannot be read
        return Origin("?", "?", "?")


def _licence(distribution: Distribution) -> str:
    """As the package says it: the expression, else the first line of its text, else what it is classified as."""
    about = distribution.metadata
    said = [*(about.get_all(name) or [] for name in ("License-Expression", "License"))]
    classes = [one.rpartition(" :: ")[2] for one in about.get_all("Classifier") or [] if one.startswith("License ::")]
    words = [line.strip() for texts in (*said, classes) for text in texts for line in text.splitlines()[:1]]
    return next((word[:LICENCE_CHARS] for word in words if word), "?")


def recipe(plugin: Plugin) -> str:
    """What decides how its rows are derived: the release, and the module of `derive` as it stands."""
    return f"{plugin.origin} {_syntax_of(plugin.dataset.layer.derive)}"


def _syntax_of(function: Callable[..., object] | None) -> str:
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    try:
        return "" if module is None else ast.dump(ast.parse(inspect.getsource(module)))
    except (OSError, TypeError, SyntaxError):  # a module without a text
        return ""
