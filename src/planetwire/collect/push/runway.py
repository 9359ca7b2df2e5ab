"""Runway sensors of a patch: names, temperatures, and which runway represents the city. Pure."""

from __future__ import annotations

import re

from planetwire.cities import City
from planetwire.collect.formats.temperature import celsius_or_none
from planetwire.errors import InputError
from planetwire.model import Json

POINTS_MAX = 16  # keeps a stored payload under 3 KiB

_NAME = re.compile(r"[0-9A-Z/\-]{1,16}")
_PLACES = ("tdz_temp", "mid_temp", "end_temp")
_IN_ORDER = ("temp", "target_runway_max", *_PLACES)  # the first valid temperature is the point's


def runway_points(inner: Json, amos: Json, city: City, *, fahrenheit: bool) -> list[Json]:
    """Points with a name and a temperature, one per runway; points beside the reading win over those in `amos`.

    `amos.runway_obs.temperatures` is not read: senders disagree on the meaning of its pairs.
    Raises InputError `too_many_runways` over 16.
    """
    points: dict[str, Json] = {}
    for raw in _raw_points(inner, amos):
        point = _point(raw, city, fahrenheit=fahrenheit)
        if point is not None:
            points.setdefault(point["runway"], point)
        if len(points) > POINTS_MAX:
            raise InputError(f"more than {POINTS_MAX} runway points", code="too_many_runways")
    return list(points.values())


def _raw_points(inner: Json, amos: Json) -> list[object]:
    direct = inner.get("runway_points")
    if isinstance(direct, list) and direct:
        return direct
    nested = amos.get("runway_obs")
    listed = nested.get("point_temperatures") if isinstance(nested, dict) else None
    return listed if isinstance(listed, list) else []


def _point(raw: object, city: City, *, fahrenheit: bool) -> Json | None:
    if not isinstance(raw, dict):
        return None
    name = _name(raw.get("runway")) or _name(raw.get("rwy"))
    readings = {key: celsius_or_none(raw.get(key), fahrenheit=fahrenheit) for key in _IN_ORDER}
    temp = next((readings[key] for key in _IN_ORDER if readings[key] is not None), None)
    if name is None or temp is None:
        return None
    declared = raw.get("is_settlement")
    return {
        "runway": name,
        "temp": temp,
        **{key: readings[key] for key in _PLACES},
        "is_settlement": declared if isinstance(declared, bool) else city.is_settlement_runway(name),
    }


def _name(raw: object) -> str | None:
    """`17L/35R`: upper case without spaces."""
    name = "".join(raw.split()).upper() if isinstance(raw, str) and len(raw) <= 64 else ""
    return name if _NAME.fullmatch(name) else None
