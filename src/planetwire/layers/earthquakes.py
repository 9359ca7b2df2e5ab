"""The layer of earthquakes: points with magnitude and depth."""

from __future__ import annotations

from planetwire.layers.values import joined, number, text
from planetwire.model import Derived, Fact, LayerAdapter, Provenance


def _derive(fact: Fact) -> Derived:
    """Found by place, magnitude (`M 5.4`), day and id."""
    magnitude, depth_km = number(fact.data.get("mag")), number(fact.data.get("depth_km"))
    day = fact.observed_at.date().isoformat() if fact.observed_at else ""
    return Derived(
        subtitle=joined("" if magnitude is None else f"M {magnitude:.1f}", day),
        properties={"mag": magnitude, "mag_type": text(fact.data.get("mag_type")) or None, "depth_km": depth_km},
        severity=magnitude,
        alt_m=None if depth_km is None else -1000.0 * depth_km,
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
    cache_patterns=("earth:layer:earthquakes:*",),
    stale_after_s=1800.0,  # the feed is rebuilt every minute
    provenance=Provenance(
        publisher="U.S. Geological Survey, Earthquake Hazards Program",
        licence="Public domain",
        coverage="Worldwide; small events mainly where the seismic networks are dense, above all in the USA",
        limits="First solutions are automatic: magnitude, depth and place may be revised for weeks, and an event may "
        "be withdrawn",
        zh=Provenance(
            publisher="美国地质调查局地震灾害项目",
            licence="公有领域",
            coverage="全球；小震主要见于台网密集处，尤其是美国",
            limits="首次结果由系统自动给出：震级、深度和位置可能在数周内修订，事件也可能被撤回",
        ),
    ),
)
