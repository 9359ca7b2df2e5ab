"""The layer of earthquakes: points with magnitude and depth."""

from __future__ import annotations

from planetwire.layers.places import GEONAMES, GEONAMES_LICENCE, GEONAMES_ZH, asked
from planetwire.layers.values import joined, number, text
from planetwire.model import Derived, Fact, LayerAdapter, Provenance
from planetwire.model.presentation import CardRow, Choice, GrowingSize, Look, Scale, ScaleClass


def _derive(fact: Fact) -> Derived:
    """Found by place, magnitude (`M 5.4`), day and id."""
    magnitude, depth_km = number(fact.data.get("mag")), number(fact.data.get("depth_km"))
    day = fact.observed_at.date().isoformat() if fact.observed_at else ""
    return Derived(
        subtitle=joined("" if magnitude is None else f"M {magnitude:.1f}", day),
        properties={"mag": magnitude, "mag_type": text(fact.data.get("mag_type")) or None, "depth_km": depth_km},
        severity=magnitude,
        alt_m=None if depth_km is None else -1000.0 * depth_km,
        place=asked(fact, "place"),
    )


HOUR_S = 3_600.0
LOOK = Look(
    color=Scale(
        by="age",
        classes=(
            ScaleClass("hour", "< 1 h", "1 小时内", "#ff5f4f", alpha=0.95, up_to_s=HOUR_S),
            ScaleClass("day", "< 24 h", "24 小时内", "#ff9a4d", alpha=0.85, up_to_s=24 * HOUR_S),
            ScaleClass("week", "< 7 d", "7 天内", "#e2c08a", alpha=0.7, up_to_s=7 * 24 * HOUR_S),
            ScaleClass("older", "older", "更早", "#a8967c", alpha=0.55),
        ),
    ),
    # The area grows by two thirds with each unit, from a speck to 30 px at magnitude 9.
    size=GrowingSize("mag", base_px=3.0, factor=1.29, least_px=3.0, most_px=30.0, else_px=4.0),
)
CARD = (
    CardRow("magnitude", "Magnitude", "震级", ("mag",), "number", decimals=1, unit_from="mag_type"),
    CardRow("depth", "Depth", "深度", ("depth_km",), "number", unit="km"),
    CardRow("time", "Time", "时间", ("observed_at",), "time"),
    CardRow("status", "Review", "审核", ("status",)),
    CardRow(
        "tsunami", "Tsunami", "海啸", ("tsunami",), "flag", choices=(Choice("yes", "message issued", "已发布通告"),)
    ),
)

EARTHQUAKES = LayerAdapter(
    id="earthquakes",
    title="Earthquakes",
    title_zh="地震",
    group="hazards",
    kind="point",
    feeds=(("collected_data", "usgs_quakes"), ("resolved_locations", "usgs_quakes")),
    owned_tables=("resolved_locations", "earth_interactables"),
    derive=_derive,
    look=LOOK,
    card=CARD,
    cache_patterns=("earth:layer:earthquakes:*",),
    stale_after_s=1800.0,  # the feed is rebuilt every minute
    provenance=Provenance(
        publisher=f"U.S. Geological Survey, Earthquake Hazards Program; {GEONAMES}",
        licence=f"Public domain; {GEONAMES_LICENCE}",
        coverage="Worldwide; small events mainly where the seismic networks are dense, above all in the USA",
        limits="First solutions are automatic: magnitude, depth and place may be revised for weeks, and an event may "
        "be withdrawn",
        zh=Provenance(
            publisher=f"美国地质调查局地震灾害项目；{GEONAMES_ZH}",
            licence=f"公有领域；{GEONAMES_LICENCE}",
            coverage="全球；小震主要见于台网密集处，尤其是美国",
            limits="首次结果由系统自动给出：震级、深度和位置可能在数周内修订，事件也可能被撤回",
        ),
    ),
)
