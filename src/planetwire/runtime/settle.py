"""Tunes the garbage collector for a long-running process."""

from __future__ import annotations

import gc

# Thresholds of the collector. Jobs and frames live for milliseconds and have no cycles: with Python's default of 700 a
# fifth of a worker's time went into scanning them.
THRESHOLDS = (20_000, 50, 100)


def settle() -> None:
    """Call once, after all imports and openings: existing objects are excluded from garbage collection."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
