"""The observation store on PostgreSQL: history and patch event of a reading are one transaction.

Any number of processes may append. Each locks the row of the log's head from drawing revisions to its commit, so
revisions rise in commit order and are never reused, whatever was pruned. Times are the database's.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

from planetwire.database.postgres import Connection, Pool, translated
from planetwire.database.sql import queries_beside
from planetwire.errors import BackendError, LogWriteFailed
from planetwire.facts.observations.group import Group, Known, grouped, keyed, newest, slots
from planetwire.facts.observations.wire import (
    SCHEMA_TYPE,
    SCHEMA_VERSION,
    Key,
    ms_of,
    obs_time_text,
    stamp,
    time_of,
)
from planetwire.facts.observations.writer_async import GroupWriter
from planetwire.log import get_logger
from planetwire.migrating.migrate import migrate_postgres
from planetwire.model import Appended, Json, LogEvent, ObservationPatch
from planetwire.observing import HEADLINE_SERIES
from planetwire.ports import Clock
from planetwire.runtime.failpoint import failpoint
from planetwire.settings import MigrationSettings

log = get_logger()
Q = queries_beside(__file__)

HISTORY_DAYS = 14
KEY_HOURS = 49  # a reading is refused when 48 h old, so its key is useless later
PRUNE_EVERY_S = 60.0
PRUNE_EVERY_WRITES = 500
PRUNE_CHUNK = 2_000  # events and keys deleted by one transaction: four times what was written in between
PRUNE_READINGS_CHUNK = 20_000  # readings: a patch with all its runways writes seventeen
PRUNE_CHUNKS_MAX = 500  # of one explicit run, and of the run at the start
HEADLINE = sorted(HEADLINE_SERIES)


class PostgresObservationStore:
    """Port ObservationStore. `on_committed` gets this process's own events, in revision order, after their commit;
    those of other processes are missing, so a fan-out has to follow the log.
    """

    epoch: str

    def __init__(
        self,
        pool: Pool,
        clock: Clock,
        *,
        retention_s: float = 6 * 3600.0,
        on_committed: Callable[[Sequence[LogEvent]], None] = lambda events: None,
        time: Callable[[datetime], datetime] = lambda at: at,
        migration: MigrationSettings | None = None,
    ) -> None:
        """`time` maps the database's time; only tests set it."""
        self.on_committed = on_committed
        self._pool = pool
        self._clock = clock
        self._retention = timedelta(seconds=retention_s)
        self._time = time
        self._migration = migration
        self._writer = GroupWriter[ObservationPatch, Appended](self._commit, self._committed)
        self._writes = 0
        self._pruned_at_s = clock.monotonic()
        self._pruning: asyncio.Task[int] | None = None

    async def start(self) -> None:
        """Bring the database's schema up to date, prune. Raises SetupError, BackendError."""
        async with translated(), self._pool.acquire() as connection:
            await migrate_postgres(connection, self._migration, watch=self._pool.acquire)
            self.epoch = await connection.fetchval(Q.epoch)
        await self.prune()

    # --- writing

    async def append(self, patches: Sequence[ObservationPatch]) -> Sequence[Appended]:
        """See the port. Patches of one call are one unit; calls that wait together share one commit."""
        if not patches:
            return []
        appended = await self._writer.run(patches)
        self._writes += len(patches)
        self._prune_when_due()
        return appended

    def _committed(self, appended: Sequence[Appended]) -> None:
        events = [each.event for each in appended if each.event is not None]
        if events:
            self.on_committed(events)

    async def _commit(self, patches: Sequence[ObservationPatch]) -> Sequence[Appended]:
        named = keyed(patches)
        try:
            async with translated(), self._pool.acquire() as connection, _locking_the_head(connection):
                group = await self._write(connection, named)
                failpoint("observations.commit.before")
        except BackendError as error:
            raise LogWriteFailed(f"the observation log did not take the write: {error.message}") from error
        failpoint("observations.commit.after")
        return group.appended

    async def _write(self, connection: Connection, named: Sequence[tuple[Key, ObservationPatch]]) -> Group:
        looked_for = _transposed(slots(key for key, _ in named), 4)
        found = await connection.fetchrow(Q.known, *looked_for, sorted({key[0] for key, _ in named}), HEADLINE)
        assert found is not None  # the first migration inserts the head row
        known = Known(
            keys={tuple(row)[:5]: (row[5], row[6]) for row in found["keys"]},
            previous={row[0]: row[1] for row in found["cities"]},
            newest_ms={row[0]: row[2] for row in found["cities"]},
        )
        now = self._time(found["now"])
        group = grouped(named, known, found["revision"], found["epoch"], ms_of(now))
        if group.events:
            await connection.execute(Q.write, *_values(group, now))
        return group

    def _prune_when_due(self) -> None:
        now_s = self._clock.monotonic()
        due = self._writes >= PRUNE_EVERY_WRITES or now_s - self._pruned_at_s >= PRUNE_EVERY_S
        if due and (self._pruning is None or self._pruning.done()):
            self._noted_prune(now_s)
            self._pruning = asyncio.create_task(self._prune_chunk())
            self._pruning.add_done_callback(_log_failure)

    def _noted_prune(self, now_s: float) -> None:
        self._writes, self._pruned_at_s = 0, now_s

    async def prune(self) -> int:
        """See the port; in chunks. Does nothing while another process prunes."""
        self._noted_prune(self._clock.monotonic())
        if self._pruning is not None:
            await asyncio.wait([self._pruning])
        total = 0
        for _ in range(PRUNE_CHUNKS_MAX):
            pruned = await self._prune_chunk()
            total += pruned
            if pruned < PRUNE_CHUNK:
                break
        return total

    async def _prune_chunk(self) -> int:
        """Returns the number of events deleted; each city's pruning mark moves in the same transaction."""
        async with translated(), self._pool.acquire() as connection, connection.transaction():
            if not await connection.fetchval(Q.alone):
                return 0
            now = self._time(await connection.fetchval(Q.now))
            pruned: int = await connection.fetchval(Q.prune_events, stamp(now - self._retention), PRUNE_CHUNK)
            since = ms_of(now - timedelta(days=HISTORY_DAYS))
            await connection.execute(Q.prune_history, since, PRUNE_READINGS_CHUNK)
            await connection.execute(Q.prune_keys, ms_of(now - timedelta(hours=KEY_HOURS)), PRUNE_CHUNK)
        if pruned:
            log.debug("facts.observation.pruned", events=pruned)
        return pruned

    async def aclose(self) -> None:
        """See the port. The pool belongs to its opener."""
        await self._writer.aclose()
        if self._pruning is not None:
            await asyncio.wait([self._pruning])

    # --- reading

    async def history(self, city: str, since: datetime) -> Sequence[tuple[str, str, datetime, float]]:
        """See the port."""
        async with translated():
            rows = await self._pool.fetch(Q.history, city, ms_of(since))
        return [(row["series_key"], row["source"], time_of(row["obs_time_ms"]), row["temp_c"]) for row in rows]

    async def latest(self, cities: Iterable[str] | None = None) -> Mapping[str, Sequence[Json]]:
        """See the port."""
        async with translated():
            rows = await self._pool.fetch(Q.latest, None if cities is None else list(cities))
        found: dict[str, list[Json]] = {}
        for row in rows:
            found.setdefault(row["city"], []).append(_reading(row))
        return found

    async def highs(self, since: Mapping[str, datetime]) -> Mapping[str, tuple[float, datetime]]:
        """See the port."""
        starts = [ms_of(start) for start in since.values()]
        async with translated():
            rows = await self._pool.fetch(Q.highs, list(since), starts, HEADLINE)
        return {row["city"]: (row["high_c"], time_of(row["obs_time_ms"])) for row in rows}


@asynccontextmanager
async def _locking_the_head(connection: Connection) -> AsyncIterator[None]:
    """A transaction that excludes other appends, begun without a round trip of its own."""
    try:
        await connection.execute(Q.begin)
        yield
        await connection.execute(Q.commit)
    except BaseException:
        if not connection.is_closed():
            await connection.execute(Q.rollback)
        raise


def _transposed(rows: Iterable[Sequence[Any]], width: int) -> list[list[Any]]:
    """Rows as columns; `width` of them even without rows."""
    columns: list[list[Any]] = [[] for _ in range(width)]
    for row in rows:
        for column, value in zip(columns, row, strict=True):
            column.append(value)
    return columns


def _values(group: Group, now: datetime) -> tuple[Any, ...]:
    """The parameters of `write`."""
    events = [
        {
            "revision": event.revision,
            "city": patch.city,
            "source": patch.source,
            "obs_time": obs_time_text(patch),
            "body": event.body.decode(),
            "prev_revision": event.prev_revision,
        }
        for event, patch in group.events
    ]
    keys = [_slot(key) | {"content": key[4].hex(), "revision": revision} for key, revision in group.keys.items()]
    forgotten = [_slot(slot) for slot in sorted(group.forgotten)]
    readings = [reading._asdict() for reading in group.readings.values()]
    latest = [reading._asdict() for reading in newest(group.readings.values())]
    kind = (SCHEMA_TYPE, SCHEMA_VERSION)
    return events, keys, forgotten, readings, latest, stamp(now), *kind, ms_of(now), events[-1]["revision"]


def _slot(key: Sequence[Any]) -> Json:
    return dict(zip(("city", "source", "series_key", "obs_time_ms"), key, strict=False))


def _reading(row: Mapping[str, Any]) -> Json:
    return {
        "series_key": row["series_key"],
        "source": row["source"],
        "obs_time": time_of(row["obs_time_ms"]),
        "temp": row["temp_c"],
        "max_so_far": row["max_so_far_c"],
        "station_code": row["station_code"],
        "station_label": row["station_label"],
        "revision": row["revision"],
    }


def _log_failure(task: asyncio.Task[int]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.warning("facts.observation.prune_failed", error=repr(task.exception()))
