"""The observation store on SQLite: history and patch event of a reading are one transaction."""

from __future__ import annotations

import asyncio
import functools
import secrets
import sqlite3
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from operator import itemgetter
from pathlib import Path
from typing import Any

import orjson

from planetwire.database.pool_sqlite import BUSY_TIMEOUT_S, ReadPool
from planetwire.database.sql import queries_beside
from planetwire.errors import BackendError
from planetwire.facts.observations.wire import ms_of, stamp, time_of
from planetwire.facts.sqlite.append_sqlite import Appender
from planetwire.facts.sqlite.recent_sqlite import settle
from planetwire.facts.sqlite.writer_sqlite import Writer
from planetwire.log import get_logger
from planetwire.migrating.migrate import migrate_sqlite
from planetwire.model import Appended, Json, LogEvent, ObservationPatch
from planetwire.observing import HEADLINE_SERIES
from planetwire.ports import Clock

log = get_logger()
Q = queries_beside(__file__)

HEADLINE = orjson.dumps(HEADLINE_SERIES).decode()

EPOCH_ALPHABET = string.ascii_lowercase + string.digits
EPOCH_CHARS = 12
HISTORY_DAYS = 14
KEY_HOURS = 49  # a reading is refused when 48 h old, so its key is useless later
PRUNE_EVERY_S = 60.0
PROBE_EVERY_S = 10.0
APPLICATION_ID = 0x504C5754  # “PLWT”: marks the file as ours
PRUNE_EVERY_WRITES = 500
PRUNE_CHUNK = 2_000  # events and keys deleted by one transaction: four times what was written in between
PRUNE_READINGS_CHUNK = 20_000  # readings: a patch with all its runways writes seventeen
PRUNE_CHUNKS_MAX = 500  # of one explicit run, and of the run at the start


class SqliteObservationStore:
    """Port ObservationStore. `on_committed` gets new events on the loop, in revision order, after their commit."""

    epoch: str

    def __init__(
        self,
        path: Path,
        clock: Clock,
        *,
        retention_s: float = 6 * 3600.0,
        on_committed: Callable[[Sequence[LogEvent]], None] = lambda events: None,
        busy_timeout_s: float = BUSY_TIMEOUT_S,
    ) -> None:
        self.on_committed = on_committed
        self._clock = clock
        self._retention = self._usual = timedelta(seconds=retention_s)
        self._history = timedelta(days=HISTORY_DAYS)
        self._appender = Appender()
        self._writer = Writer(path, self._append, busy_timeout_s=busy_timeout_s, on_committed=self._committed)
        self._reads = ReadPool(path)
        self._writes = 0
        self._pruned_at_s = clock.monotonic()
        self._pruning: asyncio.Task[int] | None = None
        self._probing: asyncio.Future[None] | None = None

    async def start(self) -> None:
        """Open or create the file, bring its schema up to date, prune. Raises SetupError, BackendError."""
        self.epoch = await self._writer.start(_prepare)
        await self.prune()

    # --- writing

    async def append(self, patches: Sequence[ObservationPatch]) -> Sequence[Appended]:
        """See the port. Patches of one call are one unit; calls that wait together share one flush to disk."""
        if not patches:
            return []
        appended: Sequence[Appended] = await self._writer.append(patches)
        self._writes += len(patches)
        self._prune_when_due()
        return appended

    def _append(self, connection: sqlite3.Connection, patches: Sequence[ObservationPatch]) -> Sequence[Appended]:
        return self._appender.append(connection, self.epoch, patches)

    def _committed(self, results: Sequence[Any]) -> None:
        events = [a.event for result in results if isinstance(result, list) for a in result if a.event is not None]
        if events:
            self.on_committed(events)

    def _prune_when_due(self) -> None:
        now_s = self._clock.monotonic()
        due = self._writes >= PRUNE_EVERY_WRITES or now_s - self._pruned_at_s >= PRUNE_EVERY_S
        if due and (self._pruning is None or self._pruning.done()):
            self._noted_prune(now_s)
            self._pruning = asyncio.create_task(self._prune_once())
            self._pruning.add_done_callback(_log_failure)

    async def _prune_once(self) -> int:
        return await self._writer.run(self._prune_unit())

    def keep(self, events_s: float | None = None, history_days: float | None = None) -> None:
        """Set how long events and readings are kept from now on; None: the default."""
        self._retention = self._usual if events_s is None else timedelta(seconds=events_s)
        self._history = timedelta(days=HISTORY_DAYS if history_days is None else history_days)

    def _noted_prune(self, now_s: float) -> None:
        self._writes, self._pruned_at_s = 0, now_s

    def _prune_unit(self) -> Callable[[sqlite3.Connection], int]:
        return functools.partial(_prune_chunk, now=self._clock.now(), retention=self._retention, history=self._history)

    async def prune(self) -> int:
        """See the port; in chunks, so that appends come in between."""
        self._noted_prune(self._clock.monotonic())
        total = 0
        for _ in range(PRUNE_CHUNKS_MAX):
            pruned = await self._prune_once()
            total += pruned
            if pruned < PRUNE_CHUNK:
                break
        return total

    async def trouble(self) -> str | None:
        """Why the file cannot be used; None if it can. A failed write is reported until one succeeds; without other
        writes a mark is written to find out, one at a time and at most every 10 s.
        """
        if self._damage is None and self._writer.still_unsure(PROBE_EVERY_S):
            if self._probing is None or self._probing.done():
                self._probing = asyncio.ensure_future(self._probe())
            await asyncio.shield(self._probing)
        return self._damage or self._writer.trouble

    @property
    def _damage(self) -> str | None:
        return self._writer.damage or self._reads.damage

    async def _probe(self) -> None:
        with suppress(BackendError):  # the writer keeps the error
            await self._writer.run(_mark)

    async def aclose(self) -> None:
        """See the port."""
        if self._pruning is not None:
            await asyncio.wait([self._pruning])
        if self._probing is not None:
            await asyncio.wait([self._probing])
        await self._writer.aclose()
        await self._reads.aclose()

    # --- reading

    async def history(self, city: str, since: datetime) -> Sequence[tuple[str, str, datetime, float]]:
        """See the port."""
        rows = await self._reads.run(_history, city, ms_of(since))
        return [(series, source, time_of(obs_ms), temp_c) for series, source, obs_ms, temp_c in rows]

    async def latest(self, cities: Iterable[str] | None = None) -> Mapping[str, Sequence[Json]]:
        """See the port."""
        found: dict[str, list[Json]] = {}
        for row in await self._reads.run(_latest, None if cities is None else list(cities)):
            found.setdefault(row[0], []).append(_reading(row))
        return found

    async def highs(self, since: Mapping[str, datetime]) -> Mapping[str, tuple[float, datetime]]:
        """See the port."""
        return await self._reads.run(_highs, since)


# --- in the writer's thread, inside its transaction --------------------------------------------------


def _prepare(connection: sqlite3.Connection) -> str:
    migrate_sqlite(connection)
    connection.execute(Q.draw_epoch, ("".join(secrets.choice(EPOCH_ALPHABET) for _ in range(EPOCH_CHARS)),))
    epoch: str = connection.execute(Q.epoch).fetchone()[0]
    return epoch


def _mark(connection: sqlite3.Connection) -> None:
    """Writes one page, the same bytes each time; prepared statements stay valid."""
    connection.execute(f"pragma application_id = {APPLICATION_ID}")


def _prune_chunk(connection: sqlite3.Connection, *, now: datetime, retention: timedelta, history: timedelta) -> int:
    """Returns the number of events deleted; each city's pruning mark moves in the same transaction."""
    settle(connection)
    events = (stamp(now - retention), PRUNE_CHUNK)
    connection.execute(Q.mark_pruned, events)
    pruned = connection.execute(Q.prune_events, events).rowcount
    connection.execute(Q.prune_history, (ms_of(now - history), PRUNE_READINGS_CHUNK))
    connection.execute(Q.prune_keys, (ms_of(now - timedelta(hours=KEY_HOURS)), PRUNE_CHUNK))
    if pruned:
        log.debug("facts.observation.pruned", events=pruned)
    return pruned


def _log_failure(task: asyncio.Task[int]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.warning("facts.observation.prune_failed", error=repr(task.exception()))


# --- in a reading thread -----------------------------------------------------------------------------


def _history(connection: sqlite3.Connection, city: str, since_ms: int) -> list[tuple[str, str, int, float]]:
    return connection.execute(Q.history, {"city": city, "since": since_ms}).fetchall()


def _latest(connection: sqlite3.Connection, cities: list[str] | None) -> list[tuple[Any, ...]]:
    """By city, series, source; a recent reading replaces the earlier newest one."""
    if cities is None:
        rows = connection.execute(Q.latest_all)
    else:
        rows = connection.execute(Q.latest_of, (orjson.dumps(cities).decode(),))
    newest = {row[:3]: row for row in rows}
    wanted = None if cities is None else set(cities)
    newest.update((row[:3], row) for row in connection.execute(Q.recent) if wanted is None or row[0] in wanted)
    return sorted(newest.values(), key=itemgetter(0, 1, 2))


def _highs(connection: sqlite3.Connection, since: Mapping[str, datetime]) -> dict[str, tuple[float, datetime]]:
    starts = {city: ms_of(start) for city, start in since.items()}
    found = [
        (city, *row) for city, start in starts.items() for row in connection.execute(Q.high, (city, start, HEADLINE))
    ]
    recent = connection.execute(Q.recent_highs, (HEADLINE,))
    found += [row for row in recent if row[0] in starts and row[2] >= starts[row[0]]]
    found.sort(key=lambda row: (row[1], -row[2]))  # of equal highs the earliest comes last, and wins
    return {city: (high_c, time_of(at)) for city, high_c, at in found}


def _reading(row: tuple[Any, ...]) -> Json:
    return {
        "series_key": row[1],
        "source": row[2],
        "obs_time": time_of(row[3]),
        "temp": row[4],
        "max_so_far": row[5],
        "station_code": row[6],
        "station_label": row[7],
        "revision": row[8],
    }
