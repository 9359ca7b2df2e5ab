"""The shell's side: who typed what, `planetwire audit`, and clears that ask first."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import pwd
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from ledger_tools import SOMEBODY, claim_one, queue_on, wish
from planetwire.audit.audit_postgres import PostgresAuditLog
from planetwire.cli import app
from planetwire.database.postgres import Pool
from planetwire.jobs.ledger.desk_postgres import PostgresJobDesk
from planetwire.jobs.ledger.joblog_postgres import PostgresJobLog
from planetwire.jobs.telling import Telling
from planetwire.model import JobStatus, TaskType
from planetwire.model.acts import AuditQuery
from planetwire.runtime.clock import SystemClock

Shell = Callable[..., "asyncio.Future[Result]"]
ME = pwd.getpwuid(os.getuid()).pw_name


@pytest.fixture
async def shell(pg_dsn: str, pg_pool: Pool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[Shell]:
    """Runs `planetwire <words>` against the test's database; nobody sits there."""
    monkeypatch.setenv("PLANETWIRE_DATABASE_URL", pg_dsn)
    monkeypatch.setenv("PLANETWIRE_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")

    def run(*words: object) -> asyncio.Future[Result]:
        return asyncio.ensure_future(asyncio.to_thread(CliRunner().invoke, app, list(map(str, words))))

    yield run


async def noted(pool: Pool) -> list[tuple[str, int | None, str | None]]:
    entries, _ = await PostgresAuditLog(pool, 90).page(AuditQuery(who=ME), None, 100)
    assert {(entry.act.by.address, entry.act.by.role) for entry in entries} <= {("local", "admin")}
    return [(entry.act.what, entry.act.task_id, entry.act.source) for entry in reversed(entries)]


async def fill(pool: Pool, count: int, source: str = "alpha") -> None:
    await pool.execute(
        "insert into collected_data (source, external_key, kind)"
        " select $1, n::text, 'thing' from generate_series(1, $2) n",
        source,
        count,
    )


async def dead(pool: Pool, kind: TaskType = TaskType.COLLECT, source: str = "alpha") -> int:
    queue = queue_on(pool)
    job, _ = await queue.submit(wish(kind, source))
    lease = await claim_one(queue)
    await queue.finish(lease, JobStatus.FAILED, error=("not_found", "gone"))
    return job.id


async def jobs_of(pool: Pool) -> int:
    return int(await pool.fetchval("select count(*) from collection_tasks"))


async def test_each_writing_command_names_the_user_who_typed_it(shell: Shell, pg_pool: Pool) -> None:
    task_id = json.loads((await shell("jobs", "submit", "collect", "usgs_quakes", "--json")).stdout)["task_id"]
    assert (await shell("jobs", "cancel", task_id)).exit_code == 0
    (again,) = json.loads((await shell("jobs", "retry", task_id, "--json")).stdout)
    assert (await shell("jobs", "pause", "usgs_quakes")).exit_code == 0
    assert (await shell("jobs", "resume", "usgs_quakes")).exit_code == 0
    assert (await shell("outbox", "retry", "--all")).exit_code == 0
    assert (await shell("migrate", "--repair")).exit_code == 0
    assert await noted(pg_pool) == [
        ("job.submitted", task_id, "usgs_quakes"),
        ("job.cancelled", task_id, "usgs_quakes"),
        ("job.retried", task_id, "usgs_quakes"),
        ("job.submitted", again["task_id"], "usgs_quakes"),
        ("source.paused", None, "usgs_quakes"),
        ("source.resumed", None, "usgs_quakes"),
        ("outbox.retried", None, None),
        ("schema.repaired", None, None),
    ]


async def test_the_log_is_listed_filtered_and_given_as_json(shell: Shell, pg_pool: Pool) -> None:
    assert "nobody did anything" in (await shell("audit")).stdout
    await shell("jobs", "submit", "collect", "usgs_quakes")
    await PostgresJobDesk(pg_pool, queue_on(pg_pool)).submit(SOMEBODY, wish(source="bad\x1b[2J"))
    listed = (await shell("audit")).stdout
    for word in ("when", ME, "local", "job.submitted", "usgs_quakes", "somebody (admin)", "created true"):
        assert word in listed
    assert "\x1b" not in listed
    only = json.loads((await shell("audit", "--who", "somebody", "--since", "1 h", "--json")).stdout)
    assert [(row["who"], row["what"], row["role"]) for row in only] == [("somebody", "job.submitted", "admin")]
    assert "no such entry" in (await shell("audit", "--source", "nowhere")).stdout
    assert "older ones exist" in (await shell("audit", "--limit", 1)).stdout
    wrong = await shell("audit", "--since", "last week")
    assert wrong.exit_code == 2 and "7d" in wrong.stderr


async def test_beside_a_job_stands_who_started_and_stopped_it_and_its_log(shell: Shell, pg_pool: Pool) -> None:
    task_id = json.loads((await shell("jobs", "submit", "collect", "usgs_quakes", "--json")).stdout)["task_id"]
    await shell("jobs", "cancel", task_id)
    shown = (await shell("jobs", "show", task_id)).stdout
    assert f"submitted by {ME} (admin) from local" in shown and f"cancelled by {ME}" in shown
    assert "no log" in (await shell("jobs", "show", task_id, "--log")).stdout
    telling = Telling(PostgresJobLog(pg_pool, 60), SystemClock())
    telling.tell(task_id, "batch", "batch 1 committed")
    await telling.flush()
    assert "batch 1 committed" in (await shell("jobs", "show", task_id, "--log")).stdout
    record = json.loads((await shell("jobs", "show", task_id, "--log", "--json")).stdout)
    assert [line["text"] for line in record["log"]] == ["batch 1 committed"]
    assert [act["what"] for act in record["acts"]] == ["job.cancelled", "job.submitted"]


async def test_without_a_terminal_nothing_is_cleared_unless_it_was_said(shell: Shell, pg_pool: Pool) -> None:
    await fill(pg_pool, 1_234)
    job = await dead(pg_pool, TaskType.CLEAR_DATA)
    for words in (("submit", "clear_data", "alpha"), ("retry", job)):
        refused = await shell("jobs", *words)
        assert refused.exit_code == 2
        assert "1,234 records of alpha" in " ".join(refused.stderr.replace("│", " ").split())
        assert "--yes" in refused.stderr
        assert await jobs_of(pg_pool) == 1
    assert (await shell("jobs", "submit", "clear_data", "alpha", "--yes")).exit_code == 0
    assert (await shell("jobs", "retry", job, "--yes")).exit_code == 0
    assert await jobs_of(pg_pool) == 2


async def test_all_dead_jobs_but_clears_are_tried_again_and_the_clears_are_named(shell: Shell, pg_pool: Pool) -> None:
    clear, collect = await dead(pg_pool, TaskType.CLEAR_DATA), await dead(pg_pool, source="beta")
    said = (await shell("jobs", "retry", "--dead")).stdout
    assert f"job {clear} would delete data: skipped" in said and "1 dead job tried again" in said
    only = (await shell("jobs", "retry", "--dead")).stdout
    assert "skipped" in only and "no dead jobs" not in only
    answer = json.loads((await shell("jobs", "retry", "--dead", "--json")).stdout)
    assert (answer["retried"], answer["skipped"]) == ([], [clear])
    rows = await pg_pool.fetch("select task_type, source from collection_tasks where status = 'queued'")
    assert [tuple(row) for row in rows] == [("collect", "beta")]
    assert (await shell("jobs", "retry", "--dead", "--yes")).exit_code == 2
    assert collect != clear


@pytest.mark.parametrize(("answer", "code", "made"), [("y", 0, 1), ("n", 1, 0), ("", 1, 0)])
async def test_on_a_terminal_a_clear_says_how_many_rows_and_asks(
    shell: Shell, pg_pool: Pool, answer: str, code: int, made: int
) -> None:
    """A real terminal: the question is asked there, and what is not yes is no."""
    await fill(pg_pool, 42)
    ours, theirs = pty.openpty()

    def typed() -> tuple[int, str]:
        command = [sys.executable, "-m", "planetwire", "jobs", "submit", "clear_data", "alpha"]
        with subprocess.Popen(command, stdin=theirs, stdout=subprocess.DEVNULL, stderr=theirs) as process:
            os.close(theirs)
            shown = _read_until(ours, "[y/N]")
            os.write(ours, f"{answer}\n".encode())
            rest = _read_until(ours, None)
            return process.wait(30), shown + rest

    ended, shown = await asyncio.to_thread(typed)
    os.close(ours)
    assert "this deletes 42 records of alpha" in " ".join(shown.split())
    assert (ended, await jobs_of(pg_pool)) == (code, made)
    assert ("nothing was deleted" in shown) is (code == 1)


def _read_until(handle: int, mark: str | None) -> str:
    """What the terminal shows, up to the mark or its end."""
    shown = b""
    while mark is None or mark.encode() not in shown:
        try:
            chunk: Any = os.read(handle, 4_096)
        except OSError:  # the other side is closed
            break
        if not chunk:
            break
        shown += chunk
    return shown.decode(errors="replace")


async def test_where_no_database_is_the_log_is_in_the_data_dir(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from planetwire.settings import load_settings
    from planetwire.supervise.commands import audit_cli

    monkeypatch.setenv("PLANETWIRE_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("PLANETWIRE_HALVES", "terminal")
    settings, _ = load_settings()
    await asyncio.to_thread(audit_cli.note, settings, "token.added", name="ci", role="viewer")
    result = await asyncio.to_thread(CliRunner().invoke, app, ["audit", "--json"])
    (row,) = json.loads(result.stdout)
    assert (row["who"], row["what"], row["address"]) == (ME, "token.added", "local")
    assert row["details"] == {"name": "ci", "role": "viewer"}
