"""Reads the geometry of a fact: checked, and in one form, whoever sent it.

That form is a GeoJSON geometry (RFC 7946) without heights, rounded to about 0.1 m. Longitudes are in −180 … 180, and
two positions that follow each other are joined the shorter way round, so it is not cut at ±180°. Rings are closed; the
outer one runs counter-clockwise round the smaller of its two sides, holes clockwise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, TypeAlias, TypeGuard, get_args

from planetwire.geometry import areas, lines
from planetwire.geometry.areas import Ring
from planetwire.geometry.sphere import Position
from planetwire.model import Json
from planetwire.model.coordinates import LAT_MAX, LON_MAX, wrapped

ShapeKind: TypeAlias = Literal["line", "area"]

VERTICES_MAX = 5_000  # of one fact: as many as a record of 64 KiB can hold in practice
BODY_VERTICES_MAX = 100_000  # of the facts of one body: about 2 MB of a layer's snapshot
DECIMALS = 6  # 0.1 m
LENGTH_LEAST = 1e-9  # of a line, in radians: less than the decimals
QUARTERS = 4  # in which an edge all round the Earth is taken, since half a turn has no shorter way

_TYPES: dict[ShapeKind, tuple[str, str]] = {
    "line": ("LineString", "MultiLineString"),
    "area": ("Polygon", "MultiPolygon"),
}


class BadGeometry(ValueError):
    """Why a geometry is refused."""

    def __init__(self, reason: str, code: str) -> None:
        super().__init__(reason)
        self.code = code


class Geometries:
    """Those of one body, which together have a bound too: what exceeds it is refused, what came before it stays."""

    def __init__(self, most: int = BODY_VERTICES_MAX) -> None:
        self._left = most

    def read(self, value: object, kind: str) -> tuple[Json, float, float]:
        """As `geometry`."""
        made, lat, lon, vertices = _read(value, kind, self._left)
        self._left -= vertices
        return made, lat, lon


def is_shape_kind(kind: str) -> TypeGuard[ShapeKind]:
    """Whether the things of a layer of this kind have a geometry."""
    return kind in get_args(ShapeKind)


def geometry(value: object, kind: str) -> tuple[Json, float, float]:
    """The GeoJSON geometry of a line or an area, and latitude and longitude of a point on it.

    Raises BadGeometry: `bad_geometry` for what is none of this kind, `out_of_range` for a position off the Earth,
    `too_large` for too many vertices, `degenerate` for a line without length or an area without an inside. A part of a
    multiple one that is degenerate is left out alone.
    """
    return _read(value, kind, BODY_VERTICES_MAX)[:3]


def _read(value: object, kind: str, left: int) -> tuple[Json, float, float, int]:
    if not is_shape_kind(kind):
        raise ValueError(f"{kind!r} is a kind without a geometry")
    given, whole = (value.get("type"), value.get("coordinates")) if isinstance(value, dict) else (None, None)
    if given not in _TYPES[kind]:
        shown = repr(given[:40]) if isinstance(given, str) else "something else"
        raise BadGeometry(f"a GeoJSON {' or '.join(_TYPES[kind])} wanted, not {shown}", "bad_geometry")
    parts = _list(whole) if given == _TYPES[kind][1] else [whole]
    vertices = _counted(parts, 2 if kind == "area" else 1)
    if vertices > min(VERTICES_MAX, left):
        most = f"{VERTICES_MAX} in a fact" if vertices > VERTICES_MAX else "all facts of a body together may have"
        raise BadGeometry(f"{vertices} vertices are more than {most}", "too_large")
    made, (lon, lat) = _lines(parts) if kind == "line" else _areas(parts)
    form = {"type": _TYPES[kind][len(made) > 1], "coordinates": made if len(made) > 1 else made[0]}
    return form, round(lat, DECIMALS) + 0.0, round(lon, DECIMALS) + 0.0, vertices


def _counted(parts: Sequence[object], depth: int) -> int:
    lists = [_list(part) for part in parts]
    return sum(_counted(one, depth - 1) for one in lists) if depth > 1 else sum(map(len, lists))


def _list(value: object) -> Sequence[object]:
    if not isinstance(value, list | tuple):
        raise BadGeometry(f"a list of coordinates wanted, not {type(value).__name__}", "bad_geometry")
    return value


def _lines(parts: Sequence[object]) -> tuple[Sequence[Json | Sequence[object]], Position]:
    read = [_distinct([_written(one) for one in _list(raw)]) for raw in parts]
    read = [part for part in read if lines.length(part) > LENGTH_LEAST]
    if not read:
        raise BadGeometry("a line has at least two different positions", "degenerate")
    return [_listed(part) for part in read], lines.midway(max(read, key=lines.length))


def _areas(parts: Sequence[object]) -> tuple[Sequence[Json | Sequence[object]], Position]:
    read = [rings for raw in parts if (rings := _polygon(_list(raw)))]
    if not read:
        raise BadGeometry("an area has an inside, on one side of the Earth", "degenerate")
    made = [[_listed(_turned(one, left=not index)) for index, one in enumerate(rings)] for rings in read]
    return made, areas.inside(max(read, key=lambda rings: rings[0].size))


def _polygon(raw: Sequence[object]) -> list[Ring]:
    """The outer ring and those of its holes that have an inside; none if the outer one has none."""
    rings = [_ring(one) for one in raw]
    return [one for one in rings if one is not None] if rings and rings[0] is not None else []


def _ring(raw: object) -> Ring | None:
    written = [_written(one) for one in _list(raw)]
    if not written:
        return None
    if written[0] != written[-1]:
        written.append(written[0])
    positions = _distinct(written)
    made = areas.ring(positions) if len(positions) > 3 else None
    return made or _cap(written)


def _cap(written: Sequence[Position]) -> Ring | None:
    """Of a box all round a pole, whose long edge leads nowhere the shorter way; None for anything else."""
    turned: list[Position] = []
    for (lon, lat), (to_lon, to_lat) in pairwise(written):
        steps = QUARTERS if abs(to_lon - lon) == 360.0 else 1
        turned += [(lon + (to_lon - lon) * n / steps, lat + (to_lat - lat) * n / steps) for n in range(steps)]
    return areas.ring(_distinct([*turned, written[-1]])) if len(turned) >= len(written) else None


def _turned(ring: Ring, *, left: bool) -> Sequence[Position]:
    return ring.positions if ring.left == left else ring.positions[::-1]


def _listed(positions: Sequence[Position]) -> list[list[float]]:
    return [[lon, lat] for lon, lat in positions]


def _distinct(written: Sequence[Position]) -> list[Position]:
    """In the form of this module, without those that are where the one before is."""
    out: list[Position] = []
    for lon, lat in written:
        position = round(wrapped(lon), DECIMALS) + 0.0, round(lat, DECIMALS) + 0.0
        if not out or not (out[-1][1] == position[1] and (out[-1][0] - position[0]) % 360.0 == 0.0):
            out.append(position)
    return out


def _written(raw: object) -> Position:
    """As it was sent. Raises BadGeometry for what is none, or off the Earth."""
    if not isinstance(raw, list | tuple) or len(raw) < 2:
        raise BadGeometry("a position is a list of longitude and latitude", "bad_geometry")
    lon, lat = _number(raw[0]), _number(raw[1])
    if not (-LAT_MAX <= lat <= LAT_MAX and -LON_MAX <= lon <= LON_MAX):
        raise BadGeometry(f"longitude {lon:g}, latitude {lat:g} is not on the Earth", "out_of_range")
    return lon, lat


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadGeometry(f"a coordinate is a number, not {type(value).__name__}", "bad_geometry")
    try:
        return float(value)
    except OverflowError:
        return math.inf
