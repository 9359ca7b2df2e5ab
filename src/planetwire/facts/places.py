"""The place of a fact without coordinates: given in its data, or resolved by name. Pure except for the gazetteer."""

from __future__ import annotations

import math
import re
from typing import NamedTuple, Protocol

from planetwire.facts import clean
from planetwire.model import Fact, PlaceAsked
from planetwire.model.coordinates import on_earth, wrapped

DATA, GEONAMES = "data", "geonames"  # `resolver` of the rows written here, which marks them as ours
RESOLVERS = [DATA, GEONAMES]
LEAST_CONFIDENCE = 0.5  # below it a name stays unresolved: a wrong point is worse than none
NAME_CHARS = 200  # a longer text is not the name of a place
EARTH_M = 6_371_000.0
SECTOR_SHARE = 0.2  # of the distance: half the width of one of sixteen directions
UNIT_M = {"km": 1_000.0, "mi": 1_609.344}
DIRECTIONS = ("n", "nne", "ne", "ene", "e", "ese", "se", "sse", "s", "ssw", "sw", "wsw", "w", "wnw", "nw", "nnw")

_BESIDE = re.compile(r"\s*([0-9]{1,4}(?:\.[0-9]{1,3})?)\s*(km|mi)\s+([NESW]{1,3})\s+of\s+(\S.*)", re.IGNORECASE)


class Found(NamedTuple):
    """A gazetteer's result: the place, its radius, and the confidence of the match."""

    lat: float
    lon: float
    radius_m: float
    confidence: float


class Gazetteer(Protocol):
    """Places by name."""

    def find(self, name: str) -> Found | None:
        """The most likely place of this name, `Paris` or `Paris, Texas`; None if there is none, or it is ambiguous."""


class Placed(NamedTuple):
    """A row of `resolved_locations`, without its fact."""

    method: str
    lat: float
    lon: float
    precision_m: float | None
    confidence: float
    resolver: str


def own(fact: Fact) -> Placed | None:
    """The place of a fact with both coordinates, else None."""
    place = on_earth(clean.finite(fact.lat), clean.finite(fact.lon))
    return None if place is None else Placed("given", *place, None, 1.0, DATA)


def resolve(asked: PlaceAsked, gazetteer: Gazetteer) -> Placed | None:
    """The place, or None: then the fact is in search and on no map."""
    if asked.lat is not None and asked.lon is not None:
        return Placed("given", asked.lat, asked.lon, None, 1.0, DATA)
    name, distance_m, bearing_deg = _beside(asked.name) if len(asked.name) <= NAME_CHARS else ("", 0.0, 0.0)
    found = gazetteer.find(name) if name else None
    if found is None or found.confidence < LEAST_CONFIDENCE:
        return None
    lat, lon = moved(found.lat, found.lon, distance_m, bearing_deg)
    precision_m = round(found.radius_m + SECTOR_SHARE * distance_m, -2)
    return Placed("geocode", round(lat, 5), round(lon, 5), precision_m, round(found.confidence, 3), GEONAMES)


def _beside(text: str) -> tuple[str, float, float]:
    """Name, distance and direction of `12 km NNE of Ridgecrest, CA`; a name alone is itself."""
    match = _BESIDE.fullmatch(text)
    if match is None or match[3].lower() not in DIRECTIONS:
        return text.strip(), 0.0, 0.0
    return match[4].strip(), float(match[1]) * UNIT_M[match[2].lower()], DIRECTIONS.index(match[3].lower()) * 22.5


def moved(lat: float, lon: float, distance_m: float, bearing_deg: float) -> tuple[float, float]:
    """The point at this distance along a great circle. Degrees; the longitude in −180 … 180."""
    if not distance_m:
        return lat, lon
    angle, course, north = distance_m / EARTH_M, math.radians(bearing_deg), math.radians(lat)
    there = math.asin(
        max(-1.0, min(1.0, math.sin(north) * math.cos(angle) + math.cos(north) * math.sin(angle) * math.cos(course)))
    )
    east = math.atan2(
        math.sin(course) * math.sin(angle) * math.cos(north), math.cos(angle) - math.sin(north) * math.sin(there)
    )
    return math.degrees(there), wrapped(lon + math.degrees(east))
