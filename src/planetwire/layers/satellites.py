"""The layer of satellites: mean elements, turned into positions by the browser."""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import itemgetter
from typing import Any

from planetwire.layers.values import number, text
from planetwire.model import Derived, Fact, Json, LayerAdapter, Orbit, Provenance
from planetwire.model.presentation import CardRow, Choice, FixedSize, Look, Scale, ScaleClass

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
_NUMERIC = {float, int}
_elements_of: Callable[[Json], tuple[Any, ...]] = itemgetter(*ELEMENTS)


def _derive(fact: Fact) -> Derived:
    """Found by name, catalogue number and international designator; what it is like stands in its orbit's row."""
    designator = text(fact.data.get("OBJECT_ID"))
    number_text = f"NORAD {fact.external_key}"
    subtitle = f"{number_text} · {designator}" if designator else number_text
    return Derived(subtitle, orbit=orbit_of(fact))


def orbit_of(fact: Fact) -> Orbit | None:
    """The row of `satellite_orbits`; None when the elements say nothing. Heights by Kepler's third law."""
    norad_id, turns, ecc, inclination, raan, argp, anomaly, bstar = _numbers(fact.data)
    if norad_id is None or turns is None or ecc is None:
        return None
    if not (0.0 < norad_id <= NORAD_ID_MAX and TURNS_MIN <= turns <= TURNS_MAX and 0.0 <= ecc < 1.0):
        return None
    axis_km = math.cbrt(MU_KM3_S2 / (turns * math.tau / DAY_S) ** 2)
    apogee_km, perigee_km = axis_km * (1.0 + ecc) - EARTH_KM, axis_km * (1.0 - ecc) - EARTH_KM
    shape = (DAY_S / 60.0 / turns, apogee_km, perigee_km, _regime(turns, ecc, apogee_km))
    angles = (inclination, raan, ecc, argp, anomaly, turns, bstar)
    return Orbit(int(norad_id), fact.title, fact.observed_at, *angles, *shape)


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


# What is in lower case is worked out by the page's drawing of satellites, from the elements and the time.
LOOK = Look(
    color=Scale(
        by="category",
        value="regime",
        classes=(
            ScaleClass("LEO", "LEO", "低轨", "#5cc4dd", alpha=0.78, size_px=2.0),
            ScaleClass("MEO", "MEO", "中轨", "#f0b64a", equals="MEO"),
            ScaleClass("GEO", "GEO", "同步轨道", "#b79bff", equals="GEO"),
            ScaleClass("HEO", "HEO", "大椭圆", "#e58fd0", equals="HEO"),
        ),
    ),
    size=FixedSize(3.0),
)
REGIMES = (
    Choice("LEO", "LEO · low Earth orbit", "LEO · 近地轨道"),
    Choice("MEO", "MEO · medium Earth orbit", "MEO · 中地球轨道"),
    Choice("GEO", "GEO · geosynchronous", "GEO · 地球同步轨道"),
    Choice("HEO", "HEO · highly elliptical", "HEO · 大椭圆轨道"),
)
CARD = (
    CardRow("norad", "NORAD id", "NORAD 编号", ("NORAD_CAT_ID",)),
    CardRow("designator", "Designator", "国际编号", ("OBJECT_ID",)),
    CardRow(
        "altitude",
        "Altitude",
        "高度",
        ("altitude_km",),
        "number",
        decimals=0,
        unit="km",
        otherwise="no position",
        otherwise_zh="没有位置",
    ),
    CardRow("regime", "Regime", "轨道类型", ("regime",), "choice", choices=REGIMES),
    CardRow(
        "heights",
        "Perigee × apogee",
        "近地点 × 远地点",
        ("perigee_km", "apogee_km"),
        "number",
        join=" × ",
        decimals=0,
        unit="km",
    ),
    CardRow("inclination", "Inclination", "倾角", ("inclination_deg",), "number", unit="°"),
    CardRow("period", "Period", "周期", ("period_min",), "number", unit="min"),
    CardRow("epoch", "Elements", "轨道根数", ("EPOCH", "observed_at"), "time"),
)

SATELLITES = LayerAdapter(
    id="satellites",
    title="Satellites",
    title_zh="卫星",
    group="space",
    kind="satellite",
    feeds=(
        ("collected_data", "celestrak_gp"),
        ("satellite_orbits", "celestrak_gp"),
        ("resolved_locations", "celestrak_gp"),
    ),
    owned_tables=("satellite_orbits", "resolved_locations", "earth_interactables"),
    derive=_derive,
    look=LOOK,
    card=CARD,
    aliases={"celestrak_tle": "celestrak_gp"},
    cache_patterns=("earth:layer:satellites:*",),
    stale_after_s=24 * 3600.0,  # the feed runs every few hours; elements older than a day drift by kilometres
    provenance=Provenance(
        publisher="CelesTrak (celestrak.org), from data of 18th Space Defense Squadron",
        licence="Free to use; credit CelesTrak",
        coverage="Catalogued objects of the group asked for, worldwide",
        limits="Positions are computed by SGP4 from elements of the last hours: good to about a kilometre near the "
        "epoch, worse with age; manoeuvres show only with the next elements",
        zh=Provenance(
            publisher="CelesTrak（celestrak.org），数据来自美国第 18 太空防御中队",
            licence="可自由使用，须注明 CelesTrak",
            coverage="所选目录组中的在编目标，全球",
            limits="位置由 SGP4 按最近数小时的轨道根数推算：历元附近误差约一公里，随时间增大；"
            "机动要到下一组根数才会体现",
        ),
    ),
)
