"""Directions from the centre of a sphere: neither the poles nor ±180° are special there."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeAlias

Vector: TypeAlias = tuple[float, float, float]
Position: TypeAlias = tuple[float, float]  # longitude, latitude in degrees, as GeoJSON has them


def vector(position: Position) -> Vector:
    """Of length one."""
    lon, lat = math.radians(position[0]), math.radians(position[1])
    return math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat)


def position(towards: Vector) -> Position:
    """Of any length but zero."""
    x, y, z = towards
    return math.degrees(math.atan2(y, x)), math.degrees(math.atan2(z, math.hypot(x, y)))


def dot(a: Vector, b: Vector) -> float:
    """The scalar product."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a: Vector, b: Vector) -> Vector:
    """The vector product: across both, as long as the parallelogram between them is large."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def minus(a: Vector, b: Vector) -> Vector:
    """The way from `b` to `a`."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


def total(vectors: Iterable[Vector]) -> Vector:
    """The sum."""
    x = y = z = 0.0
    for one in vectors:
        x, y, z = x + one[0], y + one[1], z + one[2]
    return x, y, z


def unit(towards: Vector) -> Vector | None:
    """Of length one; None for what is too short to have a direction."""
    length = math.hypot(*towards)
    return (towards[0] / length, towards[1] / length, towards[2] / length) if length > 1e-9 else None


def angle(a: Vector, b: Vector) -> float:
    """Between two directions, in radians; exact for small ones too."""
    return math.atan2(math.hypot(*cross(a, b)), dot(a, b))


def between(a: Vector, b: Vector, share: float) -> Vector:
    """So much of the shortest way from `a` to `b`. Of two opposite directions: `a`, since every way is the shortest."""
    whole = angle(a, b)
    sine = math.sin(whole)
    if sine < 1e-12:
        return a
    first, second = math.sin((1.0 - share) * whole) / sine, math.sin(share * whole) / sine
    return total(((a[0] * first, a[1] * first, a[2] * first), (b[0] * second, b[1] * second, b[2] * second)))
