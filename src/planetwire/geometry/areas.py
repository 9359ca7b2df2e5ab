"""An area: the smaller of the two sides of a ring, without its holes.

A border is straight in longitude and latitude, as GeoJSON says, and takes the shorter way round the Earth: a box keeps
to its parallels. What is inside is decided on the sphere, where a ring across ±180° or around a pole is like any other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from planetwire.geometry.sphere import Position, Vector, cross, dot, minus, position, total, unit, vector
from planetwire.model.coordinates import wrapped

BORDER_STEP_DEG = 3.0  # a longer edge is looked at in pieces of this length, since on the sphere it is bent
AREA_LEAST_DEG2 = 1e-10  # about a square metre at the equator

Point = tuple[float, float]  # of a plane


class Ring(NamedTuple):
    """A closed ring. `size`: of its smaller side, on the unit sphere, roughly; `left`: whether that is on the left."""

    positions: Sequence[Position]
    border: Sequence[Vector]
    centre: Vector
    size: float
    left: bool


def ring(positions: Sequence[Position]) -> Ring | None:
    """Of positions of which the last is where the first is; None for one without an inside on one side of the Earth."""
    if not _has_inside(positions):
        return None
    border = list(_border(positions))
    # The sum of cross products is twice the area that the ring spans, as a vector; taken from a point of the ring it is
    # exact for small ones too.
    origin = border[0]
    doubled = total(cross(a, b) for a, b in pairwise([minus(one, origin) for one in border]))
    middle = unit(total(border)) or unit(doubled) or origin
    return Ring(positions, border, middle, math.hypot(*doubled) / 2, dot(middle, doubled) > 0)


def _has_inside(positions: Sequence[Position]) -> bool:
    """By the ring in the plane of longitude and latitude, where its edges are straight and what is no area has none."""
    x, doubled, xs = 0.0, 0.0, [0.0]
    for (lon, lat), (to_lon, to_lat) in pairwise(positions):
        east = short_way(to_lon - lon)
        doubled += x * (to_lat - lat) - (lat - positions[0][1]) * east
        x += east
        xs.append(x)
    if abs(x) > 180.0:
        return True  # around a pole
    if max(xs) - min(xs) > 359.0:  # all round, and back: a cap if it comes by one pole, else a belt or everything
        return sum(any(lat == pole for _, lat in positions) for pole in (-90.0, 90.0)) == 1
    return abs(doubled) / 2 > AREA_LEAST_DEG2


def _border(positions: Sequence[Position]) -> Iterator[Vector]:
    for (lon, lat), (to_lon, to_lat) in pairwise(positions):
        east, north = short_way(to_lon - lon), to_lat - lat
        steps = max(1, math.ceil(max(abs(east), abs(north)) / BORDER_STEP_DEG))
        for step in range(steps):
            yield vector((lon + east * step / steps, lat + north * step / steps))
    yield vector(positions[-1])


def short_way(east: float) -> float:
    """The same difference of longitudes in −180 … 180."""
    return wrapped(east)


def inside(rings: Sequence[Ring]) -> Position:
    """A point of the area: of the widest place on a line across its middle."""
    plane = _Plane(rings[0].centre)
    borders = [[plane.point(one) for one in each.border] for each in rings]
    y = _between_vertices([point[1] for point in borders[0]])
    crossings = sorted(x for border in borders for x in _crossings(border, y))
    west, east = max(zip(crossings[::2], crossings[1::2], strict=False), key=lambda pair: pair[1] - pair[0])
    return plane.position(((west + east) / 2, y))


def _between_vertices(ys: Sequence[float]) -> float:
    """A height at the middle at which there is no vertex: a line through one crosses it once, twice, or not at all."""
    middle = (min(ys) + max(ys)) / 2
    below = max(y for y in ys if y <= middle)
    above = min((y for y in ys if y > below), default=below)
    return (below + above) / 2


def _crossings(border: Sequence[Point], y: float) -> Iterator[float]:
    for (x0, y0), (x1, y1) in pairwise(border):
        if (y0 <= y) != (y1 <= y):
            yield x0 + (x1 - x0) * (y - y0) / (y1 - y0)


class _Plane:
    """The stereographic view from a point: one to one for all of the sphere but the point opposite."""

    def __init__(self, centre: Vector) -> None:
        self._up = centre
        pole: Vector = (0.0, 0.0, 1.0) if abs(centre[2]) < 0.9 else (1.0, 0.0, 0.0)
        self._x = unit(cross(pole, centre)) or centre
        self._y = cross(centre, self._x)

    def point(self, of: Vector) -> Point:
        scale = 1.0 / max(1e-12, 1.0 + dot(self._up, of))
        return dot(self._x, of) * scale, dot(self._y, of) * scale

    def position(self, of: Point) -> Position:
        x, y = of
        up = 1.0 - x * x - y * y
        parts = zip(self._x, self._y, self._up, strict=True)
        a, b, c = (2 * x * east + 2 * y * north + up * high for east, north, high in parts)
        return position((a, b, c))
