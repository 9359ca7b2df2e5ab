"""SQLite for asyncio: connections with our pragmas, and a few reading threads so that no query blocks the loop.

Only `facts/sqlite/observations_sqlite.py` writes; connections of readers refuse to write.
"""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic, sleep
from typing import Concatenate, ParamSpec, TypeVar

from planetwire.errors import BackendError

P = ParamSpec("P")
R = TypeVar("R")

READ_THREADS = 2
READ_TIMEOUT_S = 15.0  # waiting for a thread included; a read that takes longer is a fault
BUSY_TIMEOUT_S = 5.0  # how long a statement waits for another process's lock
WAL_RETRY_S = 0.02
DAMAGES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def damage_of(error: sqlite3.Error) -> str | None:
    """What is wrong with the file itself, if anything: retrying does not repair it."""
    code = getattr(error, "sqlite_errorcode", None)
    garbled = code is None and "decode to UTF-8" in str(error)
    return f"the observation file is damaged: {error}" if garbled or (code or 0) & 0xFF in DAMAGES else None


def of_the_file(error: BaseException) -> bool:
    """Whether the error is one of the file or the disk, not of the statement."""
    ours = isinstance(error, sqlite3.OperationalError | sqlite3.InternalError)
    return ours or type(error) is sqlite3.DatabaseError


def connect(path: Path, *, read_only: bool = False, busy_timeout_s: float = BUSY_TIMEOUT_S) -> sqlite3.Connection:
    """A connection in autocommit mode, usable from any one thread at a time. Raises sqlite3.Error."""
    mode = "rw" if read_only else "rwc"  # a reader of a WAL file must be able to open its -shm
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        isolation_level=None,
        timeout=busy_timeout_s,
        check_same_thread=False,
    )
    try:
        if read_only:
            connection.execute("pragma query_only = on")
        else:
            _journal_in_wal(connection, busy_timeout_s)
        connection.execute("pragma synchronous = full")  # an acknowledged revision survives a power cut
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _journal_in_wal(connection: sqlite3.Connection, busy_timeout_s: float) -> None:
    """If two processes open a new file at once, SQLite refuses one without calling its busy handler, since both hold a
    shared lock and would wait for ever. So the one that lost releases its lock and retries.
    """
    deadline_s = monotonic() + busy_timeout_s
    while True:
        try:
            connection.execute("pragma journal_mode = wal")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or monotonic() > deadline_s:
                raise
        sleep(random.uniform(0.5, 1) * WAL_RETRY_S)


def reserve_journal(path: Path, connection: sqlite3.Connection, pages: int) -> None:
    """Grow the write-ahead log to this size in advance, by pages that are never committed.

    Why: a commit that grows the file also waits for the file system's journal, and so for writes of other processes.
    Raises sqlite3.Error, OSError; the connection is as it was.
    """
    journal = path.with_name(f"{path.name}-wal")
    page_bytes: int = connection.execute("pragma page_size").fetchone()[0]
    cache: int = connection.execute("pragma cache_size").fetchone()[0]
    if journal.exists() and journal.stat().st_size >= pages * page_bytes:
        return
    connection.execute("pragma cache_size = 10")  # pages that do not fit are spilled to the log before any commit
    try:
        connection.execute("begin immediate")
        connection.execute("create table reserved (filler blob)")
        connection.execute("insert into reserved values (zeroblob(?))", (pages * page_bytes,))
    finally:
        if connection.in_transaction:
            connection.execute("rollback")
        connection.execute(f"pragma cache_size = {cache}")
    with journal.open("rb") as file:
        os.fsync(file.fileno())


class ReadPool:
    """Runs functions of (connection, …) in its threads, each with a connection of its own."""

    def __init__(self, path: Path, *, threads: int = READ_THREADS, timeout_s: float = READ_TIMEOUT_S) -> None:
        self._path = path
        self._timeout_s = timeout_s
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="sqlite-read")
        self._local = threading.local()
        self._opened: list[sqlite3.Connection] = []
        self._closed = False
        self.damage: str | None = None

    async def run(self, read: Callable[Concatenate[sqlite3.Connection, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run `read` in one transaction, so that all its statements see the same state, and return its result.

        Raises BackendError when SQLite fails, when the wait is too long, or after `aclose`.
        """
        if self._closed:
            raise BackendError("the observation store is closed")
        try:
            work = asyncio.get_running_loop().run_in_executor(self._executor, self._read, read, args, kwargs)
            return await asyncio.wait_for(work, self._timeout_s)
        except (sqlite3.Error, TimeoutError) as error:
            if isinstance(error, sqlite3.Error):
                self.damage = self.damage or damage_of(error)
            raise BackendError(f"reading the observation store: {error!r}") from error

    def _read(self, read: Callable[..., R], args: tuple[object, ...], kwargs: dict[str, object]) -> R:
        connection = self._connection()
        connection.execute("begin")
        try:
            return read(connection, *args, **kwargs)
        finally:
            connection.execute("rollback")

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = connect(self._path, read_only=True)
            self._opened.append(connection)
        return connection

    async def aclose(self) -> None:
        """Finish running reads, then close. Idempotent."""
        self._closed = True
        await asyncio.to_thread(self._executor.shutdown)
        while self._opened:
            self._opened.pop().close()
