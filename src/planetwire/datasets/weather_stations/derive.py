"""What is made of a weather station: how it is found, and which city it is of."""

from __future__ import annotations

from planetwire.layers.places import asked
from planetwire.layers.values import joined, text
from planetwire.model import Derived, Fact


def derive(fact: Fact) -> Derived:
    """Found by city, airport and code; temperatures change too often to be what a thing is."""
    names = {key: text(fact.data.get(key)) for key in ("airport", "icao", "city", "name_zh")}
    return Derived(
        subtitle=joined(names["airport"], names["icao"], names["name_zh"]),
        properties={key: names[key] or None for key in ("city", "icao")},
        place=asked(fact, "city"),
    )
