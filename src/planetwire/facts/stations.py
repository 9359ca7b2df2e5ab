"""Copies each city's newest headline reading from the observation log to the facts of the globe.

Invariants: everything the cursor covers is in the facts, since both commit together; a city is written at most once a
spacing, with its newest reading, by whichever process is first; repeats change nothing. No code writes to both
stores, so neither can miss what the other got: an unreachable database delays only the globe.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Protocol

from planetwire.cities import BY_KEY, City
from planetwire.log import get_logger
from planetwire.model import Cursor, Fact, Json, LogEvent
from planetwire.observing import Sources, headline
from planetwire.ports import Clock, EventLog, ObservationStore
from planetwire.runtime.backoff import Backoff
from planetwire.runtime.clock import utc_text
from planetwire.runtime.forever import run_forever

log = get_logger()

KIND = "weather_station"
SPACING_S = 60.0  # least time between two writes of one city
RETRY_S = 1.0  # after a store could not be reached …
RETRY_MAX_S = 30.0  # … doubling up to this
ERROR_CHARS = 300


class Stations(Protocol):
    """The facts of one consumer, and its cursor in the log."""

    async def cursor(self) -> Cursor | None:
        """None before the first `put`."""

    async def ages(self) -> Mapping[str, float]:
        """How many seconds ago each fact was written, by this process or another."""

    async def put(self, facts: Sequence[Fact], cursor: Cursor) -> bool:
        """Write both or neither; False if one of the facts is locked. Unchanged facts are not written."""

    async def age(self, spared: Collection[str]) -> Sequence[str]:
        """Update `freshness` by the database's clock, except of `spared`; returns the changed keys."""


class StationBridge:
    """Runs in each process that accepts observations: all may try, and what one has written the others skip."""

    def __init__(
        self,
        event_log: EventLog,
        store: ObservationStore,
        stations: Stations,
        clock: Clock,
        sources: Sources,
        *,
        spacing_s: float = SPACING_S,
    ) -> None:
        self._log = event_log
        self._store = store
        self._stations = stations
        self._wakeup = asyncio.Event()
        self._clock = clock
        self._sources = sources
        self._spacing_s = spacing_s
        self._through: dict[str, int] = {}  # by city: revision that its fact covers; empty before the start
        self._pending: set[str] = set()
        self._written_s: dict[str, float] = {}
        self._aged_s = clock.monotonic()

    def after(self, listener: Callable[[Sequence[LogEvent]], None]) -> Callable[[Sequence[LogEvent]], None]:
        """Wraps the store's `listener` so that new events also wake this bridge."""

        def notify(events: Sequence[LogEvent]) -> None:
            listener(events)
            self._wakeup.set()

        return notify

    async def run(self) -> None:
        """Until cancelled. Failures of either store are retried, from the cursor."""
        await run_forever(
            self.step,
            lambda _: self._wait(),
            lambda error, _: log.warning("facts.stations.failed", error=error.message),
            Backoff(RETRY_S, RETRY_MAX_S, self._clock),
            on_crash=_crashed,
        )

    async def step(self) -> None:
        """Poll the log, write the cities that are due, age the others. Raises BackendError."""
        if not self._through:
            await self._begin()
        head = await self._poll()
        if self._due():
            await self._read_ages()
        if due := self._due():
            await self._write(due, head)
        if self._clock.monotonic() - self._aged_s >= self._spacing_s:
            await self._age()

    async def _begin(self) -> None:
        """A cursor of another log, or ahead of this one, is invalid: then every city counts as news."""
        cursor = await self._stations.cursor()
        known = cursor is not None and cursor.epoch == self._log.epoch and cursor.revision <= await self._log.head()
        self._through = dict.fromkeys(BY_KEY, cursor.revision if cursor is not None and known else 0)

    async def _poll(self) -> int:
        """Find cities with news. The heads are read before the readings, so a reading is never older than its mark."""
        heads = await self._log.heads(f"city:{city}" for city in BY_KEY)
        latest = {city: heads.get(f"city:{city}", 0) for city in BY_KEY}
        head = max(latest.values())
        self._pending |= {city for city, revision in latest.items() if revision > self._through[city]}
        self._through |= {city: head for city in BY_KEY if city not in self._pending}
        return head

    def _due(self) -> Sequence[str]:
        return [city for city in self._pending if self._rest_s(city) <= 0]

    async def _read_ages(self) -> None:
        now_s = self._clock.monotonic()
        for city, ago_s in (await self._stations.ages()).items():
            self._written_s[city] = max(self._written_s.get(city, -self._spacing_s), now_s - ago_s)

    async def _write(self, due: Sequence[str], head: int) -> None:
        readings = await self._store.latest(due)
        now = self._clock.now()
        newest = {city: headline(readings.get(city, ())) for city in due}
        facts = [
            fact_of(self._sources, BY_KEY[city], reading, now)
            for city, reading in newest.items()
            if reading is not None
        ]
        through = self._through | dict.fromkeys(due, head)
        if not await self._stations.put(facts, Cursor(self._log.epoch, min(through.values()))):
            self._note(due, self._spacing_s - RETRY_S)
            return
        self._through = through
        self._pending -= set(due)
        self._note(fact.external_key for fact in facts)

    async def _age(self) -> None:
        await self._read_ages()
        resting = [city for city in self._written_s if self._rest_s(city) > 0]
        self._note(await self._stations.age(resting))
        self._aged_s = self._clock.monotonic()

    def _note(self, cities: Iterable[str], ago_s: float = 0.0) -> None:
        self._written_s |= dict.fromkeys(cities, self._clock.monotonic() - ago_s)

    def _rest_s(self, city: str) -> float:
        written_s = self._written_s.get(city)
        return 0.0 if written_s is None else written_s + self._spacing_s - self._clock.monotonic()

    async def _wait(self) -> None:
        """Until something is committed, a pending city is due, or the others are to be aged."""
        until_aging_s = self._aged_s + self._spacing_s - self._clock.monotonic()
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, min([until_aging_s, *map(self._rest_s, self._pending)]))):
                await self._wakeup.wait()
        self._wakeup.clear()


def _crashed(error: Exception) -> None:
    """The process accepts observations: an error of the globe's facts must not end it."""
    log.exception("facts.stations.crashed", error=repr(error)[:ERROR_CHARS])


def fact_of(sources: Sources, city: City, reading: Json, now: datetime) -> Fact:
    """One city's station: the place is its airport's, the reading its newest of a headline series."""
    known = sources.profile(reading["source"], city.metar_cadence_s)
    obs_time: datetime = reading["obs_time"]
    return Fact(
        external_key=city.key,
        kind=KIND,
        title=city.display_name,
        data={
            "city": city.key,
            "name_zh": city.display_name_zh,
            "airport": city.airport,
            "icao": city.icao,
            "timezone": city.timezone,
            "temp_c": reading["temp"],
            "obs_time": utc_text(obs_time),
            "observed_by": reading["source"],
            "series_key": reading["series_key"],
            "station_code": reading["station_code"],
            "station_label": reading["station_label"],
            "freshness": known.freshness((now - obs_time).total_seconds()),
            "fresh_s": known.fresh_s,
            "wait_s": known.native_s + known.grace_s,
            "stale_s": known.stale_s,
        },
        lat=city.lat_deg,
        lon=city.lon_deg,
        observed_at=obs_time,
    )
