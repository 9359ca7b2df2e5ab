"""Readings of the observation log as facts of the globe: one a city, at most one write a minute, nothing lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from fix_observations import START, Observations, open_observations
from planetwire.cities import BY_KEY
from planetwire.database.postgres import Pool
from planetwire.datasets.registry import layer_registry, observed_sources
from planetwire.errors import BackendError
from planetwire.facts.derived_postgres import Projection
from planetwire.facts.facts_postgres import PostgresFactStore
from planetwire.facts.stations import StationBridge, fact_of
from planetwire.facts.stations_postgres import PostgresStations
from planetwire.model import Cursor, Fact, LogEvent
from planetwire.runtime.clock import ManualClock, utc_text

SOURCES = observed_sources()

CHANGES = "select count(*) from earth_data_change_events where table_name = 'collected_data'"
FACTS = "select external_key, data, observed_at from collected_data where source = 'city_observation' order by 1"
CURSOR = "select epoch, revision from log_consumers where consumer = 'city_observation'"


class Globe:
    """A bridge over a real store and a real database, stepped by hand."""

    def __init__(self, observations: Observations, pool: Pool) -> None:
        self.observations = observations
        self.pool = pool
        self._shifts = 0
        self.stations = PostgresStations(
            pool, PostgresFactStore(pool, Projection(layer_registry().derivers)), "city_observation"
        )
        self.begin()

    def begin(self) -> None:
        """Another life of the bridge over the same two stores."""
        self.bridge = StationBridge(
            self.observations.log, self.observations.store, self.stations, self.observations.clock, SOURCES
        )

    async def later(self, seconds: float) -> None:
        """Time passes for both: the clock goes on, and what the database has written is as much older."""
        self.observations.clock.advance(seconds)
        before = await self._changes()
        await self.pool.execute(
            "update collected_data set collected_at = collected_at - make_interval(secs => $1)", seconds
        )
        self._shifts += await self._changes() - before

    async def put(self, city: str, temp: float, **inner: Any) -> None:
        await self.observations.put(city, temp, **inner)

    async def temps(self) -> dict[str, float]:
        return {row["external_key"]: row["data"]["temp_c"] for row in await self.pool.fetch(FACTS)}

    async def writes(self) -> int:
        """Statements that changed facts."""
        return await self._changes() - self._shifts

    async def _changes(self) -> int:
        return int(await self.pool.fetchval(CHANGES))

    async def cursor(self) -> int:
        row = await self.pool.fetchrow(CURSOR)
        assert row["epoch"] == self.observations.log.epoch
        return int(row["revision"])


@pytest_asyncio.fixture
async def globe(observations: Observations, pg_pool: Pool) -> Globe:
    return Globe(observations, pg_pool)


async def test_the_newest_headline_reading_of_a_city_is_one_fact(globe: Globe) -> None:
    """D8: where the airport lies, with who observed it, when, and how late that is in the terms of its source."""
    await globe.put("hong kong", 27.0, source="hko", obs_time=utc_text(START - timedelta(minutes=20)))
    await globe.put("hong kong", 28.5, source="hko_obs", station_code="HKA", station_label="Airport")
    await globe.put("hong kong", 33.0, source="cowin_obs")  # a sensor beside the airport is no headline
    await globe.put("taipei", 0.0)
    await globe.bridge.step()
    hong_kong, taipei = await globe.pool.fetch(FACTS)
    assert (taipei["external_key"], taipei["data"]["temp_c"]) == ("taipei", 0.0)
    assert (hong_kong["external_key"], hong_kong["observed_at"]) == ("hong kong", START)
    assert hong_kong["data"] == {
        "city": "hong kong",
        "name_zh": "香港",
        "airport": "Hong Kong",
        "icao": "VHHH",
        "timezone": "Asia/Hong_Kong",
        "temp_c": 28.5,
        "obs_time": "2026-05-26T10:00:00Z",
        "observed_by": "hko_obs",
        "series_key": "airport_primary",
        "station_code": "HKA",
        "station_label": "Airport",
        "freshness": "fresh",
        "fresh_s": 900,
        "wait_s": 1200,
        "stale_s": 2700,
    }
    row = await globe.pool.fetchrow("select lat, lon, kind, title from collected_data where external_key = 'hong kong'")
    assert tuple(row) == (22.3089, 113.915, "weather_station", "Hong Kong")
    assert await globe.cursor() == 4


async def test_a_station_is_found_by_its_names(globe: Globe) -> None:
    """The row of search is made in the same transaction, and new figures leave it alone."""
    await globe.put("shanghai", 20.0)
    await globe.bridge.step()
    made = await globe.pool.fetchrow("select * from earth_interactables")
    assert (made["id"], made["layer"]) == ("weather_stations:city_observation:shanghai", "weather_stations")
    assert (made["title"], made["subtitle"]) == ("Shanghai", "Shanghai Pudong · ZSPD · 上海")
    await globe.later(60)
    await globe.put("shanghai", 21.0)
    await globe.bridge.step()
    assert await globe.temps() == {"shanghai": 21.0}
    assert await globe.pool.fetchval("select updated_at from earth_interactables") == made["updated_at"]


async def test_a_city_is_written_once_a_minute_with_what_is_newest_then(globe: Globe) -> None:
    await globe.put("seoul", 20.0)
    await globe.bridge.step()
    for second in range(59):
        await globe.later(1)
        await globe.put("seoul", 20.0 + second / 10)
        await globe.bridge.step()
    assert (await globe.temps(), await globe.writes(), await globe.cursor()) == ({"seoul": 20.0}, 1, 1)
    await globe.put("taipei", 25.0)  # who has waited long enough is not held back by others
    await globe.bridge.step()
    assert (await globe.temps(), await globe.writes()) == ({"seoul": 20.0, "taipei": 25.0}, 2)
    assert await globe.cursor() == 1, "what seoul said since is not in the facts yet"
    await globe.later(1)
    await globe.bridge.step()
    assert (await globe.temps(), await globe.writes()) == ({"seoul": 25.8, "taipei": 25.0}, 3)
    assert await globe.cursor() == 61


async def test_a_bridge_that_begins_again_loses_nothing_and_repeats_nothing(globe: Globe) -> None:
    """What was committed while it was away is written once, and a restart within the minute is no second write."""
    await globe.put("seoul", 20.0)
    await globe.put("taipei", 25.0)
    await globe.bridge.step()
    await globe.put("seoul", 21.0)  # not written: the minute is not over
    await globe.bridge.step()
    globe.begin()
    await globe.bridge.step()
    assert (await globe.temps(), await globe.writes()) == ({"seoul": 20.0, "taipei": 25.0}, 1)
    await globe.later(61)
    await globe.put("tokyo", 18.0)
    globe.begin()
    before = await globe.writes()
    await globe.bridge.step()
    assert await globe.temps() == {"seoul": 21.0, "taipei": 25.0, "tokyo": 18.0}
    assert (await globe.writes() - before, await globe.cursor()) == (2, 4)  # one insert, one update
    for _ in range(3):
        globe.begin()
        await globe.bridge.step()
    assert (await globe.writes() - before, await globe.cursor()) == (2, 4)


async def test_several_bridges_write_a_city_once_a_minute_between_them(globe: Globe) -> None:
    """Each web process has one; what one has written the others leave alone, and a restart is no second write."""
    first = globe.bridge
    globe.begin()
    for second in range(40):  # the database's own clock goes on too: well within the minute
        await globe.put("seoul", second / 10)
        await first.step()
        await globe.bridge.step()
        if second % 20 == 0:
            globe.begin()
            await globe.bridge.step()
        await globe.later(1)
    assert (await globe.temps(), await globe.writes()) == ({"seoul": 0.0}, 1)
    await globe.later(30)
    await globe.bridge.step()
    await first.step()
    assert (await globe.temps(), await globe.writes()) == ({"seoul": 3.9}, 2)
    await globe.later(61)
    await first.step()
    await globe.bridge.step()
    assert (await globe.temps(), await globe.cursor()) == ({"seoul": 3.9}, 40)


async def test_an_answer_of_the_commit_that_was_lost_is_no_second_write(globe: Globe) -> None:
    """Killed after the commit, or told of an error although it was done: the same again changes nothing."""
    await globe.put("seoul", 20.0)
    await globe.bridge.step()
    await globe.pool.execute("update log_consumers set revision = 0")  # as it would be before the commit
    await globe.later(61)
    before = await globe.writes()
    globe.begin()
    await globe.bridge.step()
    assert (await globe.writes(), await globe.cursor()) == (before, 1)


@pytest.mark.parametrize(("epoch", "revision"), [("zzzzzzzzzzzz", 1), (None, 99)])
async def test_a_cursor_of_another_log_covers_nothing(globe: Globe, epoch: str | None, revision: int) -> None:
    """The file was replaced, or an older one was put back: every city that has a reading is looked at."""
    await globe.pool.execute(
        "insert into log_consumers (consumer, epoch, revision) values ('city_observation', $1, $2)",
        epoch or globe.observations.log.epoch,
        revision,
    )
    await globe.put("seoul", 20.0)
    await globe.bridge.step()
    assert (await globe.temps(), await globe.cursor()) == ({"seoul": 20.0}, 1)


async def test_events_that_were_pruned_are_not_missed(globe: Globe) -> None:
    """Longer away than the log is kept: the readings are still there, and so is each city's mark."""
    await globe.put("seoul", 20.0)
    await globe.bridge.step()
    await globe.put("seoul", 21.0)
    await globe.later(6 * 3600 + 1)
    assert await globe.observations.store.prune() == 2
    globe.begin()
    await globe.bridge.step()
    assert (await globe.temps(), await globe.cursor()) == ({"seoul": 21.0}, 2)


async def test_a_reading_that_grows_old_is_called_so(globe: Globe) -> None:
    """By the database's clock, once a minute, and not twice the same."""
    await globe.put("seoul", 20.0)
    await globe.put("taipei", 25.0)
    await globe.bridge.step()

    async def freshness_after(minutes: int) -> dict[str, str]:
        await globe.pool.execute(
            "update collected_data set observed_at = clock_timestamp() - make_interval(mins => $1)"
            " where external_key = 'seoul'",
            minutes,
        )
        await globe.later(61)
        await globe.bridge.step()
        return {row["external_key"]: row["data"]["freshness"] for row in await globe.pool.fetch(FACTS)}

    await globe.pool.execute("update collected_data set observed_at = clock_timestamp()")
    said = [(await freshness_after(minutes))["seoul"] for minutes in (1, 20, 50, 80)]
    assert said == ["fresh", "expected_wait", "delayed", "stale"]
    before = await globe.writes()
    await globe.later(61)
    await globe.bridge.step()
    assert await globe.writes() == before
    await globe.pool.execute(
        "insert into collected_data (source, external_key, kind, data, observed_at)"
        """ values ('city_observation', 'by hand', 'x', '{"fresh_s": "soon"}', now())"""
    )
    await globe.later(61)
    await globe.bridge.step()
    assert await globe.pool.fetchval("select data from collected_data where external_key = 'by hand'") == {
        "fresh_s": "soon"
    }


async def test_what_was_cleared_stays_cleared_until_a_city_reports_again(globe: Globe) -> None:
    await globe.put("seoul", 20.0)
    await globe.put("taipei", 25.0)
    await globe.bridge.step()
    await globe.pool.execute("delete from collected_data where source = 'city_observation'")
    await globe.later(61)
    await globe.bridge.step()
    globe.begin()
    await globe.bridge.step()
    assert await globe.temps() == {}
    await globe.put("seoul", 21.0)
    await globe.bridge.step()
    assert await globe.temps() == {"seoul": 21.0}


async def test_a_fact_that_somebody_holds_is_not_waited_for(globe: Globe) -> None:
    """A clearing that holds one fact may want another of ours: waiting for each other would cost it its job."""
    await globe.put("seoul", 20.0)
    await globe.bridge.step()
    await globe.later(60)
    await globe.put("seoul", 21.0)
    async with globe.pool.acquire() as other, other.transaction():
        await other.execute("update collected_data set title = 'held' where external_key = 'seoul'")
        async with asyncio.timeout(60):
            await globe.bridge.step()
            await globe.bridge.step()
    assert await globe.cursor() == 1
    await globe.later(1)  # it comes again a second later
    await globe.bridge.step()
    assert (await globe.temps(), await globe.cursor()) == ({"seoul": 21.0}, 2)


class Unreliable:
    """Stations that fail a while, then work; `written` rings at each success."""

    def __init__(self) -> None:
        self.failures = 3
        self.facts: list[Fact] = []
        self.written = asyncio.Event()

    async def cursor(self) -> Cursor | None:
        return None

    async def ages(self) -> dict[str, float]:
        return {}

    async def put(self, facts: Sequence[Fact], cursor: Cursor) -> bool:
        if self.failures:
            self.failures -= 1
            raise BackendError("the database is away")
        self.facts += facts
        self.written.set()
        return True

    async def age(self, spared: object) -> list[str]:
        return []


@asynccontextmanager
async def running(observations: Observations, stations: Unreliable) -> AsyncIterator[None]:
    """The bridge's own loop, woken by the store; its pauses pass by hand."""
    bridge = StationBridge(observations.log, observations.store, stations, observations.clock, SOURCES)
    observations.store.on_committed = bridge.after(observations.heard.extend)
    loop = asyncio.create_task(bridge.run())
    try:
        yield
    finally:
        loop.cancel()
        await asyncio.gather(loop, return_exceptions=True)
    assert loop.cancelled()


async def test_a_commit_wakes_the_bridge_and_a_database_that_is_away_only_delays_it(
    observations: Observations,
) -> None:
    """Whoever listened before still hears every event, whatever becomes of the globe."""
    stations = Unreliable()
    async with running(observations, stations), asyncio.timeout(60):
        await observations.put("seoul", 20.0)
        while not stations.written.is_set():
            observations.clock.advance(1)
            await asyncio.sleep(0)
        stations.written.clear()
        await observations.put("taipei", 25.0)
        await stations.written.wait()
    assert [fact.external_key for fact in stations.facts] == ["seoul", "taipei"]
    assert [type(event) for event in observations.heard] == [LogEvent, LogEvent]


async def test_a_city_without_a_headline_is_no_fact_and_holds_nothing_up(tmp_path: Path, pg_pool: Pool) -> None:
    observations = await open_observations(tmp_path / "o.db", ManualClock(START))
    globe = Globe(observations, pg_pool)
    await globe.put("hong kong", 33.0, source="cowin_obs")
    await globe.put("seoul", 20.0)
    await globe.bridge.step()
    assert (await globe.temps(), await globe.cursor()) == ({"seoul": 20.0}, 2)
    await observations.store.aclose()
    await observations.log.aclose()


def test_every_city_has_a_place_and_names() -> None:
    reading = {"temp": -0.5, "obs_time": START, "source": "metar", "series_key": "metar"}
    for city in BY_KEY.values():
        fact = fact_of(SOURCES, city, {**reading, "station_code": None, "station_label": None}, START)
        assert fact.lat is not None and fact.lon is not None and fact.title and fact.data["name_zh"]
