"""Appends a group of patches to SQLite with one statement for each table, inside the caller's transaction.

Readings that rise above their curves, nearly all, go where appending is cheap; a group with any other is written to its
place in history.

Revisions are drawn from AUTOINCREMENT's own counter under the write lock, so they rise in commit order, are never
given out twice and never fall, whatever was pruned.

What was accepted is known by a content hash in the reading's own row. Keys without such a row lie in a table of their
own: of readings without a time, of contents that a correction replaced, of patches with runways alone.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from functools import lru_cache

from planetwire.facts.known_sqlite import CityStates, Held
from planetwire.facts.observation_group import Group, grouped, keyed
from planetwire.facts.observation_wire import SCHEMA_TYPE, SCHEMA_VERSION, Key, obs_time_text, stamp, time_of
from planetwire.facts.recent_sqlite import add, settle
from planetwire.model import Appended, LogEvent, ObservationPatch
from planetwire.sql import queries_beside

Q = queries_beside(__file__)

Place = tuple[str, int, str, str]
"""City, time, series, source: the key of a reading's row."""


class Appender:
    """For one writer of a file; other processes may write it too."""

    def __init__(self) -> None:
        self._states = CityStates()

    def append(self, connection: sqlite3.Connection, epoch: str, patches: Sequence[ObservationPatch]) -> list[Appended]:
        """One `Appended` a patch, in order."""
        named = keyed(patches)
        head, known, held = self._states.look(connection, named)
        now_ms = max(patch.ts_ms for patch in patches)
        group = grouped(named, known, head, epoch, now_ms)
        if group.events:
            _write(connection, group, held, now_ms, rising=self._states.note(group))
            self._states.wrote(group)
        return group.appended


def _write(connection: sqlite3.Connection, group: Group, held: Held, now_ms: int, *, rising: bool) -> None:
    connection.executemany(Q.add_event, map(_event, group.events))
    if group.forgotten:
        connection.executemany(Q.forget, group.forgotten)
    kept = _kept(group)
    hashes = {place: key[4] for key, place in kept.items()}
    if held or len(kept) < len(group.keys):
        connection.executemany(Q.add_key, _apart(group, held, kept, now_ms))
    rows = ((*reading, hashes.get(place)) for place, reading in group.readings.items())
    if rising:
        add(connection, rows)
    else:
        settle(connection)
        connection.executemany(Q.put_reading, [(*row[:7], row[9]) for row in rows])
        connection.executemany(Q.put_latest, group.latest.values())


def _kept(group: Group) -> dict[Key, Place]:
    """The keys that their reading's row holds."""
    kept: dict[Key, Place] = {}
    for key, revision in group.keys.items():
        place = (key[0], key[3], key[2], key[1])
        reading = group.readings.get(place)
        if reading is not None and reading.revision == revision:
            kept[key] = place
    return kept


def _apart(group: Group, held: Held, kept: dict[Key, Place], now_ms: int) -> Iterator[tuple[object, ...]]:
    """The other keys, and those that were in rows that are written over."""
    for slot, (content, revision) in held.items():
        city, source, series, at = slot
        if (city, at, series, source) in group.readings:
            yield (*slot, content, revision, now_ms)
    for key, revision in group.keys.items():
        if key not in kept:
            yield (*key, revision, now_ms)


def _event(pair: tuple[LogEvent, ObservationPatch]) -> tuple[object, ...]:
    event, patch = pair
    return (
        event.revision, SCHEMA_TYPE, SCHEMA_VERSION, patch.city, patch.source, obs_time_text(patch),
        event.body, _created_at(patch.ts_ms), event.prev_revision,
    )  # fmt: skip


@lru_cache(maxsize=16)
def _created_at(ts_ms: int) -> str:
    """Readings that came together have one time."""
    return stamp(time_of(ts_ms))
