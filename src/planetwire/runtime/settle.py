"""Makes a process ready for long work."""

from __future__ import annotations

import gc

# Objects between two collections of each generation. Jobs and frames live for milliseconds and hold no cycles: with
# Python's 700 a fifth of a worker's time went into looking at them again and again.
THRESHOLDS = (20_000, 50, 100)


def settle() -> None:
    """Call once, when everything is imported and opened: what is there now is not looked at again for garbage."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
