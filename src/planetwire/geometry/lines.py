"""A line: positions joined by the shortest way over the sphere."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from planetwire.geometry.sphere import Position, angle, between, position, vector


def length(part: Sequence[Position]) -> float:
    """In radians."""
    vectors = [vector(one) for one in part]
    return sum(angle(a, b) for a, b in pairwise(vectors))


def midway(part: Sequence[Position]) -> Position:
    """The point halfway along."""
    vectors = [vector(one) for one in part]
    lengths = [angle(a, b) for a, b in pairwise(vectors)]
    left = sum(lengths) / 2
    for (a, b), step in zip(pairwise(vectors), lengths, strict=True):
        if step and left <= step:
            return position(between(a, b, left / step))
        left -= step
    return part[-1]
