"""The point that stands for a GeoJSON feature."""

from __future__ import annotations

from typing import Any

from planetwire.collect.formats.records import number

VERTICES_MAX = 20_000  # looked at, of one geometry


def point_of(feature: Any) -> tuple[float | None, float | None]:
    """Latitude and longitude of a point; of any other geometry the middle of its bounds, the short way round.

    (None, None) without a geometry.
    """
    geometry = feature.get("geometry") if isinstance(feature, dict) else None
    coordinates = geometry.get("coordinates") if isinstance(geometry, dict) else None
    if not isinstance(coordinates, list) or len(coordinates) < 1:
        return None, None
    if isinstance(geometry, dict) and geometry.get("type") == "Point":
        return (number(coordinates[1]), number(coordinates[0])) if len(coordinates) > 1 else (None, None)
    return _middle(coordinates)


def _middle(coordinates: list[Any]) -> tuple[float | None, float | None]:
    """Longitudes are counted from the first one, so that a shape across ±180° stays in one piece."""
    points: list[tuple[float, float]] = []
    waiting: list[Any] = [coordinates]
    while waiting and len(points) < VERTICES_MAX:
        one = waiting.pop()
        if not isinstance(one, list):
            continue
        lon, lat = (number(one[0]), number(one[1])) if len(one) > 1 else (None, None)
        if lon is not None and lat is not None:
            points.append((lat, lon))
        else:
            waiting.extend(reversed(one))
    if not points:
        return None, None
    first = points[0][1]
    lons = [first + (lon - first + 180.0) % 360.0 - 180.0 for _, lon in points]
    lats = [lat for lat, _ in points]
    lon = (min(lons) + max(lons)) / 2
    return (min(lats) + max(lats)) / 2, (lon + 540.0) % 360.0 - 180.0
