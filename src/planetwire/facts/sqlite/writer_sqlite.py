"""One thread that writes to a SQLite file with group commit, so that waiting units share a flush to disk.

A unit of work is all or nothing; units of one commit do not depend on each other. Results are delivered on the event
loop in commit order, first to the listener and then to the waiters.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, TypeVar

from planetwire.database.pool_sqlite import connect, damage_of, of_the_file, reserve_journal
from planetwire.errors import BackendError, LogWriteFailed, PlanetwireError, SetupError
from planetwire.facts.sqlite.checkpoint_sqlite import FALLBACK_PAGES, Checkpoints
from planetwire.log import get_logger
from planetwire.private import close_to_others, make_file, make_folders
from planetwire.runtime.failpoint import failpoint

log = get_logger()
R = TypeVar("R")
Work = Callable[[sqlite3.Connection], Any]
Append = Callable[[sqlite3.Connection, Sequence[Any]], Sequence[Any]]  # one result per item

GROUP_MAX = 200  # weight per commit; a heavier unit is committed alone
WAITING_MAX = 2_000  # units not yet committed; more are refused
WRITE_TIMEOUT_S = 30.0
CLOSE_TIMEOUT_S = 30.0


@dataclass(slots=True)
class _Unit:
    done: asyncio.Future[Any]
    since_s: float
    work: Work | None = None
    items: Sequence[Any] = ()
    result: Any = None
    error: BaseException | None = None


class Writer:
    """Owns the only writing connection of a file. `on_committed` gets the results of each commit, on the loop."""

    def __init__(
        self,
        path: Path,
        append: Append,
        *,
        busy_timeout_s: float,
        on_committed: Callable[[Sequence[Any]], None],
    ) -> None:
        """`append` gets the items of all units of a group."""
        self._path = path
        self._append = append
        self._busy_timeout_s = busy_timeout_s
        self._on_committed = on_committed
        self._queue: SimpleQueue[_Unit | None] = SimpleQueue()
        self._waiting: deque[_Unit] = deque()  # oldest first: results come in this order
        self._watch: asyncio.TimerHandle | None = None
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="observation-writer", daemon=True)
        self._connection: sqlite3.Connection | None = None
        self._checkpoints = Checkpoints(path)
        self.trouble: str | None = None  # why the last write failed; None after one that succeeded
        self.damage: str | None = None  # never reset: a damaged file does not repair itself
        self.wrote_at_s = monotonic()

    async def start(self, prepare: Callable[[sqlite3.Connection], R]) -> R:
        """Open the file, run `prepare` on it, then accept units. Raises SetupError when the file cannot be used."""
        self._loop = asyncio.get_running_loop()
        try:
            result = await asyncio.to_thread(self._open, prepare)
        except (sqlite3.Error, OSError) as error:
            raise SetupError(f"the observation store {self._path} cannot be opened: {error}") from error
        self._thread.start()
        self._checkpoints.start()
        return result

    def _open(self, prepare: Callable[[sqlite3.Connection], R]) -> R:
        make_folders(self._path.parent)
        make_file(self._path)  # SQLite gives its side files the same permissions
        for beside in ("-wal", "-shm"):
            close_to_others(self._path.with_name(self._path.name + beside))
        connection = self._connect()
        try:
            result = prepare(connection)
        except BaseException:
            connection.close()
            raise
        self._reserve(connection)
        self._connection = connection
        return result

    def _reserve(self, connection: sqlite3.Connection) -> None:
        """A file that cannot grow now, as on a full disk, can still be read."""
        try:
            reserve_journal(self._path, connection, FALLBACK_PAGES)
        except (sqlite3.Error, OSError) as error:
            log.warning("facts.observation.not_reserved", error=repr(error))

    def still_unsure(self, for_s: float) -> bool:
        """Whether nothing was written for so long, or the last write failed: only another write can tell."""
        return self.trouble is not None or monotonic() - self.wrote_at_s >= for_s

    def run(self, work: Callable[[sqlite3.Connection], R]) -> Awaitable[R]:
        """What `work` returned, once it is on disk. Cancelling the wait does not undo the work.

        Raises BackendError `overloaded` or after `aclose`; the wait raises LogWriteFailed when SQLite refused
        (nothing stored, or unknown after 30 s).
        """
        return self._enqueue(work, ())

    def append(self, items: Sequence[Any]) -> Awaitable[Sequence[Any]]:
        """What the store's `append` returned for these items; otherwise as `run`."""
        return self._enqueue(None, items)

    def _enqueue(self, work: Work | None, items: Sequence[Any]) -> asyncio.Future[Any]:
        if self._closed or self._loop is None:
            raise BackendError("the observation store is closed")
        if len(self._waiting) >= WAITING_MAX:
            raise BackendError("too many writes are waiting", code="overloaded")
        unit = _Unit(self._loop.create_future(), self._loop.time(), work, items)
        self._waiting.append(unit)
        self._queue.put(unit)
        if self._watch is None:
            self._watch = self._loop.call_later(WRITE_TIMEOUT_S, self._give_up)
        return unit.done

    def _give_up(self) -> None:
        """One timer for all, since nearly all are done in time: it checks the oldest and is reset for the next."""
        assert self._loop is not None
        self._watch = None
        late_s = self._loop.time() - WRITE_TIMEOUT_S
        for unit in self._waiting:
            if unit.since_s > late_s:
                self._watch = self._loop.call_at(unit.since_s + WRITE_TIMEOUT_S, self._give_up)
                return
            if not unit.done.done():
                unit.done.set_exception(LogWriteFailed(f"the disk did not answer within {WRITE_TIMEOUT_S:.0f} s"))

    async def aclose(self) -> None:
        """Commit what was accepted, then close. Idempotent."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
        if self._thread.ident is not None:
            await asyncio.to_thread(self._thread.join, CLOSE_TIMEOUT_S)
            await asyncio.sleep(0)  # the last results were delivered before the thread ended
        if self._watch is not None:
            self._watch.cancel()

    # --- the thread

    def _run(self) -> None:
        going = True
        while going:
            units, going = self._gather()
            if units:
                self._commit(units)
                self._hand_over(units)
                self._checkpoints.committed(sum(len(unit.items) or 1 for unit in units))
        self._checkpoints.close()
        if self._connection is not None:
            self._connection.close()

    def _gather(self) -> tuple[list[_Unit], bool]:
        units: list[_Unit] = []
        weight = 0
        while weight < GROUP_MAX:
            try:
                unit = self._queue.get(block=not units)
            except Empty:
                break
            if unit is None:
                return units, False
            units.append(unit)
            weight += len(unit.items) or 1
        return units, True

    def _commit(self, units: list[_Unit]) -> None:
        try:
            connection = self._connected()
            connection.execute("begin immediate")
            self._apply(connection, units)
            failpoint("observations.commit.before")
            connection.execute("commit")
            failpoint("observations.commit.after")
            self.trouble, self.wrote_at_s = None, monotonic()
        except sqlite3.Error as error:
            self._abandon(units, error)

    def _apply(self, connection: sqlite3.Connection, units: list[_Unit]) -> None:
        """All together; if that fails, each by itself: an invalid unit fails alone, an error of the file fails all."""
        try:
            self._together(connection, units)
        except Exception as error:
            if of_the_file(error):
                raise
            connection.execute("rollback")
            connection.execute("begin immediate")
            for unit in units:
                self._alone(connection, unit)

    def _together(self, connection: sqlite3.Connection, units: list[_Unit]) -> None:
        items = [item for unit in units for item in unit.items]
        results = iter(self._append(connection, items) if items else ())
        for unit in units:
            unit.result = list(islice(results, len(unit.items))) if unit.work is None else unit.work(connection)

    def _alone(self, connection: sqlite3.Connection, unit: _Unit) -> None:
        connection.execute("savepoint unit")
        try:
            self._together(connection, [unit])
        except Exception as error:
            if of_the_file(error):
                raise
            unit.error = error if isinstance(error, PlanetwireError) else _refused(error)
            connection.execute("rollback to unit")
        connection.execute("release unit")

    def _abandon(self, units: list[_Unit], error: sqlite3.Error) -> None:
        log.error("facts.observation.write_failed", error=repr(error), units=len(units))
        self.trouble = f"the observation file takes no write: {error}"
        self.damage = self.damage or damage_of(error)
        for unit in units:
            unit.error = _refused(error)
        try:
            if self._connection is not None and self._connection.in_transaction:
                self._connection.execute("rollback")
        except sqlite3.Error:
            self._drop_connection()

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        connection = connect(self._path, busy_timeout_s=self._busy_timeout_s)
        connection.execute(f"pragma wal_autocheckpoint = {FALLBACK_PAGES}")
        connection.execute("pragma secure_delete = off")  # else every page that pruning frees is written again
        return connection

    def _drop_connection(self) -> None:
        """The next commit opens a new one; SQLite rolls an unfinished transaction back by itself."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _hand_over(self, units: list[_Unit]) -> None:
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(self._deliver, units)
        except RuntimeError:  # the loop is closed; the committed events are in the file
            log.warning("facts.observation.unheard", units=len(units))

    # --- the loop again

    def _deliver(self, units: list[_Unit]) -> None:
        for _ in units:
            self._waiting.popleft()
        try:
            self._on_committed([unit.result for unit in units if unit.error is None])
        except Exception:
            log.exception("facts.observation.listener_failed")
        for unit in units:
            if unit.done.done():
                continue
            if unit.error is None:
                unit.done.set_result(unit.result)
            else:
                unit.done.set_exception(unit.error)


def _refused(error: Exception) -> LogWriteFailed:
    return LogWriteFailed(f"the observation log did not take the write: {error}")
