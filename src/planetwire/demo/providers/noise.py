"""Reproducible randomness: every number is a pure function of a seed and its keys, never of the call order."""

from __future__ import annotations

import math

_MASK = (1 << 64) - 1


def bits(*keys: int) -> int:
    """64 well-mixed bits of the keys (splitmix64, folded over them)."""
    state = 0x9E3779B97F4A7C15
    for key in keys:
        state = (state ^ (key & _MASK)) + 0x9E3779B97F4A7C15 & _MASK
        state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
        state = (state ^ (state >> 27)) * 0x94D049BB133111EB & _MASK
        state ^= state >> 31
    return state


def unit(*keys: int) -> float:
    """Uniform in [0, 1)."""
    return (bits(*keys) >> 11) / (1 << 53)


def spread(low: float, high: float, *keys: int) -> float:
    """Uniform in [low, high)."""
    return low + (high - low) * unit(*keys)


def gauss(*keys: int) -> float:
    """Standard normal."""
    return math.sqrt(-2 * math.log(1 - unit(*keys, 1))) * math.cos(2 * math.pi * unit(*keys, 2))


def smooth(at_s: float, period_s: float, *keys: int) -> float:
    """A continuous random curve in [-1, 1] with a new target every `period_s` of time `at_s`."""
    step, part = divmod(at_s / period_s, 1.0)
    left, right = spread(-1, 1, *keys, int(step)), spread(-1, 1, *keys, int(step) + 1)
    return left + (right - left) * part * part * (3 - 2 * part)
