"""How much of a random test runs: the short form with every other test, the long one by `make test-long`."""

from __future__ import annotations

import os
import random

LONG = bool(os.environ.get("PLANETWIRE_LONG"))
FACTOR = 30  # a long run has so many times the examples


def examples(short: int) -> int:
    """Examples of a property."""
    return short * FACTOR if LONG else short


def amount(name: str, short: int, long: int) -> int:
    """`PLANETWIRE_LONG_<NAME>`, else as this run is."""
    return int(os.environ.get(f"PLANETWIRE_LONG_{name}") or (long if LONG else short))


def seed_of(name: str) -> int:
    """`PLANETWIRE_LONG_<NAME>` begins a random run where a failed one began; else another each time."""
    return int(os.environ.get(f"PLANETWIRE_LONG_{name}") or random.SystemRandom().randrange(10**6))
