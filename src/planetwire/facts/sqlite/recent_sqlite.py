"""Readings newer than their whole curve, appended in commit order and later moved to history, ordered by curve.

Invariant: of each curve, all readings here are newer than those in `observation_history`, and rise by id.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from planetwire.database.sql import queries_beside
from planetwire.facts.sqlite.rows_sqlite import insert

Q = queries_beside(__file__)

MOVE_AT = 500  # readings: a move then takes a millisecond or two, and reading a curve scans few rows here


def add(connection: sqlite3.Connection, size: int, rows: Sequence[tuple[object, ...]]) -> None:
    """Append readings with their content hashes to the `size` present ones; from MOVE_AT on, move all to history."""
    insert(connection, Q.add, rows)
    if size + len(rows) >= MOVE_AT:
        _move(connection)


def settle(connection: sqlite3.Connection) -> None:
    """Move all to history: afterwards it and the newest readings are complete."""
    if connection.execute(Q.size).fetchone()[0]:
        _move(connection)


def _move(connection: sqlite3.Connection) -> None:
    connection.execute(Q.move_history)
    connection.execute(Q.move_latest)
    connection.execute(Q.clear)
