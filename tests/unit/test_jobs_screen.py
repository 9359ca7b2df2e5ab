"""What `jobs watch` shows, and that it outlives a database that goes away for a moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any, cast

import pytest
from rich.console import Console

from job_rows import a_job
from planetwire.errors import BackendError, NotFound
from planetwire.jobs.ledger.board_postgres import PostgresJobBoard, Standing
from planetwire.model import Job, JobStatus
from planetwire.supervise.commands import jobs_watch
from planetwire.supervise.commands.jobs_screen import Bars, Pace, Plain, Snapshot
from planetwire.supervise.commands.jobs_watch import Watch, follow

NOW = datetime(2026, 5, 1, 0, 1, tzinfo=UTC)
COUNTS = {"running": 1, "queued": 10_000, "dead": 0}


class Time:
    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


def look(*jobs: Job) -> Snapshot:
    return Snapshot(jobs, COUNTS, NOW, {})


def test_the_rate_is_that_of_the_last_seconds_and_a_new_attempt_begins_anew() -> None:
    time = Time()
    pace = Pace(time)
    for done in (0, 100, 200):
        pace.note([a_job(1, records_processed=done, records_total=400)])
        time.at += 1
    job = a_job(1, records_processed=200, records_total=400, progress=0.5)
    assert pace.words(job) == "200/400 (50%), 100/s, 2 s left"
    for _ in range(20):
        pace.note([job])
        time.at += 1
    assert pace.rate(job) == 0
    again = a_job(1, attempts=2, records_processed=0)
    pace.note([again])
    assert pace.words(again) == ""


def test_without_a_terminal_there_is_a_line_a_change_and_progress_now_and_then(
    capsys: pytest.CaptureFixture[str],
) -> None:
    time = Time()
    screen = Plain(time)
    for done in range(0, 120, 10):
        screen.show(look(a_job(1, phase="write", records_processed=done)))
        time.at += 1
    screen.show(look(a_job(1, status=JobStatus.CANCELLING, records_processed=120)))
    screen.ended(a_job(1, status=JobStatus.CANCELLED, batches=2, records_processed=120))
    said = [line.split("Z ", 1)[1] for line in capsys.readouterr().out.splitlines()]
    assert said == [
        "job 1 collect usgs_quakes running write",
        "job 1 collect usgs_quakes running write: 50, 10/s",
        "job 1 collect usgs_quakes running write: 100, 10/s",
        "job 1 collect usgs_quakes cancelling: 120, 10/s",
        "job 1 collect usgs_quakes cancelled: kept 2 batches with 120 records",
    ]


def test_a_terminal_gets_bars_counts_and_ends_and_its_cursor_back() -> None:
    out = StringIO()
    console = Console(file=out, force_terminal=True, width=120, height=12, color_system=None, legacy_windows=False)
    stopping = a_job(2, status=JobStatus.CANCELLING, cancel_requested_at=NOW - timedelta(seconds=7))
    many = [a_job(n, phase="write", records_processed=5, records_total=10, progress=0.5) for n in range(10, 40)]
    with Bars(console) as screen:
        screen.show(look(stopping, *many))
        screen.ended(a_job(9, status=JobStatus.FAILED, error_code="bad_body", error="[red] \x1b[2J"))
    shown = out.getvalue()
    for words in ("cancelling 7 s", "5/10 (50%)", "━", "10,000+ queued", "… and 28 more", "[bad_body] [red] �[2J"):
        assert words in shown, words
    assert shown.rfind("\x1b[?25h") > shown.rfind("\x1b[?25l")


class Board:
    """Answers of a ledger, one look after the other; an exception is raised."""

    def __init__(self, *answers: Sequence[Job] | Exception) -> None:
        self.answers = list(answers)

    async def active(self) -> Sequence[Job]:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def get(self, task_id: int) -> Job:
        raise NotFound(f"there is no job {task_id}")

    async def counts(self) -> Mapping[str, int]:
        return COUNTS

    async def standing(self, sources: Any) -> tuple[datetime, Mapping[str, Standing]]:
        return NOW, {}


def watching(board: Board, *ids: int) -> Watch:
    return Watch(cast("PostgresJobBoard", board), ids)


async def no_wait(seconds: float) -> None:
    """The next look follows at once."""


AWAY = BackendError("PostgreSQL: gone")


async def test_a_watch_goes_on_when_the_database_comes_back(capsys: pytest.CaptureFixture[str]) -> None:
    board = Board([a_job(1)], AWAY, AWAY, [a_job(1, status=JobStatus.COMPLETED)])
    assert await follow(watching(board, 1), Plain(), sleep=no_wait) == 0
    said = capsys.readouterr().out
    assert said.count("does not answer") == 1 and said.count("answers again") == 1 and "completed" in said


async def test_a_watch_without_a_database_says_so_at_once_and_gives_up_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(BackendError):
        await follow(watching(Board(AWAY), 1), Plain(), sleep=no_wait)
    monkeypatch.setattr(jobs_watch, "GIVE_UP_S", 0.0)
    with pytest.raises(BackendError):
        await follow(watching(Board([a_job(1)], AWAY, AWAY), 1), Plain(), sleep=no_wait)


async def test_what_ended_before_the_watch_is_no_news_and_a_pause_between_attempts_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    old, done = a_job(1, status=JobStatus.COMPLETED), a_job(2, status=JobStatus.COMPLETED)
    back = a_job(
        2, status=JobStatus.QUEUED, scheduled_at=NOW + timedelta(seconds=5), error_code="transient", error="503"
    )
    stranger = a_job(3, status=JobStatus.QUEUED)
    board = Board([old, a_job(2)], [old, back, stranger], [old, done], [old, done], KeyError("enough"))
    with pytest.raises(KeyError):
        await follow(watching(board), Plain(), sleep=no_wait)
    said = [line.split("Z ", 1)[1] for line in capsys.readouterr().out.splitlines()]
    assert said == [
        "job 2 collect usgs_quakes running",
        "job 2 collect usgs_quakes queued: attempt 1 of 3 failed, again in 5 s: [transient] 503",
        "job 2 collect usgs_quakes completed: 0 records",
    ]
