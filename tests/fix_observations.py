"""An observation store on a fresh file, with its log, a clock moved by hand, and patches to put in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest_asyncio

from planetwire.clock import ManualClock, utc_text
from planetwire.collect.ingest import normalise
from planetwire.facts.observations_sqlite import SqliteObservationStore
from planetwire.model import Appended, LogEvent, ObservationPatch
from planetwire.stream.log_sqlite import SqliteEventLog

START = datetime(2026, 5, 26, 10, 0, tzinfo=UTC)


@dataclass
class Observations:
    """A started store and log over one file, and the events that the store announced."""

    path: Path
    clock: ManualClock
    store: SqliteObservationStore
    log: SqliteEventLog
    heard: list[LogEvent] = field(default_factory=list)

    async def put(self, city: str, temp: float, **inner: object) -> Appended:
        """Append one reading observed now, unless `obs_time` says otherwise."""
        return (await self.store.append([patch(self.clock, city, temp, **inner)]))[0]


def patch(clock: ManualClock, city: str, temp: float, *, source: str = "metar", **inner: object) -> ObservationPatch:
    """A normalised patch."""
    inner.setdefault("obs_time", utc_text(clock.now()))
    return normalise({"city": city, "source": source, "changes": {"temp": temp, **inner}}, clock.now())


async def open_observations(path: Path, clock: ManualClock, **settings: float) -> Observations:
    """A started store and log; close both."""
    store = SqliteObservationStore(path, clock, **settings)  # type: ignore[arg-type]
    await store.start()
    log = SqliteEventLog(path)
    await log.start()
    opened = Observations(path, clock, store, log)
    store.on_committed = opened.heard.extend
    return opened


@pytest_asyncio.fixture
async def observations(tmp_path: Path) -> AsyncIterator[Observations]:
    """A store on a fresh file."""
    opened = await open_observations(tmp_path / "observations.db", ManualClock(START), busy_timeout_s=0.05)
    try:
        yield opened
    finally:
        await opened.store.aclose()
        await opened.log.aclose()
