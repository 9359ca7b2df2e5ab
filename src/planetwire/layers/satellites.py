"""The layer of satellites: mean elements, turned into positions by the browser."""

from __future__ import annotations

import math

from planetwire.layers.values import joined, number, text
from planetwire.model import Derived, Fact, LayerAdapter, Orbit, Provenance

MU_KM3_S2 = 398_600.8  # WGS 72, as in SGP4
EARTH_KM = 6_378.135
DAY_S = 86_400.0
NORAD_ID_MAX = 999_999_999.0
TURNS_MAX = 20.0  # a day; an orbit that grazes the ground makes 17
HIGHLY_ELLIPTIC_FROM = 0.25


def _derive(fact: Fact) -> Derived:
    """Found by name, catalogue number and international designator."""
    orbit = orbit_of(fact)
    designator = text(fact.data.get("OBJECT_ID"))
    return Derived(
        subtitle=joined(f"NORAD {fact.external_key}", designator),
        properties={"designator": designator or None, "regime": orbit.regime if orbit else None},
        orbit=orbit,
    )


def orbit_of(fact: Fact) -> Orbit | None:
    """The row of `satellite_orbits`; None when the elements say nothing. Heights by Kepler's third law."""
    data = fact.data
    norad_id, turns, ecc = (number(data.get(name)) for name in ("NORAD_CAT_ID", "MEAN_MOTION", "ECCENTRICITY"))
    if norad_id is None or turns is None or ecc is None:
        return None
    if not (0.0 < norad_id <= NORAD_ID_MAX and 0.0 < turns <= TURNS_MAX and 0.0 <= ecc < 1.0):
        return None
    axis_km = math.cbrt(MU_KM3_S2 / (turns * math.tau / DAY_S) ** 2)
    apogee_km = axis_km * (1.0 + ecc) - EARTH_KM
    return Orbit(
        norad_id=int(norad_id),
        name=fact.title,
        epoch=fact.observed_at,
        inclination=number(data.get("INCLINATION")),
        raan=number(data.get("RA_OF_ASC_NODE")),
        ecc=ecc,
        argp=number(data.get("ARG_OF_PERICENTER")),
        mean_anomaly=number(data.get("MEAN_ANOMALY")),
        mean_motion=turns,
        bstar=number(data.get("BSTAR")),
        period_min=DAY_S / 60.0 / turns,
        apogee_km=apogee_km,
        perigee_km=axis_km * (1.0 - ecc) - EARTH_KM,
        regime=_regime(turns, ecc, apogee_km),
    )


def _regime(turns: float, ecc: float, apogee_km: float) -> str:
    """As the page colours it."""
    if ecc >= HIGHLY_ELLIPTIC_FROM:
        return "HEO"
    if apogee_km < 2_000.0:
        return "LEO"
    return "GEO" if 0.9 < turns < 1.1 else "MEO"


SATELLITES = LayerAdapter(
    id="satellites",
    title="Satellites",
    title_zh="卫星",
    group="space",
    kind="satellite",
    feeds=(("collected_data", "celestrak_gp"), ("satellite_orbits", "celestrak_gp")),
    owned_tables=("satellite_orbits", "earth_interactables"),
    derive=_derive,
    aliases={"celestrak_tle": "celestrak_gp"},
    cache_patterns=("earth:layer:satellites:*", "earth:search:*", "dash:source:celestrak_gp:*"),
    stale_after_s=24 * 3600.0,  # the feed runs every few hours; elements older than a day drift by kilometres
    provenance=Provenance(
        publisher="CelesTrak (celestrak.org), from data of 18th Space Defense Squadron",
        licence="Free to use; credit CelesTrak",
        coverage="Catalogued objects of the group asked for, worldwide",
        limits="Positions are computed by SGP4 from elements of the last hours: good to about a kilometre near the "
        "epoch, worse with age; manoeuvres show only with the next elements",
    ),
)
