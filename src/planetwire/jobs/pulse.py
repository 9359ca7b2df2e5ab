"""Whether the worker's heart still beats: told by the heart, watched by the worker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from planetwire.ports import Clock
from planetwire.settings import JobSettings

GUARD_S = 0.5  # how often the heart is looked at
SILENT_SHARE = 0.7  # of a lease: what is left is enough to give the jobs back
SILENT_BEATS = 1.5  # a heart that is told to beat seldom is not silent between two beats
SILENT_LEAST_S = 5.0  # to open a connection may take as long


class Pulse:
    """How many beats went well, those with nothing to renew included. Counted in the heart's thread."""

    def __init__(self) -> None:
        self.beats = 0

    def went_on(self) -> None:
        """One more."""
        self.beats += 1


async def until_silent(
    pulse: Pulse, settings: JobSettings, clock: Clock, answers: Callable[[], Awaitable[bool]]
) -> float:
    """Returns when the heart has stood still for most of a lease although the database `answers`; for how long.

    Time counts only while we are looking: after the whole process was stopped, the heart gets as long as ever.
    """
    most_s = max(SILENT_SHARE * settings.lease_s, SILENT_BEATS * settings.heartbeat_s, SILENT_LEAST_S)
    seen, silent_s = pulse.beats, 0.0
    while silent_s < most_s or not await answers():
        await clock.sleep(GUARD_S)
        silent_s = silent_s + GUARD_S if pulse.beats == seen else 0.0
        seen = pulse.beats
    return silent_s
