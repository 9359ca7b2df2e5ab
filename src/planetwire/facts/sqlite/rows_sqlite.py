"""Inserts several rows per statement: SQLite starts and ends it once, and the GIL is released once."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain

ROWS_MAX = 32  # per statement; fewer are split into powers of two, so that few statements are prepared


def insert(connection: sqlite3.Connection, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
    """`statement` ends with the VALUES of one row. Use `insert or fail`: a statement journal would copy every page."""
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
