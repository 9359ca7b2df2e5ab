"""The task board alone, with time moved by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import cast

import orjson
import pytest
import pytest_asyncio

from job_rows import a_job
from live_streams import MemoryBoard
from planetwire.model import JobStatus
from planetwire.outbox.wakeup_memory import MemoryWakeup
from planetwire.ports import JobBoard
from planetwire.runtime.clock import ManualClock
from planetwire.web.live.task_board import TaskBoard


class Watcher:
    def __init__(self) -> None:
        self.rows: list[tuple[int, int]] = []

    def offer(self, job_id: int, frame: bytes) -> None:
        data = orjson.loads(frame)["data"]
        assert data["id"] == job_id
        self.rows.append((job_id, data["records_processed"]))


class LastFrame:
    last = b""

    def offer(self, job_id: int, frame: bytes) -> None:
        self.last = frame


class Desk:
    def __init__(self) -> None:
        self.clock = ManualClock(datetime(2026, 5, 1, tzinfo=UTC))
        self.board = MemoryBoard()
        self.wakeup = MemoryWakeup()
        self.tasks = TaskBoard(cast("JobBoard", self.board), self.clock, self.wakeup)
        self.running = asyncio.ensure_future(self.tasks.run())

    def set(self, job_id: int, records: int, status: JobStatus = JobStatus.RUNNING) -> None:
        self.board.jobs[job_id] = a_job(job_id, records_processed=records, status=status)

    async def settle(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)

    async def advance(self, seconds: float) -> None:
        await self.settle()
        self.clock.advance(seconds)
        await self.settle()


@pytest_asyncio.fixture
async def desk() -> AsyncIterator[Desk]:
    made = Desk()
    yield made
    made.running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await made.running


async def test_ledger_is_read_only_while_somebody_watches(desk: Desk) -> None:
    watcher = Watcher()
    await desk.advance(5)
    assert desk.board.looks == 0
    desk.tasks.attach(watcher)
    await desk.settle()
    assert desk.board.looks == 1
    desk.tasks.detach(watcher)
    desk.tasks.detach(watcher)
    for _ in range(8):
        await desk.advance(0.25)
    assert desk.board.looks <= 2


async def test_row_is_sent_when_it_changed_and_at_most_each_quarter_second(desk: Desk) -> None:
    watcher = Watcher()
    desk.set(1, 0)
    desk.set(2, 0)
    desk.tasks.attach(watcher)
    await desk.settle()
    assert watcher.rows == [(1, 0), (2, 0)]
    for records in range(1, 101):
        desk.set(1, records)
        await desk.advance(0.01)
    assert len(watcher.rows) - 2 <= 4
    await desk.advance(0.25)
    assert watcher.rows[-1] == (1, 100)
    before = len(watcher.rows)
    await desk.advance(0.25)
    assert len(watcher.rows) == before


async def test_late_watcher_gets_the_whole_active_set_and_the_first_only_changes(desk: Desk) -> None:
    first, late = Watcher(), Watcher()
    desk.set(1, 5)
    desk.set(2, 6)
    desk.tasks.attach(first)
    await desk.settle()
    desk.tasks.attach(late)
    await desk.advance(0.25)
    assert first.rows == late.rows == [(1, 5), (2, 6)]


async def test_idle_ledger_is_looked_at_once_a_second_or_on_a_wakeup(desk: Desk) -> None:
    watcher = Watcher()
    desk.set(1, 0, JobStatus.COMPLETED)
    desk.tasks.attach(watcher)
    await desk.settle()
    looks = desk.board.looks
    for _ in range(3):
        await desk.advance(0.25)
    assert desk.board.looks == looks
    await desk.advance(0.25)
    assert desk.board.looks == looks + 1
    await desk.advance(0.25)
    desk.set(2, 0)
    desk.wakeup.ring()
    await desk.settle()
    assert watcher.rows[-1] == (2, 0)


async def test_ledger_that_fails_is_asked_again(desk: Desk) -> None:
    watcher = Watcher()
    desk.set(1, 3)
    desk.board.failing = True
    desk.tasks.attach(watcher)
    await desk.advance(0.25)
    assert watcher.rows == []
    desk.board.failing = False
    await desk.advance(1)
    await desk.advance(1)
    assert watcher.rows == [(1, 3)]


async def test_strangers_are_not_shown_how_a_job_failed(desk: Desk) -> None:
    """`error_code` says enough; the texts may tell of the installation, or of what a feed answered."""
    known, stranger = LastFrame(), LastFrame()
    desk.set(1, 5)
    desk.board.jobs[1] = desk.board.jobs[1]._replace(
        error_code="transient", error="cannot reach 10.1.2.3", sample="<html>", message="cannot reach 10.1.2.3"
    )
    desk.tasks.attach(known)
    desk.tasks.attach(stranger, sees_errors=False)
    await desk.settle()
    assert b"10.1.2.3" in known.last and b"<html>" in known.last
    assert b"10.1.2.3" not in stranger.last and b"<html>" not in stranger.last
    row = orjson.loads(stranger.last)["data"]
    assert (row["error_code"], row["error"], row["sample"], row["message"]) == ("transient", None, None, None)
    desk.tasks.detach(stranger)
    desk.tasks.attach(stranger)
    await desk.advance(0.25)
    assert b"10.1.2.3" in stranger.last
