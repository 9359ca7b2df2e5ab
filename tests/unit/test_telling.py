"""What a worker tells of its jobs: bounded, harmless to read, and never in the job's way."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import pytest

from planetwire.errors import BackendError
from planetwire.jobs.telling import JOBS_MAX, LINE_MAX, LINES_MAX, Telling, line_text
from planetwire.model import JobLine


class HandClock:
    def now(self) -> datetime:
        return datetime(2026, 5, 4, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None: ...


class Kept:
    def __init__(self) -> None:
        self.lines: dict[int, list[JobLine]] = {}
        self.away = False

    async def append(self, lines: Mapping[int, Sequence[JobLine]]) -> None:
        if self.away:
            raise BackendError("away")
        for task_id, told in lines.items():
            self.lines.setdefault(task_id, []).extend(told)

    async def read(self, task_id: int) -> Sequence[JobLine]:
        return self.lines.get(task_id, [])

    async def prune(self) -> int:
        return 0


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ("plain", "plain"),
        ("two\r\nlines\x1b[2J\x00", "two lines [2J"),
        ("half \ud83d pair", "half pair"),
        ("cannot reach https://user:s3cret@host/x", "cannot reach https://***@host/x"),
        ("GET /x?api_key=abc123&b=2 failed", "GET /x?api_key=***&b=2 failed"),
        ("Authorization: Bearer abc.def refused", "Authorization: *** refused"),
        ("password = 'hunter2'", "password = '***'"),
        ('{"api_key": "abc", "mag": 5}', '{"api_key": "***", "mag": 5}'),
        ("the tokeniser and monkeys stay", "the tokeniser and monkeys stay"),
    ],
)
def test_a_line_is_one_line_without_control_characters_and_secrets(told: str, shown: str) -> None:
    assert line_text(told) == shown


def test_a_line_has_five_hundred_characters_at_most() -> None:
    assert len(line_text("x" * 10_000)) == LINE_MAX
    assert line_text("x" * LINE_MAX) == "x" * LINE_MAX


async def test_what_was_not_written_yet_is_bounded_by_jobs_and_by_lines() -> None:
    kept = Kept()
    telling = Telling(kept, HandClock())
    for task_id in range(JOBS_MAX + 10):
        telling.tell(task_id, "started", "")
    for number in range(LINES_MAX + 50):
        telling.tell(JOBS_MAX, "batch", str(number))
    await telling.flush()
    assert len(kept.lines) == JOBS_MAX and min(kept.lines) == 10
    assert [line.text for line in kept.lines[JOBS_MAX]] == [str(n) for n in range(50, LINES_MAX + 50)]
    await telling.flush()
    assert len(kept.lines[JOBS_MAX]) == LINES_MAX


async def test_a_log_that_is_away_costs_its_lines_and_nothing_else() -> None:
    kept = Kept()
    telling = Telling(kept, HandClock())
    kept.away = True
    telling.tell(7, "batch", "lost")
    with pytest.raises(BackendError):
        await telling.flush()
    kept.away = False
    telling.tell(7, "batch", "told")
    await telling.flush()
    assert [line.text for line in kept.lines[7]] == ["told"]


async def test_a_log_that_breaks_ends_no_worker() -> None:
    """A bug in a log must cost its lines alone."""
    kept, turns = Kept(), 0

    class Broken(Kept):
        async def append(self, lines: Mapping[int, Sequence[JobLine]]) -> None:
            raise TypeError("a bug")

    class Clock(HandClock):
        async def sleep(self, seconds: float) -> None:
            nonlocal turns
            turns += 1
            if turns == 4:
                raise asyncio.CancelledError

    telling = Telling(Broken(), Clock())
    telling.tell(7, "batch", "lost")
    with pytest.raises(asyncio.CancelledError):
        await telling.run()
    assert turns == 4 and kept.lines == {}
