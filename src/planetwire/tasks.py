"""The registry of task types: what jobs do, and which lane of the ledger that is."""

from __future__ import annotations

from enum import StrEnum


class Lane(StrEnum):
    """What of a task type matters to the ledger; in the database it is `planet_task_lane` of it."""

    FILL = "fill"  # writes facts of its source, one job of a source at a time; a new try starts over
    CLEAR = "clear"  # deletes them, in turn with those; a new try goes on where the last one was; audited
    FREE = "free"  # touches no facts, needs no source and waits for no job


class TaskType(StrEnum):
    """What a job does."""

    COLLECT = "collect"
    CLEAR_DATA = "clear_data"
    CLEAR_CACHE = "clear_cache"
    EARTH_REFRESH = "earth_refresh"

    @property
    def lane(self) -> Lane:
        """Of its jobs."""
        return _LANES[self]

    @property
    def is_write(self) -> bool:
        """Of write jobs one runs at a time per source, and each has one."""
        return self.lane is not Lane.FREE


_LANES = {
    TaskType.COLLECT: Lane.FILL,
    TaskType.CLEAR_DATA: Lane.CLEAR,
    TaskType.CLEAR_CACHE: Lane.FREE,
    TaskType.EARTH_REFRESH: Lane.FREE,
}
