"""How a disk budget tightens what is kept: in a stated order, level after level, and back with a distance between.

Facts, the audit log and what waits to be told are never part of it.
"""

from __future__ import annotations

from dataclasses import dataclass

# The order: what can be fetched or made again first, what only looks back last. A level has all up to it.
STEPS = ("bodies", "job_logs", "jobs", "events", "readings")

NEAR_FROM = 0.80  # of the budget: warned of
TIGHTER_FROM = 0.90  # the next step is taken
EASIER_BELOW = 0.75  # the last one is taken back

# What is left of each, whatever was set; a setting that keeps less stays.
JOB_LOGS_KEPT_S = 3_600.0
JOBS_KEPT_DAYS = 1.0
EVENTS_KEPT_S = 3_600.0  # how long a page may be away and still catch up; after that it loads anew
READINGS_KEPT_DAYS = 3.0  # a chart shows the day of its city and the one before


@dataclass(frozen=True, slots=True)
class DiskState:
    """What the budget says now."""

    budget_bytes: int
    used_bytes: int
    level: int = 0

    @property
    def share(self) -> float:
        """Of the budget, that is in use."""
        return self.used_bytes / self.budget_bytes

    @property
    def word(self) -> str | None:
        """`over` the budget, `near` it, or None. It is near for as long as something is kept for less time."""
        if self.share > 1.0:
            return "over"
        return "near" if self.share >= NEAR_FROM or self.level else None

    @property
    def tightened(self) -> tuple[str, ...]:
        """The steps taken, in their order."""
        return STEPS[: self.level]
