"""Whether the worker's heartbeats still succeed: counted by the heart's thread, checked by the worker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from planetwire.ports import Clock
from planetwire.settings import JobSettings

GUARD_S = 0.5  # how often the heart is checked
SILENT_SHARE = 0.7  # of a lease: the rest is enough to release the jobs
SILENT_BEATS = 1.5  # heartbeat intervals; with a long interval the time between two beats is not silence
SILENT_LEAST_S = 5.0  # opening a connection may take that long


class Pulse:
    """Counts successful heartbeats, including those with nothing to renew. Written by the heart's thread alone."""

    def __init__(self) -> None:
        self.beats = 0

    def beat(self) -> None:
        """One more."""
        self.beats += 1


async def until_silent(
    pulse: Pulse, settings: JobSettings, clock: Clock, answers: Callable[[], Awaitable[bool]]
) -> float:
    """Returns, in seconds, how long no heartbeat succeeded: once that is most of a lease and the database `answers`.

    Only time between our own checks counts, so a process that was suspended gets the full time again.
    """
    most_s = max(SILENT_SHARE * settings.lease_s, SILENT_BEATS * settings.heartbeat_s, SILENT_LEAST_S)
    seen, silent_s = pulse.beats, 0.0
    while silent_s < most_s or not await answers():
        await clock.sleep(GUARD_S)
        silent_s = silent_s + GUARD_S if pulse.beats == seen else 0.0
        seen = pulse.beats
    return silent_s
