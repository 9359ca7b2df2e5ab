"""The size of a random test: the short form runs with all other tests, the long one by `make test-long`."""

from __future__ import annotations

import os
import random

LONG = bool(os.environ.get("PLANETWIRE_LONG"))
FACTOR = 30  # a long run has so many times more examples


def examples(short: int) -> int:
    """The number of examples of a property."""
    return short * FACTOR if LONG else short


def amount(name: str, short: int, long: int) -> int:
    """`PLANETWIRE_LONG_<NAME>`, else by the form of this run."""
    return int(os.environ.get(f"PLANETWIRE_LONG_{name}") or (long if LONG else short))


def seed_of(name: str) -> int:
    """`PLANETWIRE_LONG_<NAME>` repeats the seed of a failed run; else another each time."""
    return int(os.environ.get(f"PLANETWIRE_LONG_{name}") or random.SystemRandom().randrange(10**6))
