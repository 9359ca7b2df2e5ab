"""What code costs, counted in calls: a measure that is the same on every machine."""

from __future__ import annotations

import sys
from collections.abc import Callable

SLACK = 1.3  # of twice the work for twice the body


def calls(work: Callable[[], object]) -> int:
    """How many functions were called, in Python or in C."""
    count = 0

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count
