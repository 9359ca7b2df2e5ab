"""What is made of facts: how they are found, and the rows of tables of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

from planetwire.model.facts import Fact


class Orbit(NamedTuple):
    """A row of `satellite_orbits`, without its fact. Angles in degrees, `mean_motion` in revolutions a day."""

    norad_id: int
    name: str
    epoch: datetime | None
    inclination: float | None
    raan: float | None
    ecc: float
    argp: float | None
    mean_anomaly: float | None
    mean_motion: float
    bstar: float | None
    period_min: float
    apogee_km: float
    perigee_km: float
    regime: str


class PlaceAsked(NamedTuple):
    """Where a fact without coordinates of its own lies, as its data say: in numbers, or by a name."""

    name: str = ""
    lat: float | None = None
    lon: float | None = None


class Derived(NamedTuple):
    """What a layer makes of one fact: how it is found, and the rows of its own tables.

    Identity rather than measurements, so that new figures of the same thing leave the row as it is. `properties` is
    not copied: one that several facts share is not to be changed.
    """

    subtitle: str = ""
    properties: Mapping[str, Any] = {}
    severity: float | None = None
    alt_m: float | None = None
    orbit: Orbit | None = None
    place: PlaceAsked | None = None


Deriver: TypeAlias = Callable[[Fact], Derived]  # total: a fact may have been typed in by hand
