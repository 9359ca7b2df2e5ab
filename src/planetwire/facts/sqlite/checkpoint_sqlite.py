"""Checkpoints the write-ahead log into the SQLite file, in a thread of its own.

Why: SQLite does it within a commit, every thousand pages: one commit in a hundred then waited for several flushes.
"""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

from planetwire.database.pool_sqlite import connect
from planetwire.log import get_logger

log = get_logger()

EVERY_PAGES = 2_500  # the log's file has this size anyway, and a page written twice is moved once; estimated from:
PAGES_COMMIT, PAGES_ROW = 7, 1  # pages written by every commit, and added by each reading
FALLBACK_PAGES = 4_000  # beyond it the writer checkpoints: only between two writes can the log restart
CLOSE_TIMEOUT_S = 10.0


class Checkpoints:
    """Call `committed` after each commit; it never waits."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pages = 0
        self._due = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="observation-checkpoint", daemon=True)

    def start(self) -> None:
        """Start the thread; the file exists."""
        self._thread.start()

    def committed(self, rows: int) -> None:
        """Count a commit of so many rows."""
        self._pages += PAGES_COMMIT + PAGES_ROW * rows
        if self._pages >= EVERY_PAGES:
            self._pages = 0
            self._due.set()

    def close(self) -> None:
        """Wait for a running checkpoint; the rest is moved when the last connection closes."""
        self._closed = True
        self._due.set()
        if self._thread.ident is not None:
            self._thread.join(CLOSE_TIMEOUT_S)

    def _run(self) -> None:
        connection: sqlite3.Connection | None = None
        while self._due.wait() and not self._closed:
            self._due.clear()
            try:
                connection = connection or connect(self._path, busy_timeout_s=0)
                connection.execute("pragma wal_checkpoint(passive)").fetchone()
            except sqlite3.Error as error:  # such as a full disk, which the writer reports
                log.debug("facts.observation.checkpoint_failed", error=repr(error))
        if connection is not None:
            connection.close()
