"""Lines and areas are the same wherever on the globe they lie: across ±180°, around a pole, or nowhere special."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from planetwire.geometry import BadGeometry, geometry

lats = st.floats(-90, 90).map(lambda lat: round(lat, 3))
lons = st.floats(-360, 360).map(lambda lon: round(lon, 3))
directions = st.tuples(lats, lons)


def vector(lat: float, lon: float) -> tuple[float, float, float]:
    north, east = math.radians(lat), math.radians(lon)
    return math.cos(north) * math.cos(east), math.cos(north) * math.sin(east), math.sin(north)


def degrees_between(a: tuple[float, float], b: tuple[float, float]) -> float:
    there, here = vector(*a), vector(*b)
    return math.degrees(2 * math.asin(min(1.0, math.dist(there, here) / 2)))


def circle(lat: float, lon: float, radius: float, corners: int) -> list[list[float]]:
    """Longitudes and latitudes so many degrees around a place, poles included."""
    north, east = math.radians(lat), math.radians(lon)
    up = vector(lat, lon)
    eastwards = -math.sin(east), math.cos(east), 0.0
    northwards = -math.sin(north) * math.cos(east), -math.sin(north) * math.sin(east), math.cos(north)
    out = []
    for corner in range(corners):
        turn, far = math.tau * corner / corners, math.radians(radius)
        parts = zip(up, eastwards, northwards, strict=True)
        x, y, z = (math.cos(far) * u + math.sin(far) * (math.cos(turn) * e + math.sin(turn) * n) for u, e, n in parts)
        out.append([math.degrees(math.atan2(y, x)), math.degrees(math.asin(max(-1.0, min(1.0, z))))])
    return out


@given(directions, st.floats(0.01, 60), st.booleans())
def test_an_area_around_any_place_holds_its_point(place: tuple[float, float], radius: float, turned: bool) -> None:
    ring = circle(*place, radius, 48)
    made, lat, lon = geometry({"type": "Polygon", "coordinates": [ring[::-1] if turned else ring]}, "area")
    assert degrees_between((lat, lon), place) < radius
    assert all(-180 <= x <= 180 and -90 <= y <= 90 for x, y in made["coordinates"][0])
    assert made["coordinates"][0][0] == made["coordinates"][0][-1]


@given(directions, st.floats(1, 40), st.floats(0.1, 0.8))
def test_the_point_of_an_area_with_a_hole_is_in_the_area(
    place: tuple[float, float], radius: float, share: float
) -> None:
    rings = [circle(*place, radius, 48), circle(*place, radius * share, 48)]
    _, lat, lon = geometry({"type": "Polygon", "coordinates": rings}, "area")
    assert radius * share * 0.99 < degrees_between((lat, lon), place) < radius


@given(directions, directions)
def test_the_point_of_a_line_is_as_far_from_both_its_ends(a: tuple[float, float], b: tuple[float, float]) -> None:
    apart = degrees_between(a, b)
    coordinates = [[a[1], a[0]], [b[1], b[0]]]
    try:
        _, lat, lon = geometry({"type": "LineString", "coordinates": coordinates}, "line")
    except BadGeometry as bad:
        assert bad.code == "degenerate" and apart < 1e-3
        return
    if apart > 179.9:
        return  # every way is the shortest
    assert abs(degrees_between((lat, lon), a) - apart / 2) < 1e-3
    assert abs(degrees_between((lat, lon), b) - apart / 2) < 1e-3


@given(st.lists(st.tuples(lons, lats), max_size=30), st.sampled_from(["line", "area"]), st.booleans())
def test_what_was_read_once_is_read_as_it_is(positions: list[tuple[float, float]], kind: str, several: bool) -> None:
    parts: Any = [list(map(list, positions))]
    name = "LineString" if kind == "line" else "Polygon"
    coordinates = parts if kind == "area" else parts[0]
    value = {"type": f"Multi{name}" if several else name, "coordinates": [coordinates] if several else coordinates}
    try:
        made, lat, lon = geometry(value, kind)
    except BadGeometry as bad:
        assert bad.code == "degenerate"
        return
    again = geometry(made, kind)
    assert again[0] == made
    assert degrees_between(again[1:], (lat, lon)) < 1e-3 or kind == "area"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=12,
    ),
    st.sampled_from(["LineString", "MultiLineString", "Polygon", "MultiPolygon", "Point", None]),
    st.sampled_from(["line", "area"]),
)
def test_anything_else_is_refused_with_a_code(coordinates: Any, name: str | None, kind: str) -> None:
    try:
        made, lat, lon = geometry({"type": name, "coordinates": coordinates}, kind)
    except BadGeometry as bad:
        assert bad.code in {"bad_geometry", "out_of_range", "degenerate", "too_large"}
        return
    assert -90 <= lat <= 90 and -180 <= lon <= 180 and made["coordinates"]
