"""Appends a group of patches to SQLite with one statement for each table, inside the caller's transaction.

Nearly all readings are newer than their curves, and are appended to a cheap table; a group with any other reading is
written to its place in history.

Revisions are drawn from AUTOINCREMENT's own counter under the write lock, so they rise in commit order, are never
given out twice and never fall, whatever was pruned.

Repeats are recognised by a content hash in the reading's own row. Keys without such a row are in a table of their
own: readings without a time, contents that a correction replaced, patches with runways alone.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from functools import lru_cache

from planetwire.database.sql import queries_beside
from planetwire.facts.observations.group import Group, grouped, keyed, newest
from planetwire.facts.observations.wire import SCHEMA_TYPE, SCHEMA_VERSION, obs_time_text, stamp, time_of
from planetwire.facts.sqlite.known_sqlite import CityStates, Held, View
from planetwire.facts.sqlite.recent_sqlite import add, settle
from planetwire.facts.sqlite.rows_sqlite import insert
from planetwire.model import Appended, LogEvent, ObservationPatch

Q = queries_beside(__file__)

NO_CONTENT = (0, b"")  # no revision is 0


class Appender:
    """For one writer of a file; other processes may write it too."""

    def __init__(self) -> None:
        self._states = CityStates()

    def append(self, connection: sqlite3.Connection, epoch: str, patches: Sequence[ObservationPatch]) -> list[Appended]:
        """One `Appended` per patch, in order."""
        named = keyed(patches)
        view = self._states.view(connection, named)
        now_ms = max(patch.ts_ms for patch in patches)
        group = grouped(named, view.known, view.head, epoch, now_ms)
        if group.events:
            _write(connection, group, view, now_ms, rising=self._states.note(group))
            self._states.wrote(group)
        return group.appended


def _write(connection: sqlite3.Connection, group: Group, view: View, now_ms: int, *, rising: bool) -> None:
    insert(connection, Q.add_event, [_event(event, patch) for event, patch in group.events])
    if group.forgotten:
        connection.executemany(Q.forget, group.forgotten)
    rows, kept = _rows(group)
    if view.held or kept < len(group.keys):
        connection.executemany(Q.add_key, _separate_keys(group, view.held, now_ms))
    if rising:
        add(connection, view.recent, rows)
    else:
        settle(connection)
        connection.executemany(Q.put_reading, [(*row[:7], row[9]) for row in rows])
        connection.executemany(Q.put_latest, newest(group.readings.values()))


def _rows(group: Group) -> tuple[list[tuple[object, ...]], int]:
    """Each reading with its content hash or None, and how many have one: those that are a patch's own, with a time."""
    contents = {(key[0], key[3], key[2], key[1]): (revision, key[4]) for key, revision in group.keys.items()}
    rows: list[tuple[object, ...]] = []
    kept = 0
    for place, reading in group.readings.items():
        revision, content = contents.get(place, NO_CONTENT)
        if revision == reading.revision:
            rows.append((*reading, content))
            kept += 1
        else:
            rows.append((*reading, None))
    return rows, kept


def _separate_keys(group: Group, held: Held, now_ms: int) -> Iterator[tuple[object, ...]]:
    """The keys that no reading's row holds, and those of rows that are overwritten."""
    for slot, (content, revision) in held.items():
        city, source, series, at = slot
        if (city, at, series, source) in group.readings:
            yield (*slot, content, revision, now_ms)
    for key, revision in group.keys.items():
        reading = group.readings.get((key[0], key[3], key[2], key[1]))
        if reading is None or reading.revision != revision:
            yield (*key, revision, now_ms)


def _event(event: LogEvent, patch: ObservationPatch) -> tuple[object, ...]:
    return (
        event.revision, SCHEMA_TYPE, SCHEMA_VERSION, patch.city, patch.source, obs_time_text(patch),
        event.body, _created_at(patch.ts_ms), event.prev_revision,
    )  # fmt: skip


@lru_cache(maxsize=16)
def _created_at(ts_ms: int) -> str:
    """Cached: readings of one group share a time."""
    return stamp(time_of(ts_ms))
