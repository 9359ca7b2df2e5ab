"""By what a reading that comes again is known: whatever came in between, whoever wrote it, in files of any age."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
import pytest_asyncio

from file_limit import file_size_limit, journal_end
from fix_observations import START, Observations, open_observations, patch
from planetwire.errors import LogWriteFailed
from planetwire.facts.observations.wire import content_hash, ms_of
from planetwire.migrating.migrate import migrations
from planetwire.runtime.clock import ManualClock, utc_text

AT, EARLIER = utc_text(START), utc_text(START - timedelta(hours=2))
RUNWAYS = [{"runway": "15R/33L", "temp": 22.0}]


async def put(observations: Observations, temp: float, at: str | None = AT, **inner: object) -> tuple[int, bool]:
    appended = await observations.put("seoul", temp, obs_time=at, **inner)
    return appended.revision, appended.duplicate


# --- on every backend


async def test_each_content_of_a_corrected_reading_is_known(observations: Observations) -> None:
    """F21: however often it was corrected, and after a restart."""
    assert [await put(observations, temp) for temp in (20.0, 21.0, 22.0)] == [(1, False), (2, False), (3, False)]
    assert [await put(observations, temp) for temp in (20.0, 21.0, 22.0)] == [(1, True), (2, True), (3, True)]
    await observations.store.aclose()
    again = await observations.reopen()
    try:
        assert [await put(again, temp) for temp in (22.0, 20.0, 21.0, 23.0)] == [
            (3, True),
            (1, True),
            (2, True),
            (4, False),
        ]
        history = await again.store.history("seoul", START)
        assert [temp for *_, temp in history] == [23.0]
    finally:
        await again.close()


async def test_contents_that_came_in_one_call_are_known_apart(observations: Observations) -> None:
    """F21: a correction in the same call as the reading."""
    temps = (20.0, 21.0, 20.0, 22.0)
    appended = await observations.store.append(
        [patch(observations.clock, "seoul", temp, obs_time=AT) for temp in temps]
    )
    assert [(a.revision, a.duplicate) for a in appended] == [(1, False), (2, False), (1, True), (3, False)]
    assert [await put(observations, temp) for temp in temps] == [(1, True), (2, True), (1, True), (3, True)]


async def test_an_older_reading_that_comes_again_is_known(observations: Observations) -> None:
    """F21: also one that was late the first time."""
    late = utc_text(START - timedelta(hours=3))
    assert await put(observations, 20.0) == (1, False)
    assert await put(observations, 18.0, late) == (2, False)
    assert await put(observations, 18.0, late) == (2, True)
    assert await put(observations, 18.5, late) == (3, False)


async def test_a_patch_of_runways_alone_is_known(observations: Observations) -> None:
    """F21: it has no reading of its own, and the city's reading of that time is another."""

    async def runways() -> tuple[int, bool]:
        one = patch(observations.clock, "seoul", None, source="amos", obs_time=AT, runway_points=RUNWAYS)  # type: ignore[arg-type]
        appended = (await observations.store.append([one]))[0]
        return appended.revision, appended.duplicate

    assert [await runways(), await runways()] == [(1, False), (1, True)]
    assert await put(observations, 20.0, source="amos") == (2, False)
    assert await runways() == (1, True)
    assert await put(observations, 20.0, source="amos") == (2, True)


async def test_a_reading_without_a_time_hides_none_that_has_the_same(observations: Observations) -> None:
    """F21: it lies in the curve where the other was, whose repetition is still one."""
    assert await put(observations, 20.0) == (1, False)
    assert await put(observations, 21.0, None) == (2, False)
    assert await put(observations, 20.0) == (1, True)
    assert await put(observations, 21.0, None) == (2, True)
    assert await put(observations, 22.0) == (3, False)
    assert await put(observations, 20.0) == (1, True)


# --- a file that others write too


@pytest_asyncio.fixture
async def other(sqlite_observations: Observations) -> AsyncIterator[Observations]:
    """A second process' store on the same file."""
    opened = await open_observations(sqlite_observations.path, sqlite_observations.clock)
    yield opened
    await opened.close()


async def test_what_another_process_wrote_is_seen(sqlite_observations: Observations, other: Observations) -> None:
    """F2, F21: its revisions, its keys and its newest reading, also when nothing of ours lies in between."""
    assert await put(sqlite_observations, 20.0) == (1, False)
    assert await put(other, 20.0) == (1, True)
    assert await put(other, 21.0, utc_text(START + timedelta(minutes=1))) == (2, False)
    assert await put(sqlite_observations, 21.0, utc_text(START + timedelta(minutes=1))) == (2, True)
    event = (await sqlite_observations.put("seoul", 22.0, obs_time=utc_text(START + timedelta(seconds=30)))).event
    assert event is not None
    assert (event.revision, event.prev_revision) == (3, 2)
    assert b'"is_latest":false' in event.body


@pytest.mark.parametrize("taken", [0, 199, 200, 201])
async def test_what_was_not_stored_is_forgotten(
    sqlite_observations: Observations, other: Observations, taken: int
) -> None:
    """S190, F21: a write that failed leaves no key and no revision behind, also if another takes its place."""
    ours, clock = sqlite_observations, sqlite_observations.clock
    assert await put(ours, 20.0, None) == (1, False)
    many = [patch(clock, "seoul", n / 100, obs_time=utc_text(START - timedelta(seconds=200 - n))) for n in range(200)]
    with file_size_limit(journal_end(ours.path) + 4_096), pytest.raises(LogWriteFailed):
        await ours.store.append(many)
    await other.store.append([patch(clock, "tokyo", n / 100, obs_time=None) for n in range(taken)])
    appended = await ours.store.append(many[-1:])
    assert appended[0].event is not None
    assert (appended[0].revision, appended[0].event.prev_revision) == (taken + 2, 1)


# --- a file that older migrations made


EVENT = "insert into observation_patch_events values (?, 'city_observation_patch', 1, 'seoul', 'metar', ?, ?, ?, ?)"
KEY = "insert into observation_keys values ('seoul', 'metar', 'metar', ?, ?, ?, ?)"
READING = "insert or replace into observations values ('seoul', 'metar', 'metar', ?, ?, null, ?)"
LATEST = "insert or replace into observation_latest values ('seoul', 'metar', 'metar', ?, ?, null, null, null, ?)"


def older_file(path: Path) -> None:
    """As the first migration's program left it: a corrected reading, an old one, and one without a time."""
    first = migrations("sqlite")[0]
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("create table planetwire_migrations (name text primary key, checksum text, applied_at text)")
        connection.executescript(first.sql)
        named = (first.name, first.checksum)
        connection.execute("insert into planetwire_migrations (name, checksum) values (?, ?)", named)
        for revision, temp, at in ((1, 20.0, AT), (2, 21.0, AT), (3, 23.0, EARLIER), (4, 22.0, None)):
            older_reading(connection, revision, temp, at)


def older_reading(connection: sqlite3.Connection, revision: int, temp: float, at: str | None) -> None:
    one = patch(ManualClock(START), "seoul", temp, obs_time=at)
    key_ms = ms_of(one.obs_time) if one.obs_time else 0
    place_ms = key_ms or one.ts_ms + 1
    connection.execute(EVENT, (revision, at, f'{{"revision":{revision}}}', f"{AT[:-1]}.000Z", revision - 1))
    connection.execute(KEY, (key_ms, content_hash(one), revision, one.ts_ms))
    connection.execute(READING, (place_ms, temp, revision))
    connection.execute(LATEST, (place_ms, temp, revision))


async def test_the_rows_of_an_older_file_are_all_there(tmp_path: Path) -> None:
    """S114, F21: events, readings and what was accepted."""
    path = tmp_path / "observations.db"
    older_file(path)
    taken = await open_observations(path, ManualClock(START))
    try:
        assert [event.revision for event in await taken.log.page(["city:seoul"], 0, 10)] == [1, 2, 3, 4]
        history = await taken.store.history("seoul", START - timedelta(hours=3))
        assert [temp for *_, temp in history] == [23.0, 21.0, 22.0]
        assert [reading["temp"] for reading in (await taken.store.latest())["seoul"]] == [22.0]
        assert [await put(taken, temp) for temp in (20.0, 21.0)] == [(1, True), (2, True)]
        assert await put(taken, 22.0, None) == (4, True)
        assert await put(taken, 23.0, EARLIER) == (3, True)
        assert await put(taken, 24.0, EARLIER) == (5, False)
        assert await put(taken, 23.0, EARLIER) == (3, True)
    finally:
        await taken.close()


async def test_what_one_source_corrected_is_still_known_where_another_said_the_same(tmp_path: Path) -> None:
    """S211, F21: contents are told apart by their source, also while an older file is brought up to date."""
    path = tmp_path / "observations.db"
    older_file(path)
    hashed = content_hash(patch(ManualClock(START), "seoul", 20.0, obs_time=AT))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(KEY.replace("'metar', 'metar'", "'other', 'metar'"), (ms_of(START), hashed, 5, ms_of(START)))
        connection.execute(READING.replace("'metar', 'metar'", "'metar', 'other'"), (ms_of(START), 20.0, 5))
    taken = await open_observations(path, ManualClock(START))
    try:
        assert await put(taken, 20.0) == (1, True)
    finally:
        await taken.close()
