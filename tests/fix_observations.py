"""An observation store in a fresh place, with its log, a manual clock, and patches to append."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from planetwire.collect.push.ingest import normalise
from planetwire.database.postgres import open_pool
from planetwire.datasets.registry import observed_sources
from planetwire.facts.observations.observations_postgres import PostgresObservationStore
from planetwire.facts.sqlite.observations_sqlite import SqliteObservationStore
from planetwire.model import Appended, LogEvent, ObservationPatch
from planetwire.runtime.clock import ManualClock, utc_text
from planetwire.stream.log_observations_postgres import PostgresObservationLog
from planetwire.stream.log_sqlite import SqliteEventLog
from planetwire.supervise.embedded_postgres import EmbeddedPostgres

SOURCES = observed_sources()

START = datetime(2026, 5, 26, 10, 0, tzinfo=UTC)
BACKENDS = ("sqlite", "postgres")


@dataclass
class Observations:
    """A started store and log over one place, and the events that the store published."""

    clock: ManualClock
    store: Any
    log: Any
    reopen: Callable[[], Awaitable[Observations]]
    rows: Callable[[str], Awaitable[list[tuple[Any, ...]]]]
    unplug: Callable[[], Awaitable[None]]
    """From now on nothing can be read."""
    path: Path = Path("/nowhere")
    heard: list[LogEvent] = field(default_factory=list)

    async def put(self, city: str, temp: float, **inner: object) -> Appended:
        """Append one reading observed now, unless `obs_time` says otherwise."""
        appended: Appended = (await self.store.append([patch(self.clock, city, temp, **inner)]))[0]
        return appended

    @asynccontextmanager
    async def refusing(self) -> AsyncIterator[None]:
        """The log refuses writes for a while: the file is locked, or the database refuses."""
        if self.path.exists():
            with closing(sqlite3.connect(self.path, isolation_level=None)) as other:
                other.execute("begin immediate")
                yield
                other.execute("rollback")
            return
        await self.rows("alter table observation_patch_events add constraint never check (false) not valid")
        yield
        await self.rows("alter table observation_patch_events drop constraint never")

    async def size_bytes(self) -> int:
        """The disk space of events and readings."""
        if self.path.exists():
            await self.store.aclose()
            return self.path.stat().st_size
        tables = "('observation_patch_events', 'observations', 'observation_keys', 'observation_latest')"
        query = f"select sum(pg_total_relation_size(oid))::bigint from pg_class where relname in {tables}"
        return int((await self.rows(query))[0][0])

    async def close(self) -> None:
        await self.store.aclose()
        await self.log.aclose()


def patch(clock: ManualClock, city: str, temp: float, *, source: str = "metar", **inner: object) -> ObservationPatch:
    """A normalised patch."""
    inner.setdefault("obs_time", utc_text(clock.now()))
    return normalise(SOURCES, {"city": city, "source": source, "changes": {"temp": temp, **inner}}, clock.now())


async def open_observations(path: Path, clock: ManualClock, **settings: float) -> Observations:
    """A started store and log over a SQLite file; close both."""
    store = SqliteObservationStore(path, clock, **settings)  # type: ignore[arg-type]
    await store.start()
    log = SqliteEventLog(path)
    await log.start()

    async def rows(query: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(path)) as connection:
            return connection.execute(query).fetchall()

    opened = Observations(clock, store, log, lambda: open_observations(path, clock, **settings), rows, log.aclose, path)
    store.on_committed = opened.heard.extend
    return opened


@asynccontextmanager
async def postgres_observations(dsn: str, clock: ManualClock, **settings: float) -> AsyncIterator[Observations]:
    """The same in a database, with its own pool, as in another process."""
    pool = await open_pool(dsn, application="observations", max_size=6)

    async def rows(query: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in await pool.fetch(query)]

    async def begin() -> Observations:
        store = PostgresObservationStore(pool, clock, time=lambda at: clock.now(), **settings)  # type: ignore[arg-type]
        await store.start()
        log = PostgresObservationLog(pool)
        await log.start()
        opened = Observations(clock, store, log, begin, rows, pool.close)
        store.on_committed = opened.heard.extend
        return opened

    opened = await begin()
    try:
        yield opened
    finally:
        await opened.close()
        await pool.close()


@asynccontextmanager
async def sqlite_observations_in(folder: Path) -> AsyncIterator[Observations]:
    """A store on a fresh file."""
    opened = await open_observations(folder / "observations.db", ManualClock(START), busy_timeout_s=0.05)
    try:
        yield opened
    finally:
        await opened.close()


@pytest_asyncio.fixture
async def sqlite_observations(tmp_path: Path) -> AsyncIterator[Observations]:
    """A store on a fresh file."""
    async with sqlite_observations_in(tmp_path) as opened:
        yield opened


@pytest_asyncio.fixture
async def pg_observations(pg_dsn: str) -> AsyncIterator[Observations]:
    """A store in a fresh database."""
    async with postgres_observations(pg_dsn, ManualClock(START)) as opened:
        yield opened


@pytest.fixture(params=BACKENDS)
def observation_cluster(request: pytest.FixtureRequest) -> EmbeddedPostgres | None:
    """Parametrized: the server for a store in PostgreSQL, or None for a file."""
    return request.getfixturevalue("pg_cluster") if request.param == "postgres" else None


@pytest_asyncio.fixture
async def observations(observation_cluster: EmbeddedPostgres | None, tmp_path: Path) -> AsyncIterator[Observations]:
    """A store in a fresh place, once on each backend: they satisfy the same contract."""
    if observation_cluster is None:
        async with sqlite_observations_in(tmp_path) as opened:
            yield opened
        return
    from fix_postgres import fresh_database  # itself a fixture module: must not be imported before its registration

    async with (
        fresh_database(observation_cluster) as dsn,
        postgres_observations(dsn, ManualClock(START)) as opened,
    ):
        yield opened
