"""Which reports of an observation feed were already delivered; bounded, and approximate after a restart.

A report delivered twice is harmless, the ingest recognises it; one withheld is lost. So in doubt it is delivered.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from planetwire.collect.formats.metar_text import iso
from planetwire.model import Json

HISTORY = timedelta(hours=24)
LATE = timedelta(minutes=30)  # a report may arrive this much after a newer one of its station, across a restart
AHEAD = timedelta(minutes=5)  # a report with a later time waits until it is no longer in the future
MAX_REMEMBERED = 200_000


class Delivered:
    """The delivered reports of one feed. `cursor`, the persisted part: each station's newest delivered time."""

    def __init__(self, cursor: dict[str, str]) -> None:
        self.cursor = dict(cursor)
        self._since = {station: _earlier(newest) for station, newest in cursor.items()}
        self._contents: dict[tuple[str, str], object] = {}

    def undelivered(self, patches: Iterable[Json], now: datetime) -> list[Json]:
        """The patches to deliver now, in their order; one with changed content is new again."""
        first, last = iso(now - HISTORY), iso(now + AHEAD)
        return [patch for patch in patches if first <= patch["obs_time"] <= last and self._is_new(patch)]

    def _is_new(self, patch: Json) -> bool:
        station, observed_at, content = _key(patch)
        if (station, observed_at) in self._contents:
            return self._contents[station, observed_at] != content
        return observed_at > self._since.get(station, "")

    def mark(self, patches: Sequence[Json]) -> None:
        """The ingest accepted these patches."""
        for patch in patches:
            station, observed_at, content = _key(patch)
            self._contents[station, observed_at] = content
            self.cursor[station] = max(self.cursor.get(station, ""), observed_at)

    def forget(self, now: datetime) -> None:
        """Drop reports too old to be fetched again."""
        oldest = iso(now - HISTORY)
        kept = [(key, content) for key, content in self._contents.items() if key[1] >= oldest]
        self._contents = dict(kept[-MAX_REMEMBERED:])


def _key(patch: Json) -> tuple[str, str, object]:
    """Station, time, and content: the temperature, and that of each place of each runway."""
    payload = patch["payload"]
    points = tuple(tuple(point.values()) for point in payload.get("runway_points", ()))
    return payload["station_code"], patch["obs_time"], (payload.get("temp"), points) if points else payload["temp"]


def _earlier(newest: str) -> str:
    try:
        return iso(datetime.fromisoformat(newest) - LATE)
    except ValueError:
        return ""
