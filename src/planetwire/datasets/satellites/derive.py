"""What is made of a satellite's elements: how it is found, and the orbit that they describe."""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import itemgetter
from typing import Any

from planetwire.layers.values import number, text
from planetwire.model import Column, Derived, Fact, Json, OwnedTable

MU_KM3_S2 = 398_600.8  # WGS 72, as in SGP4
EARTH_KM = 6_378.135
DAY_S = 86_400.0
NORAD_ID_MAX = 999_999_999.0
TURNS_MIN = 1e-4  # a day; far beyond the moon, and still a number when squared
TURNS_MAX = 20.0  # an orbit that grazes the ground makes 17
HIGHLY_ELLIPTIC_FROM = 0.25
ELEMENTS = (
    "NORAD_CAT_ID",
    "MEAN_MOTION",
    "ECCENTRICITY",
    "INCLINATION",
    "RA_OF_ASC_NODE",
    "ARG_OF_PERICENTER",
    "MEAN_ANOMALY",
    "BSTAR",
)
ORBITS = OwnedTable(
    "satellite_orbits",
    (
        Column("norad_id", "bigint", "number in the catalogue", required=True),
        Column("name", "text", "what the catalogue calls it", required=True),
        Column("epoch", "timestamptz", "when the elements were exact"),
        Column("inclination", "double precision", "of the orbit to the equator", "degrees"),
        Column("raan", "double precision", "right ascension of the ascending node", "degrees"),
        Column("ecc", "double precision", "eccentricity"),
        Column("argp", "double precision", "argument of perigee", "degrees"),
        Column("mean_anomaly", "double precision", "where on the orbit it is at the epoch", "degrees"),
        Column("mean_motion", "double precision", "how often it goes round", "revolutions a day"),
        Column("bstar", "double precision", "drag term of SGP4", "per earth radius"),
        Column("period_min", "double precision", "how long it takes to go round", "minutes"),
        Column("apogee_km", "double precision", "height over the equator's radius where it is highest", "km"),
        Column("perigee_km", "double precision", "height over the equator's radius where it is lowest", "km"),
        Column("regime", "text", "kind of orbit", values=("LEO", "MEO", "GEO", "HEO")),
    ),
    card_key="orbit",
    rewritten=True,
)
_NUMERIC = {float, int}
_elements_of: Callable[[Json], tuple[Any, ...]] = itemgetter(*ELEMENTS)


def derive(fact: Fact) -> Derived:
    """Found by name, catalogue number and international designator; what it is like stands in its orbit's row."""
    designator = text(fact.data.get("OBJECT_ID"))
    number_text = f"NORAD {fact.external_key}"
    subtitle = f"{number_text} · {designator}" if designator else number_text
    orbit = orbit_of(fact)
    return Derived(subtitle, rows={} if orbit is None else {ORBITS.name: orbit})


def orbit_of(fact: Fact) -> tuple[object, ...] | None:
    """The values of `ORBITS`; None when the elements say nothing. Heights by Kepler's third law."""
    norad_id, turns, ecc, inclination, raan, argp, anomaly, bstar = _numbers(fact.data)
    if norad_id is None or turns is None or ecc is None:
        return None
    if not (0.0 < norad_id <= NORAD_ID_MAX and TURNS_MIN <= turns <= TURNS_MAX and 0.0 <= ecc < 1.0):
        return None
    axis_km = math.cbrt(MU_KM3_S2 / (turns * math.tau / DAY_S) ** 2)
    apogee_km, perigee_km = axis_km * (1.0 + ecc) - EARTH_KM, axis_km * (1.0 - ecc) - EARTH_KM
    shape = (DAY_S / 60.0 / turns, apogee_km, perigee_km, _regime(turns, ecc, apogee_km))
    angles = (inclination, raan, ecc, argp, anomaly, turns, bstar)
    return (int(norad_id), fact.title, fact.observed_at, *angles, *shape)


def _numbers(data: Json) -> tuple[float | None, ...]:
    """The elements, each a number or None. A catalogue has 13,000 records: those that are as usual go the short way."""
    try:
        values = _elements_of(data)
        if {*map(type, values)} <= _NUMERIC and math.isfinite(sum(values)):
            return values
    except (KeyError, TypeError, OverflowError):
        pass
    return tuple(number(data.get(name)) for name in ELEMENTS)


def _regime(turns: float, ecc: float, apogee_km: float) -> str:
    """As the page colours it."""
    if ecc >= HIGHLY_ELLIPTIC_FROM:
        return "HEO"
    if apogee_km < 2_000.0:
        return "LEO"
    return "GEO" if 0.9 < turns < 1.1 else "MEO"
