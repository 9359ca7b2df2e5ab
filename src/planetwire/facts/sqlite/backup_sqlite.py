"""Copies the observation file while it is in use, and resets the log of a restored file."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from planetwire.database.pool_sqlite import connect
from planetwire.database.sql import queries_beside
from planetwire.errors import SetupError

Q = queries_beside(__file__)

PAGES = 2_000  # copied at a time; the writer continues in between
PAUSE_S = 0.01


def copy_file(source: Path, target: Path) -> None:
    """Everything committed before the last page was read, in one file. Raises SetupError."""
    try:
        with closing(connect(source, read_only=True)) as reading, closing(sqlite3.connect(target)) as writing:
            reading.backup(writing, pages=PAGES, sleep=PAUSE_S)
            writing.execute("pragma journal_mode = delete")  # a single file, without a write-ahead log
            _check(writing, source)
    except sqlite3.Error as error:
        raise SetupError(f"the observation file {source} cannot be copied: {error}") from error


def begin_new_life(path: Path, epoch: str) -> None:
    """Sets a new epoch: cursors of the old file become invalid. Events are deleted; readings, keys and revisions stay.

    Otherwise a browser that had seen more than the backup holds would take new events for ones it already had.
    """
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            _check(connection, path)
            connection.execute("begin immediate")
            connection.execute(Q.mark_pruned)
            connection.execute(Q.drop_events)
            connection.execute(Q.set_epoch, (epoch,))
            connection.execute("commit")
    except sqlite3.Error as error:
        raise SetupError(f"the observation file {path} cannot be brought back: {error}") from error


def _check(connection: sqlite3.Connection, path: Path) -> None:
    found = connection.execute("pragma quick_check(1)").fetchone()[0]
    if found != "ok":
        raise SetupError(f"the observation file {path} is damaged: {found}")
