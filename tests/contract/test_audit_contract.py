"""The port `AuditLog`, the same over every backend: the ledger's database, and files where there is none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio

from planetwire.audit.audit_file import FileAuditLog
from planetwire.audit.audit_postgres import PostgresAuditLog
from planetwire.database.postgres import Pool
from planetwire.model import Actor, Role
from planetwire.model.acts import CUT, DETAILS_MAX_BYTES, Act, AuditQuery
from planetwire.ports import AuditLog

KEEP_DAYS = 90
ANN = Actor("ann", Role.ADMIN, "192.0.2.7")
BEN = Actor("ben", Role.OPERATOR, "local")
ALL = AuditQuery()


@dataclass
class Kept:
    """A log, and how days pass for it."""

    log: AuditLog
    passes: Callable[[float], Awaitable[None]]


def in_files(folder: Path) -> Kept:
    late = [timedelta()]

    async def passes(days: float) -> None:
        late[0] += timedelta(days=days)

    return Kept(FileAuditLog(folder / "audit", KEEP_DAYS, lambda: datetime.now(UTC) + late[0]), passes)


def in_database(pool: Pool) -> Kept:
    async def passes(days: float) -> None:
        """The database has no clock to move: what is there is made older instead."""
        await pool.execute(
            "alter table audit_log disable trigger user; "
            f"update audit_log set at = at - interval '{days * 86_400} s'; alter table audit_log enable trigger user"
        )

    return Kept(PostgresAuditLog(pool, KEEP_DAYS), passes)


@pytest_asyncio.fixture(params=["postgres", "file"])
async def kept(request: pytest.FixtureRequest, pg_pool: Pool, tmp_path: Path) -> AsyncIterator[Kept]:
    yield in_database(pg_pool) if request.param == "postgres" else in_files(tmp_path)


async def test_an_act_is_read_back_as_it_was_noted(kept: Kept) -> None:
    before = datetime.now(UTC)
    act = Act(ANN, "job.submitted", 2**40, "usgs_quakes", 17, {"created": True, "list": [1, "二"], "none": None})
    await kept.log.note(act)
    (entry,), following = await kept.log.page(ALL, None, 10)
    assert (entry.act, following) == (act, None)
    assert before - timedelta(seconds=5) < entry.at < datetime.now(UTC) + timedelta(seconds=5)


async def test_pages_come_newest_first_and_miss_and_repeat_nothing(kept: Kept) -> None:
    for number in range(7):
        await kept.log.note(Act(ANN, "job.submitted", task_id=number + 1))
    seen: list[int | None] = []
    cursor = None
    while True:
        entries, cursor = await kept.log.page(ALL, cursor, 3)
        seen += [entry.act.task_id for entry in entries]
        await kept.log.note(Act(BEN, "job.cancelled", task_id=99))  # what comes meanwhile is on no later page
        if cursor is None:
            break
    assert seen == [7, 6, 5, 4, 3, 2, 1]


async def test_entries_are_found_by_who_source_job_action_and_time(kept: Kept) -> None:
    await kept.log.note(Act(ANN, "job.submitted", 1, "usgs_quakes"))
    await kept.passes(2)
    await kept.log.note(Act(BEN, "job.cancelled", 1, "usgs_quakes"))
    await kept.log.note(Act(ANN, "source.paused", source="celestrak_gp"))

    async def found(**wanted: object) -> list[tuple[str, str]]:
        entries, _ = await kept.log.page(AuditQuery(**wanted), None, 10)  # type: ignore[arg-type]
        return [(entry.act.by.who, entry.act.what) for entry in entries]

    assert await found(who="ann") == [("ann", "source.paused"), ("ann", "job.submitted")]
    assert await found(source="usgs_quakes") == [("ben", "job.cancelled"), ("ann", "job.submitted")]
    assert await found(task_id=1, what="job.cancelled") == [("ben", "job.cancelled")]
    newest = (await kept.log.page(ALL, None, 1))[0][0].at
    assert len(await found(since=newest - timedelta(days=1))) == 2
    assert await found(who="nobody") == []


async def test_entries_go_when_their_time_is_over_and_not_before(kept: Kept) -> None:
    await kept.log.note(Act(ANN, "job.submitted", task_id=1))
    await kept.passes(KEEP_DAYS - 1)
    await kept.log.note(Act(ANN, "job.submitted", task_id=2))
    assert await kept.log.prune() == 0
    await kept.passes(2.5)
    assert await kept.log.prune() == 1
    assert await kept.log.prune() == 0
    entries, _ = await kept.log.page(ALL, None, 10)
    assert [entry.act.task_id for entry in entries] == [2]


@pytest.mark.parametrize(
    "details",
    [{"text": "x" * (DETAILS_MAX_BYTES + 1)}, {"text": "a\x00b"}, {"text": "half \ud83d"}, {"number": float("nan")}],
    ids=["long", "nul", "surrogate", "nan"],
)
async def test_details_that_no_store_takes_are_told_by_name_alone(kept: Kept, details: dict[str, object]) -> None:
    await kept.log.note(Act(ANN, "source.changed", details=details))
    (entry,), _ = await kept.log.page(ALL, None, 1)
    assert entry.act.details == {CUT: list(details)}


async def test_names_that_somebody_made_up_become_plain(kept: Kept) -> None:
    await kept.log.note(Act(Actor("a\x00\x1b[2J\ud800", Role.VIEWER, "x" * 1_000), "session.refused", source="\x07"))
    (entry,), _ = await kept.log.page(ALL, None, 1)
    assert entry.act.by.who.isprintable() and entry.act.source == "\N{REPLACEMENT CHARACTER}"
    assert len(entry.act.by.address) == 200


async def test_many_at_one_time_are_all_kept(kept: Kept) -> None:
    await asyncio.gather(*(kept.log.note(Act(ANN, "job.submitted", task_id=n)) for n in range(50)))
    entries, _ = await kept.log.page(ALL, None, 100)
    assert sorted(entry.act.task_id or 0 for entry in entries) == list(range(50))
    assert len({entry.id for entry in entries}) == 50


async def test_a_line_that_was_cut_short_hides_no_other(tmp_path: Path) -> None:
    """A full disk, a crash."""
    kept = in_files(tmp_path)
    await kept.log.note(Act(ANN, "job.submitted", task_id=1))
    (day,) = (tmp_path / "audit").glob("*.jsonl")
    day.write_bytes(day.read_bytes() + b'{"at":"2026-')
    await kept.log.note(Act(ANN, "job.submitted", task_id=2))
    entries, _ = await kept.log.page(ALL, None, 10)
    assert [entry.act.task_id for entry in entries] == [2, 1]
    assert day.stat().st_mode & 0o777 == 0o600


async def test_what_was_taken_over_is_dropped_and_what_came_meanwhile_stays(tmp_path: Path) -> None:
    kept = in_files(tmp_path).log
    assert isinstance(kept, FileAuditLog)
    await kept.note(Act(ANN, "token.added"))
    taken = await kept.take()
    await kept.note(Act(BEN, "token.removed"))
    await kept.drop([key for _, key, _ in taken])
    assert [act.what for _, _, act in taken] == ["token.added"]
    assert [act.what for _, _, act in await kept.take()] == ["token.removed"]
