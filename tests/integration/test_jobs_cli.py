"""`planetwire jobs …` as an operator types it, on a real ledger."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from ledger_tools import claim_one, queue_on, row_of, status_of, wish
from planetwire.cli import app
from planetwire.database.postgres import Pool
from planetwire.jobs.ledger.jobs_postgres import PostgresJobQueue
from planetwire.model import JobStatus, TaskType

Shell = Callable[..., "asyncio.Future[Result]"]


@pytest.fixture
async def shell(pg_dsn: str, pg_pool: Pool, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Shell]:
    """Runs `planetwire jobs <words>` against the test's database; a thread of its own, since it has a loop."""
    monkeypatch.setenv("PLANETWIRE_DATABASE_URL", pg_dsn)
    monkeypatch.setenv("COLUMNS", "160")

    def run(*words: object) -> asyncio.Future[Result]:
        return asyncio.ensure_future(asyncio.to_thread(CliRunner().invoke, app, ["jobs", *map(str, words)]))

    yield run


async def _fail(queue: PostgresJobQueue, code: str = "not_found", text: str = "gone", sample: str = "") -> int:
    lease = await claim_one(queue)
    await queue.finish(lease, JobStatus.FAILED, error=(code, text), sample=sample or None)
    return lease.job.id


async def _dead(pool: Pool, *sources: str, **fault: Any) -> list[int]:
    queue = queue_on(pool)
    ids = []
    for source in sources:
        await queue.submit(wish(source=source))
        ids.append(await _fail(queue, **fault))
    return ids


async def test_dead_jobs_are_listed_with_what_was_at_fault_until_they_are_tried_again(
    shell: Shell, pg_pool: Pool
) -> None:
    (job,) = await _dead(pg_pool, "usgs_quakes", text="no such page", sample="<html>sorry")
    listed = (await shell("dead")).stdout
    for word in (str(job), "collect", "usgs_quakes", "not_found", "no such page", "<html>sorry", "1/3"):
        assert word in listed
    assert [one["id"] for one in json.loads((await shell("dead", "--json")).stdout)] == [job]
    assert [one["id"] for one in json.loads((await shell("ls", "--dead", "--json")).stdout)] == [job]
    answer = json.loads((await shell("retry", job, "--json")).stdout)
    assert answer == [{"retried": job, "task_id": answer[0]["task_id"], "status": "queued", "created": True}]
    assert "no dead jobs" in (await shell("dead")).stdout
    assert f"tried again as {answer[0]['task_id']}" in (await shell("ls")).stdout


async def test_what_a_feed_sent_reaches_no_terminal_as_a_control_character(shell: Shell, pg_pool: Pool) -> None:
    (job,) = await _dead(pg_pool, "alpha", text="bad \x1b]0;owned\x07 title", sample="\x1b[2J\r\n[red]boo")
    for words in (("ls",), ("dead",), ("show", job), ("watch", job)):
        shown = (await shell(*words)).stdout
        assert "owned" in shown and not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", shown), words
    assert "[red]boo" in (await shell("dead")).stdout


async def test_all_dead_jobs_are_tried_again_and_those_of_one_source_share_a_job(shell: Shell, pg_pool: Pool) -> None:
    await _dead(pg_pool, "alpha", "alpha", "alpha", "beta")
    said = (await shell("retry", "--dead", "--source", "alpha")).stdout
    assert "3 dead jobs of alpha tried again as job" in said and "share a job" in said
    answer = json.loads((await shell("retry", "--dead", "--json")).stdout)
    assert (len(answer["retried"]), answer["more"]) == (1, False)
    assert await pg_pool.fetchval("select count(*) from collection_tasks where status = 'queued'") == 2
    assert (await shell("retry", "--dead")).stdout.strip() == "no dead jobs"


async def test_dead_jobs_of_one_source_share_a_job_however_fast_a_worker_is(shell: Shell, pg_pool: Pool) -> None:
    dead = await _dead(pg_pool, *["alpha"] * 20)
    queue = queue_on(pg_pool)
    over = asyncio.Event()

    async def work() -> None:
        while not over.is_set():
            for lease in await queue.claim("fast", ["collect"], 5):
                await queue.finish(lease, JobStatus.COMPLETED)

    worker = asyncio.ensure_future(work())
    answer = json.loads((await shell("retry", "--dead", "--json")).stdout)
    over.set()
    await worker
    assert sorted(one["retried"] for one in answer["retried"]) == dead
    assert len({one["task_id"] for one in answer["retried"]}) == 1
    assert [one["created"] for one in answer["retried"]].count(True) == 1


async def test_more_dead_jobs_than_one_call_tries_again_are_said_to_be_left(
    shell: Shell, pg_pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("planetwire.supervise.commands.jobs_again.REDRIVEN_MAX", 2)
    monkeypatch.setattr("planetwire.supervise.commands.jobs_again.DEAD_PAGE", 1)
    await _dead(pg_pool, "alpha", "beta", "gamma")
    assert "more are dead: run this again" in (await shell("retry", "--dead")).stdout
    assert "more" not in (await shell("retry", "--dead")).stdout


async def test_a_retry_of_several_jobs_does_what_it_can_and_exits_1(shell: Shell, pg_pool: Pool) -> None:
    (job,) = await _dead(pg_pool, "alpha")
    waiting, _ = await queue_on(pg_pool).submit(wish(source="beta"))
    answer = await shell("retry", job, waiting.id, 999)
    assert answer.exit_code == 1
    assert f"job {job} is tried again as job" in answer.stdout and "there is no job 999" in answer.stdout
    assert f"job {waiting.id} is queued and not over" in answer.stdout


async def test_a_waiting_job_says_why_it_waits(shell: Shell, pg_pool: Pool) -> None:
    queue = queue_on(pg_pool, retry_s=600)
    busy, _ = await queue.submit(wish(source="busy"))
    await claim_one(queue)
    backoff, _ = await queue.submit(wish(source="flaky"))
    await _fail(queue, code="transient", text="503")
    reasons = {backoff.id: r"attempt 1 of 3 failed, again in \d+ min: \[transient\] 503"}
    reasons[(await queue.submit(wish(source="busy")))[0].id] = rf"behind job {busy.id}, which runs"
    head, _ = await queue.submit(wish(source="free"))
    reasons[head.id] = "may run; no worker has taken it yet"
    reasons[(await queue.submit(wish(TaskType.CLEAR_DATA, "free")))[0].id] = rf"behind job {head.id}$"
    reasons[(await queue.submit(wish(source="held")))[0].id] = r"its source has been paused for \d+ s"
    await queue.pause("held", True)
    later = await pg_pool.fetchval(
        """insert into collection_tasks (task_type, source, scheduled_at)
           values ('collect', 'later', clock_timestamp() + interval '3 h') returning id"""
    )
    reasons[later] = r"scheduled in 2 h"
    lines = {line.split()[0]: line.rstrip() for line in (await shell("ls")).stdout.splitlines()}
    for job, reason in reasons.items():
        assert re.search(reason, lines[str(job)]), lines[str(job)]
        assert re.search(reason, (await shell("show", job)).stdout, re.MULTILINE)
    assert (await shell("ls")).stdout.splitlines()[-1] == "1 running, 6 queued, 0 dead"


async def test_pausing_and_resuming_say_what_they_mean_and_may_be_repeated(shell: Shell, pg_pool: Pool) -> None:
    queue = queue_on(pg_pool)
    running, _ = await queue.submit(wish(source="celestrak_gp"))
    await claim_one(queue)
    said = (await shell("pause", "celestrak_tle")).stdout
    assert said.startswith("celestrak_gp paused") and f"Job {running.id} runs and goes on" in said
    assert "paused for 0 s already" in (await shell("pause", "celestrak_gp")).stdout
    assert "has been paused" in (await shell("submit", "collect", "celestrak_gp")).stdout
    assert "goes on" in (await shell("resume", "celestrak_gp")).stdout
    assert json.loads((await shell("resume", "celestrak_gp", "--json")).stdout)["changed"] is False
    assert await pg_pool.fetchval("select count(*) from paused_sources") == 0


async def test_pausing_what_no_feed_has_is_done_with_a_warning_and_what_has_no_jobs_is_refused(
    shell: Shell, pg_pool: Pool
) -> None:
    odd = await shell("pause", "usgs_quake")
    assert odd.exit_code == 0 and "did you mean usgs_quakes?" in odd.stderr
    assert await pg_pool.fetchval("select source from paused_sources") == "usgs_quake"
    refused = await shell("pause", "awc_metar")
    assert refused.exit_code == 1 and "runs without jobs" in refused.stderr


async def test_a_stop_says_what_is_kept_and_what_happens_next(shell: Shell, pg_pool: Pool) -> None:
    queue = queue_on(pg_pool)
    job, _ = await queue.submit(wish())
    lease = await claim_one(queue)
    async with queue.batch(lease) as tx:
        tx.progress(5000)
    said = (await shell("cancel", job.id)).stdout
    assert f"job {job.id} cancelling: 1 batch with 5,000 records so far, which stay" in said
    assert "within about 2 s" in said and f"jobs watch {job.id}" in said
    again = json.loads((await shell("cancel", job.id, "--json")).stdout)
    assert again == {"task_id": job.id, "status": "cancelling", "batches": 1, "records_processed": 5000}
    waiting, _ = await queue.submit(wish(source="beta"))
    assert "cancelled before it ran" in (await shell("cancel", waiting.id)).stdout
    late = await shell("cancel", waiting.id)
    assert late.exit_code == 1 and "is cancelled already" in late.stderr


async def test_a_job_is_shown_for_reading_and_as_json(shell: Shell, pg_pool: Pool) -> None:
    (job,) = await _dead(pg_pool, "alpha", sample="first line")
    card = (await shell("show", job)).stdout
    for words in (
        f"job {job}: collect alpha, failed",
        "[not_found] gone",
        "first line",
        "0 s ago",
        f"jobs retry {job}",
    ):
        assert words in card
    assert json.loads((await shell("show", job, "--json")).stdout)["sample"] == "first line"


@pytest.mark.parametrize(
    ("words", "code", "hint"),
    [
        (("retry",), 2, "--dead"),
        (("retry", 1, "--dead"), 2, "--dead"),
        (("retry", 1, "--source", "alpha"), 2, "--source goes with --dead"),
        (("show", 2**63), 2, "ID"),
        (("show", "x"), 2, "ID"),
        (("show", 7), 1, "there is no job 7"),
        (("watch", 7), 1, "there is no job 7"),
        (("watch", 7, "--source", "alpha"), 2, "not both"),
        (("ls", "--status", "runing"), 2, "did you mean running"),
        (("ls", "--dead", "--status", "queued"), 2, "leave out"),
        (("ls", "--limit", 0), 2, "--limit"),
        (("submit", "collect"), 2, "needs a source"),
        (("submit", "clear_data", ""), 2, "needs a source"),
        (("submit", "collect", "usgs_quakes", "--layer", "satellites"), 2, "--layer is for"),
        (("submit", "collect", "usgs_quake"), 1, "did you mean usgs_quakes"),
        (("submit", "collect", "usgs_quakes", "--priority", 2**40), 2, "--priority"),
        (("pause", " "), 2, "name a source"),
    ],
)
async def test_wrong_use_is_answered_in_words_and_changes_nothing(
    words: tuple[object, ...], code: int, hint: str, shell: Shell, pg_pool: Pool
) -> None:
    answer = await shell(*words)
    flat = " ".join(re.sub(r"[│╭╮╰╯─]", " ", answer.stderr).split())
    assert (answer.exit_code, hint in flat, "Traceback" in answer.output) == (code, True, False), flat
    assert await pg_pool.fetchval("select count(*) from collection_tasks") == 0


async def test_refreshing_needs_no_source_and_may_name_a_layer(shell: Shell, pg_pool: Pool) -> None:
    job = json.loads((await shell("submit", "earth_refresh", "--layer", "satellites", "--json")).stdout)["task_id"]
    row = await row_of(pg_pool, job)
    assert (row["source"], row["payload"]) == (None, {"layer": "satellites"})


async def test_a_ledger_of_an_older_version_is_named_as_such(shell: Shell, pg_pool: Pool) -> None:
    await pg_pool.execute("drop table paused_sources")
    await pg_pool.execute("delete from planetwire_migrations where name like '0006%'")
    answer = await shell("ls")
    assert answer.exit_code == 1 and "run `planetwire migrate`" in answer.stderr


async def test_a_watch_ends_with_the_named_jobs_and_says_whether_all_completed(shell: Shell, pg_pool: Pool) -> None:
    queue = queue_on(pg_pool)
    first, _ = await queue.submit(wish())
    lease = await claim_one(queue)
    watching = shell("watch", first.id)
    async with queue.batch(lease) as tx:
        tx.progress(10, total=20)
    await queue.finish(lease, JobStatus.COMPLETED)
    done = await watching
    assert done.exit_code == 0 and f"job {first.id} collect alpha completed" in done.stdout
    (dead,) = await _dead(pg_pool, "beta")
    both = await shell("watch", first.id, dead)
    assert both.exit_code == 1 and "failed at attempt 1 of 3: [not_found] gone" in both.stdout
    assert await status_of(pg_pool, first.id) == JobStatus.COMPLETED


async def test_one_look_shows_what_runs_and_ends(shell: Shell, pg_pool: Pool) -> None:
    queue = queue_on(pg_pool)
    job, _ = await queue.submit(wish())
    async with queue.batch(await claim_one(queue)) as tx:
        tx.progress(10, total=20, phase="write")
    look = await shell("watch", "--once")
    assert look.exit_code == 0 and f"job {job.id} collect alpha running write: 10/20 (50%)" in look.stdout
    assert "1 running, 0 queued, 0 dead" in look.stdout
    records = (await shell("watch", "--once", "--json", "--source", "alpha")).stdout.splitlines()
    assert [json.loads(line)["id"] for line in records] == [job.id]


async def test_a_reader_that_closes_the_pipe_ends_a_watch_without_a_word(pg_dsn: str, pg_pool: Pool) -> None:
    queue = queue_on(pg_pool)
    await queue.submit(wish())
    lease = await claim_one(queue)
    reading, writing = os.pipe()
    watching = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "planetwire", "jobs", "watch"),
        env={**os.environ, "PLANETWIRE_DATABASE_URL": pg_dsn},
        stdout=writing,
        stderr=asyncio.subprocess.PIPE,
    )
    os.close(writing)
    assert await asyncio.to_thread(os.read, reading, 100)
    os.close(reading)
    await queue.finish(lease, JobStatus.COMPLETED)
    _, said = await watching.communicate()
    assert (watching.returncode, said) == (1, b"")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
async def test_a_watch_that_is_interrupted_ends_cleanly_and_leaves_the_jobs_alone(
    number: signal.Signals, code: int, pg_dsn: str, pg_pool: Pool
) -> None:
    queue = queue_on(pg_pool)
    job, _ = await queue.submit(wish())
    await claim_one(queue)
    before = await row_of(pg_pool, job.id)
    watching = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "planetwire", "jobs", "watch"),
        env={**os.environ, "PLANETWIRE_DATABASE_URL": pg_dsn},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert watching.stdout is not None
    assert f"job {job.id} collect alpha running" in (await watching.stdout.readline()).decode()
    watching.send_signal(number)
    _, said = await watching.communicate()
    assert watching.returncode == code and b"Traceback" not in said
    assert await row_of(pg_pool, job.id) == before


async def test_a_clearing_is_submitted_under_the_very_name_that_was_given(shell: Shell, pg_pool: Pool) -> None:
    await shell("submit", "collect", "celestrak_tle")
    await shell("submit", "clear_data", "celestrak_tle", "--yes")
    rows = await pg_pool.fetch("select task_type, source from collection_tasks order by id")
    assert [tuple(row) for row in rows] == [("collect", "celestrak_gp"), ("clear_data", "celestrak_tle")]
