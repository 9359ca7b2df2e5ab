"""Readings newer than their whole curve, appended in commit order, and their move to where curves lie together.

Invariant: of each curve, whatever is here is newer than whatever is in `observation_history`, and rises by id.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from planetwire.database.sql import queries_beside
from planetwire.facts.sqlite.rows_sqlite import insert

Q = queries_beside(__file__)

MOVE_AT = 500  # readings: a move is then a millisecond or two, and a curve is read with few rows beside it


def add(connection: sqlite3.Connection, size: int, rows: Sequence[tuple[object, ...]]) -> None:
    """Append readings with their content's hash to so many; when they are many, move all."""
    insert(connection, Q.add, rows)
    if size + len(rows) >= MOVE_AT:
        _move(connection)


def settle(connection: sqlite3.Connection) -> None:
    """From here on history and newest readings hold everything."""
    if connection.execute(Q.size).fetchone()[0]:
        _move(connection)


def _move(connection: sqlite3.Connection) -> None:
    connection.execute(Q.move_history)
    connection.execute(Q.move_latest)
    connection.execute(Q.clear)
