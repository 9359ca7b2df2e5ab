"""Lines and areas on the globe, as GeoJSON that can be drawn. Pure."""

from __future__ import annotations

from planetwire.geometry.read import (
    BODY_VERTICES_MAX,
    VERTICES_MAX,
    BadGeometry,
    Geometries,
    ShapeKind,
    geometry,
    is_shape_kind,
)

__all__ = [
    "BODY_VERTICES_MAX",
    "VERTICES_MAX",
    "BadGeometry",
    "Geometries",
    "ShapeKind",
    "geometry",
    "is_shape_kind",
]
