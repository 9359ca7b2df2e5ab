"""The observation store when the file cannot be written, when it is closed, and when an older program made it."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from file_limit import file_size_limit, journal_end
from fix_observations import START, Observations, open_observations, patch
from planetwire.errors import BackendError, LogWriteFailed, SetupError
from planetwire.facts.sqlite import writer_sqlite
from planetwire.model import LogEvent, ResyncReason
from planetwire.runtime.clock import ManualClock

TOPIC = ["city:seoul"]


async def test_a_full_disk_refuses_the_write_and_the_store_recovers(sqlite_observations: Observations) -> None:
    """S190: nothing half stored, nothing broadcast, and the next write works."""
    observations = sqlite_observations
    await observations.put("seoul", 20.0)
    many = [patch(observations.clock, "seoul", n / 100, obs_time=None) for n in range(200)]
    with file_size_limit(journal_end(observations.path) + 4_096), pytest.raises(LogWriteFailed) as caught:
        await observations.store.append(many)
    assert (caught.value.status, caught.value.code) == (500, "log_write_failed")
    assert [event.revision for event in observations.heard] == [1]
    assert [event.revision for event in await observations.log.page(TOPIC, 0, 500)] == [1]
    assert len(await observations.store.history("seoul", START)) == 1
    assert (await observations.put("seoul", 21.0)).revision == 2
    assert [event.revision for event in observations.heard] == [1, 2]


async def test_a_file_on_a_full_disk_can_still_be_read(tmp_path: Path) -> None:
    """S190: what could not be reserved is no reason to answer nobody; a write is refused, later ones are taken."""
    path = tmp_path / "observations.db"
    first = await open_observations(path, ManualClock(START))
    await first.put("seoul", 20.0)
    await first.close()
    with file_size_limit(path.stat().st_size + 40_000):
        again = await open_observations(path, ManualClock(START))
        assert [row["temp"] for row in (await again.store.latest())["seoul"]] == [20.0]
        many = [patch(again.clock, "seoul", n / 100, obs_time=None) for n in range(200)]
        with pytest.raises(LogWriteFailed):
            await again.store.append(many)
    assert (await again.put("seoul", 21.0, obs_time=None)).revision == 2
    await again.close()


async def test_the_log_has_its_length_from_the_start(sqlite_observations: Observations) -> None:
    """S210: a commit that lengthens the file also waits for whatever else the file system has to write down."""
    journal = sqlite_observations.path.with_name("observations.db-wal")
    length = journal.stat().st_size
    many = [patch(sqlite_observations.clock, "seoul", n / 100, obs_time=None) for n in range(500)]
    for begin in range(0, 500, 10):
        await sqlite_observations.store.append(many[begin : begin + 10])
    assert journal_end(sqlite_observations.path) < journal.stat().st_size == length
    assert await sqlite_observations.rows("pragma integrity_check") == [("ok",)]


async def test_a_log_that_refuses_a_write_takes_the_next(observations: Observations) -> None:
    """S190: a locked file, a database that says no: nothing stored, nothing broadcast."""
    async with observations.refusing():
        with pytest.raises(LogWriteFailed):
            await observations.put("seoul", 20.0)
        assert observations.heard == []
        assert await observations.log.head() == 0
    assert (await observations.put("seoul", 20.0)).revision == 1


async def test_a_disk_that_does_not_answer_is_told_to_each_who_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S190: the wait has an end, whatever waits behind it; the writes that were given up are taken all the same."""
    monkeypatch.setattr(writer_sqlite, "WRITE_TIMEOUT_S", 0.05)
    observations = await open_observations(tmp_path / "observations.db", ManualClock(START), busy_timeout_s=60)
    with closing(sqlite3.connect(observations.path, isolation_level=None)) as other:
        other.execute("begin immediate")
        waiting = [asyncio.create_task(observations.put("seoul", n / 10, obs_time=None)) for n in range(3)]
        told = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(each) for each in told] == [LogWriteFailed] * 3
        other.execute("rollback")
    await observations.store.aclose()
    assert [event.revision for event in observations.heard] == [1, 2, 3]
    await observations.log.aclose()


async def test_closing_finishes_what_was_accepted(observations: Observations) -> None:
    """A write that was taken before the close is on disk after it."""
    waiting = [asyncio.create_task(observations.put("seoul", n / 10, obs_time=None)) for n in range(50)]
    await asyncio.sleep(0)
    await observations.store.aclose()
    assert [(await task).revision for task in waiting] == list(range(1, 51))
    assert await observations.log.head() == 50
    with pytest.raises(BackendError):
        await observations.put("seoul", 1.0)
    await observations.store.aclose()


async def test_a_caller_that_gave_up_does_not_hide_the_event(observations: Observations) -> None:
    """A client that disconnects after its patch was taken: the event is stored and broadcast all the same."""
    task = asyncio.create_task(observations.put("seoul", 20.0))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await observations.put("seoul", 21.0)).revision == 2
    assert [event.revision for event in observations.heard] == [1, 2]


async def test_a_listener_that_fails_does_not_fail_the_write(observations: Observations) -> None:
    """The log decides; who listens can read it again."""

    def broken(events: object) -> None:
        raise RuntimeError("no hub")

    observations.store.on_committed = broken
    assert (await observations.put("seoul", 20.0)).revision == 1


async def test_a_listener_hears_before_the_sender_is_answered(observations: Observations) -> None:
    """S166: the answer to the sender means that the event is on its way."""
    order: list[str] = []

    def listen(events: list[LogEvent]) -> None:
        order.append("heard")

    observations.store.on_committed = listen  # type: ignore[assignment]
    await observations.put("seoul", 20.0)
    order.append("answered")
    assert order == ["heard", "answered"]


async def test_reads_after_the_close_say_so(observations: Observations) -> None:
    """No crash, an error with a code."""
    await observations.unplug()
    with pytest.raises(BackendError):
        await observations.log.head()


async def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    """The start fails and says which file."""
    path = tmp_path / "broken.db"
    path.write_bytes(b"not a database, and long enough to be looked at closely" * 40)
    with pytest.raises(SetupError, match=r"broken\.db"):
        await open_observations(path, ManualClock(START))


async def test_a_new_file_that_another_process_is_making_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two web processes of one host start at once: neither fails because the other came first."""
    path = tmp_path / "weather.db"
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("begin immediate")
    tried: list[float] = []

    def the_other_is_ready(pause_s: float) -> None:
        tried.append(pause_s)
        other.execute("rollback")
        other.close()

    monkeypatch.setattr("planetwire.database.pool_sqlite.sleep", the_other_is_ready)
    opened = await open_observations(path, ManualClock(START))
    try:
        assert len(tried) == 1
        assert (await opened.put("seoul", 20.0)).revision == 1
    finally:
        await opened.close()


async def test_a_new_file_that_stays_locked_fails_the_start(tmp_path: Path) -> None:
    """After the busy timeout, and with the file's name."""
    path = tmp_path / "weather.db"
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("begin immediate")
    try:
        with pytest.raises(SetupError, match=r"weather\.db"):
            await open_observations(path, ManualClock(START), busy_timeout_s=0.05)
    finally:
        other.close()


async def test_the_file_of_an_older_program_is_taken_over(tmp_path: Path) -> None:
    """S114, S211: its events are of another shape, so cursors into them get a resync; revisions go on."""
    path = tmp_path / "weather.db"
    old = sqlite3.connect(path)
    old.executescript(
        """create table observation_patch_events (revision integer primary key autoincrement,
            schema_type text not null, schema_version integer not null, city text not null, source text not null,
            obs_time text, payload_json text not null, created_at text not null);
        insert into observation_patch_events (schema_type, schema_version, city, source, payload_json, created_at)
        values ('city_observation_patch', 1, 'seoul', 'amos', '{"temp": 1}', '2026-05-26T09:59:00Z');"""
    )
    old.close()
    taken = await open_observations(path, ManualClock(START))
    try:
        assert await taken.log.head() == 1
        assert await taken.log.check(TOPIC, 0, 100) is ResyncReason.REPLAY_WINDOW_EXCEEDED
        assert await taken.log.check(TOPIC, 1, 100) is None
        event = (await taken.put("seoul", 20.0)).event
        assert event is not None
        assert (event.revision, event.prev_revision) == (2, 1)
    finally:
        await taken.store.aclose()
        await taken.log.aclose()
