"""Appends a group of patches to SQLite with one statement for each table, inside the caller's transaction.

Revisions are drawn from AUTOINCREMENT's own counter under the write lock, so they rise in commit order, are never
given out twice and never fall, whatever was pruned.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import lru_cache

import orjson

from planetwire.facts.observation_group import Group, Known, grouped, keyed, slots
from planetwire.facts.observation_wire import SCHEMA_TYPE, SCHEMA_VERSION, Key, obs_time_text, stamp, time_of
from planetwire.model import Appended, LogEvent, ObservationPatch
from planetwire.observing import HEADLINE_SERIES
from planetwire.sql import queries_beside

Q = queries_beside(__file__)
HEADLINE = orjson.dumps(HEADLINE_SERIES).decode()


def append_group(connection: sqlite3.Connection, epoch: str, patches: Sequence[ObservationPatch]) -> list[Appended]:
    """One `Appended` a patch, in order."""
    head: int = connection.execute(Q.head).fetchone()[0]
    named = keyed(patches)
    group = grouped(named, _known(connection, named), head, epoch, max(patch.ts_ms for patch in patches))
    if group.events:
        _write(connection, group)
    return group.appended


def _known(connection: sqlite3.Connection, patches: Sequence[tuple[Key, ObservationPatch]]) -> Known:
    cities = sorted({patch.city for _, patch in patches})
    rows = connection.execute(
        Q.known_cities, {"cities": orjson.dumps(cities).decode(), "headline": HEADLINE}
    ).fetchall()
    keys = {}
    for slot in slots(key for key, _ in patches):
        for content, revision, accepted_ms in connection.execute(Q.known_keys, slot):
            keys[*slot, content] = (revision, accepted_ms)
    return Known(keys, {row[0]: row[1] for row in rows}, {row[0]: row[2] for row in rows})


def _write(connection: sqlite3.Connection, group: Group) -> None:
    accepted_ms = {event.revision: patch.ts_ms for event, patch in group.events}
    connection.executemany(Q.add_event, map(_event, group.events))
    if group.forgotten:
        connection.executemany(Q.forget, group.forgotten)
    keys = ((*key, revision, accepted_ms[revision]) for key, revision in group.keys.items())
    connection.executemany(Q.add_key, keys)
    connection.executemany(Q.put_reading, [each[:7] for each in group.readings.values()])
    connection.executemany(Q.put_latest, group.latest.values())


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
