"""What is made of an earthquake: how it is found, and how grave it is."""

from __future__ import annotations

from planetwire.layers.places import asked
from planetwire.layers.values import joined, number, text
from planetwire.model import Derived, Fact


def derive(fact: Fact) -> Derived:
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
