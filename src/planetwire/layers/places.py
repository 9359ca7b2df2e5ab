"""Finds in a fact without coordinates what names its place. Total: a fact may have been typed in by hand."""

from __future__ import annotations

from planetwire.geometry import geometry
from planetwire.layers.values import number, text
from planetwire.model import Fact, Json, PlaceAsked
from planetwire.model.coordinates import on_earth

PAIRS = (("lat", "lon"), ("lat", "lng"), ("latitude", "longitude"))
GEONAMES = "where coordinates are missing the place is looked up by its name: GeoNames (geonames.org)"
GEONAMES_ZH = "缺少坐标时按地名查找位置：GeoNames（geonames.org）"
GEONAMES_LICENCE = "GeoNames: CC BY 4.0"


def asked(fact: Fact, *names: str) -> PlaceAsked | None:
    """Coordinates in the data, else the first of the `names` in it with its `country`; None: nothing to resolve.

    None also for a fact that has both coordinates.
    """
    if on_earth(number(fact.lat), number(fact.lon)) is not None:
        return None
    given = _given(fact.data)
    if given is not None:
        return PlaceAsked(lat=given[0], lon=given[1])
    name = next((found for key in names if (found := text(fact.data.get(key)))), "")
    country = text(fact.data.get("country"))
    return PlaceAsked(f"{name}, {country}" if country else name) if name else None


def _given(data: Json) -> tuple[float, float] | None:
    for lat, lon in PAIRS:
        if (pair := on_earth(number(data.get(lat)), number(data.get(lon)))) is not None:
            return pair
    shape = data.get("geometry")
    inner = shape.get("coordinates") if isinstance(shape, dict) else None
    pairs = (_geojson(raw) for raw in (data.get("coordinates"), inner))
    return next((pair for pair in pairs if pair is not None), None) or _on_shape(shape)


def _on_shape(shape: object) -> tuple[float, float] | None:
    """A point on the line or the area that it is."""
    for kind in ("line", "area"):
        try:
            return geometry(shape, kind)[1:]
        except ValueError:
            continue
    return None


def _geojson(raw: object) -> tuple[float, float] | None:
    """From `[lon, lat, …]`, the order of GeoJSON."""
    if not isinstance(raw, list) or len(raw) < 2:
        return None
    return on_earth(number(raw[1]), number(raw[0]))
