"""What readiness and doctor hear of an observation file that cannot be written, or is not whole."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from file_limit import file_size_limit, journal_end
from fix_observations import START, Observations, open_observations, patch
from planetwire.errors import BackendError, LogWriteFailed
from planetwire.facts.sqlite import observations_sqlite
from planetwire.facts.sqlite.diagnosis_sqlite import examine_file
from planetwire.runtime.clock import ManualClock
from planetwire.wiring.observations import Observations as Stored

PAGE = 4_096


def usable(observations: Observations) -> Any:
    """The check of readiness over this store."""
    made: Any = Stored(observations.store, observations.log, None, None, False)  # type: ignore[arg-type]
    return made.usable()


async def test_a_refused_write_is_told_until_one_is_taken(sqlite_observations: Observations) -> None:
    observations = sqlite_observations
    await observations.put("seoul", 20.0)
    many = [patch(observations.clock, "seoul", n / 100, obs_time=None) for n in range(200)]
    assert await usable(observations) is None
    with file_size_limit(journal_end(observations.path)):
        with pytest.raises(LogWriteFailed):
            await observations.store.append(many)
        assert "takes no write" in str(await usable(observations))
        assert "takes no write" in str(await usable(observations))
    assert await usable(observations) is None  # a mark was written, without anybody's reading


async def test_a_full_disk_is_found_where_nobody_writes(
    sqlite_observations: Observations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observations_sqlite, "PROBE_EVERY_S", 0.0)
    assert await usable(sqlite_observations) is None
    with file_size_limit(journal_end(sqlite_observations.path)):
        assert "takes no write" in str(await usable(sqlite_observations))
    assert await usable(sqlite_observations) is None


async def test_a_mark_is_written_only_after_a_while_and_only_one_page(
    sqlite_observations: Observations, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sqlite_observations.put("seoul", 20.0)
    before = journal_end(sqlite_observations.path)
    for _ in range(5):
        assert await usable(sqlite_observations) is None
    assert journal_end(sqlite_observations.path) == before
    monkeypatch.setattr(observations_sqlite, "PROBE_EVERY_S", 0.0)
    assert await usable(sqlite_observations) is None
    assert before < journal_end(sqlite_observations.path) <= before + PAGE + 24


async def test_a_file_that_another_process_holds_is_told(sqlite_observations: Observations) -> None:
    async with sqlite_observations.refusing():
        with pytest.raises(LogWriteFailed):
            await sqlite_observations.put("seoul", 20.0)
        assert "locked" in str(await usable(sqlite_observations))
    assert await usable(sqlite_observations) is None


async def filled(path: Path) -> None:
    """A closed file with some hundred readings."""
    opened = await open_observations(path, ManualClock(START))
    for n in range(10):
        await opened.store.append([patch(opened.clock, "seoul", n / 100 + i, obs_time=None) for i in range(40)])
    await opened.close()


def flip(path: Path, begin: int) -> None:
    """Turn every byte from there on over."""
    body = bytearray(path.read_bytes())
    body[begin:] = bytes(byte ^ 0xFF for byte in body[begin:])
    path.write_bytes(bytes(body))


async def test_flipped_bytes_are_told_by_readiness_by_name_and_by_doctor(tmp_path: Path) -> None:
    path = tmp_path / "observations.db"
    await filled(path)
    assert examine_file(path)["findings"] == []
    opened = await open_observations(path, ManualClock(START))
    flip(path, 5 * PAGE)
    codes = set()
    for work in (
        lambda: opened.put("seoul", 25.0, obs_time=None),
        lambda: opened.store.latest(),
        lambda: opened.store.prune(),
    ):
        try:
            await work()
        except BackendError as error:
            codes.add(error.code)
    assert codes and codes <= {"log_write_failed", "backend_unavailable"}
    assert "damaged" in str(await usable(opened))
    assert [found["code"] for found in examine_file(path)["findings"]] == ["store_damaged"]
    await opened.close()


async def test_damage_that_only_a_write_met_stays_told(tmp_path: Path) -> None:
    path = tmp_path / "observations.db"
    await filled(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table cold (x)")
        connection.execute("insert into cold values (1)")
        connection.commit()
        root = connection.execute("select rootpage from sqlite_master where name = 'cold'").fetchone()[0]
    opened = await open_observations(path, ManualClock(START))
    body = path.read_bytes()
    begin = (root - 1) * PAGE
    path.write_bytes(body[:begin] + bytes(byte ^ 0xFF for byte in body[begin : begin + PAGE]) + body[begin + PAGE :])
    with pytest.raises(LogWriteFailed):
        await opened.store._writer.run(lambda connection: connection.execute("select * from cold").fetchall())
    await opened.put("seoul", 25.0, obs_time=None)
    assert "damaged" in str(await usable(opened))
    await opened.close()


async def test_every_page_flipped_by_itself_is_an_error_with_a_code_and_never_ours(tmp_path: Path) -> None:
    path = tmp_path / "whole.db"
    await filled(path)
    body = path.read_bytes()
    for begin in range(PAGE, len(body), PAGE):
        damaged = tmp_path / f"{begin}.db"
        damaged.write_bytes(body)
        opened = await open_observations(damaged, ManualClock(START))
        flipped = bytes(byte ^ 0xFF for byte in body[begin : begin + PAGE])
        damaged.write_bytes(body[:begin] + flipped + body[begin + PAGE :])
        for work in (
            lambda opened=opened: opened.put("seoul", 25.0, obs_time=None),
            lambda opened=opened: opened.store.latest(),
            lambda opened=opened: opened.store.history("seoul", START),
            lambda opened=opened: opened.log.page(["city:seoul"], 0, 500),
            lambda opened=opened: opened.store.prune(),
        ):
            with suppress(BackendError):
                await work()
        await opened.close()


def test_doctor_says_what_cannot_be_opened_and_what_is_no_database(tmp_path: Path) -> None:
    assert examine_file(tmp_path / "none.db")["ok"]
    (tmp_path / "text.db").write_bytes(b"not a database " * 1_000)
    assert [one["code"] for one in examine_file(tmp_path / "text.db")["findings"]] == ["store_damaged"]
    (tmp_path / "folder.db").mkdir()
    assert [one["code"] for one in examine_file(tmp_path / "folder.db")["findings"]] == ["store_unreadable"]
