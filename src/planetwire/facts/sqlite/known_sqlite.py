"""The stored state that patches touch, on SQLite. Each city's is cached in memory while no other process writes.

A reading newer than its whole curve cannot be a repeat, so nothing is looked up for it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import orjson

from planetwire.database.sql import queries_beside
from planetwire.facts.observations.group import Group, Known, Slot, slots
from planetwire.facts.observations.wire import Key
from planetwire.facts.sqlite.recent_sqlite import settle
from planetwire.model import ObservationPatch
from planetwire.observing import HEADLINE_SERIES

Q = queries_beside(__file__)

CITIES_MAX, CURVES_MAX = 2_000, 20_000  # beyond, the cache is emptied
HEADLINE = frozenset(map(str, HEADLINE_SERIES))

Named = tuple[Key, ObservationPatch]
Curve = tuple[str, str, str]
"""City, series, source."""
Seen = tuple[sqlite3.Connection, int, int]
"""Connection, data version, head."""
Held = dict[Slot, tuple[bytes, int]]
"""The content hash and revision in the rows of readings."""


class View(NamedTuple):
    """The file's state for one group."""

    head: int
    recent: int
    """Readings not yet moved."""
    known: Known
    held: Held
    """Rows that may be overwritten."""


class CityStates:
    """A cache of the file's state, as one connection sees it at one head."""

    def __init__(self) -> None:
        self._seen: Seen | None = None
        self._writing: Seen | None = None
        self._previous: dict[str, int] = {}
        self._newest: dict[Curve, int] = {}
        self._headline: dict[str, int] = {}

    def view(self, connection: sqlite3.Connection, patches: Sequence[Named]) -> View:
        """The state that these patches touch, and the rows they may overwrite."""
        head, recent = connection.execute(Q.head).fetchone()
        self._check(connection, head)
        self._load(connection, {patch.city for _, patch in patches} - self._previous.keys())
        meeting = [each for each in patches if self._may_meet_a_row(each)]
        if meeting:
            settle(connection)
            recent = 0
        held = _held(connection, meeting)
        keys: dict[Key, tuple[int, int]] = {
            (*slot, content): (revision, 0) for slot, (content, revision) in held.items()
        }
        for slot in slots(key for key, _ in (*meeting, *filter(_has_no_row, patches))):
            for content, revision, accepted_ms in connection.execute(Q.keys, slot):
                keys[*slot, content] = (revision, accepted_ms)
        return View(head, recent, Known(keys, self._previous, self._headline), held)

    def _check(self, connection: sqlite3.Connection, head: int) -> None:
        """Another's commit changes the version; our rollback leaves a head below the cached one."""
        version: int = connection.execute(Q.data_version).fetchone()[0]
        crowded = len(self._previous) > CITIES_MAX or len(self._newest) > CURVES_MAX
        if crowded or self._seen is None or self._seen[0] is not connection or self._seen[1:] != (version, head):
            self._previous, self._newest, self._headline = {}, {}, {}
        self._seen = (connection, version, head)

    def _load(self, connection: sqlite3.Connection, cities: Iterable[str]) -> None:
        wanted = orjson.dumps(sorted(cities)).decode()
        if wanted == "[]":
            return
        self._previous.update(connection.execute(Q.previous, (wanted,)).fetchall())
        for city, series, source, at in connection.execute(Q.newest, (wanted,)):
            self._note(city, series, source, at)

    def _note(self, city: str, series: str, source: str, at: int) -> None:
        self._newest[city, series, source] = max(at, self._newest.get((city, series, source), 0))
        if series in HEADLINE:
            self._headline[city] = max(at, self._headline.get(city, 0))

    def _may_meet_a_row(self, named: Named) -> bool:
        (city, source, series, at, _), patch = named
        newest = self._newest.get((city, series, source), 0)
        return patch.payload["temp"] is not None and (at or patch.ts_ms) <= newest

    def note(self, group: Group) -> bool:
        """Enter readings about to be written; returns whether each is newer than its whole curve."""
        self._writing, self._seen = self._seen, None  # if the write fails, the cache is invalid
        rising = True
        for city, at, series, source in group.readings:
            rising = rising and at > self._newest.get((city, series, source), 0)
            self._note(city, series, source, at)
        for event, patch in group.events:
            self._previous[patch.city] = event.revision
        return rising

    def wrote(self, group: Group) -> None:
        """The group is written; the transaction is about to commit."""
        assert self._writing is not None
        self._seen = (*self._writing[:2], group.events[-1][0].revision)


def _has_no_row(named: Named) -> bool:
    """Whether its key is in the separate table: no observation time, or only readings of runways."""
    return named[1].obs_time is None or named[1].payload["temp"] is None


def _held(connection: sqlite3.Connection, patches: Sequence[Named]) -> Held:
    held: Held = {}
    for (city, source, series, at, _), patch in patches:
        slot = (city, source, series, at or patch.ts_ms)
        found = connection.execute(Q.held, slot).fetchone()
        if found is not None:
            held[slot] = found
    return held
