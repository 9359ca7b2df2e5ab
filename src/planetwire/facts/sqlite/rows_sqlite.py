"""Inserts of several rows by one statement: SQLite begins and ends it once, and Python's lock is let go of once."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain

ROWS_MAX = 32  # of one statement; fewer are a sum of powers of two, so that few statements are prepared


def insert(connection: sqlite3.Connection, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
    """`statement` ends with the VALUES of one row. `insert or fail`: an undo of its own would copy every page."""
    done, size = 0, ROWS_MAX
    while done < len(rows):
        while size > len(rows) - done:
            size //= 2
        connection.execute(_of(statement, size), tuple(chain.from_iterable(rows[done : done + size])))
        done += size


@lru_cache(maxsize=64)
def _of(statement: str, size: int) -> str:
    head, row = statement.rsplit("values", 1)
    return f"{head}values{','.join([row] * size)}"
