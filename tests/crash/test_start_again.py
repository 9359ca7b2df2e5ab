"""After a kill of everything the jobs of the dead run again at once; those of the living are left alone."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest_asyncio

from fix_installation import Installation, wait_for
from fix_roles import Role, Start, eventually
from planetwire.database.postgres import Pool
from planetwire.demo.server import FeedServer
from planetwire.jobs.marks_file import WorkerMarks

LEASE_S = 600  # whoever waited a lease out would be there after the test
SLOW = {
    "PLANETWIRE_JOBS__BATCH_ROWS": "500",
    "PLANETWIRE_JOBS__LEASE_S": str(LEASE_S),
    "PLANETWIRE_FEEDS__CELESTRAK_GP__MAX_ROWS_PER_S": "1000",
}
TOOK_OVER = "data_job.worker.took_over"


def test_a_collect_that_was_killed_with_everything_runs_again_as_soon_as_everything_does(
    installation: Callable[..., Installation],
) -> None:
    """E20: its lease has nearly ten minutes left, and its worker is certainly dead."""
    made = installation("demo", **SLOW)
    wait_for(lambda: (made.try_value("select count(*) from collected_data") or 0) >= 500, within_s=60, what="facts")
    before = made.value("select to_jsonb(t)::text from collection_tasks t where source = 'celestrak_gp'")
    assert '"running"' in before
    assert made.process is not None and made.process.stdout is not None
    for pid in [made.process.pid, *made.children().values()]:
        os.kill(pid, signal.SIGKILL)
    made.process.wait()
    made.process.stdout.close()
    made.start()
    second = wait_for(
        lambda: made.value(
            "select attempts = 2 and lease_seq = 3 and status = 'running'"
            " and started_at < created_at + interval '5 minutes'"
            " from collection_tasks where source = 'celestrak_gp' order by id limit 1"
        ),
        within_s=60,
        what="the job run by the new worker",
    )
    assert second


@pytest_asyncio.fixture
async def slow_start(
    start: Start, pg_pool: Pool, feed_server: FeedServer, tmp_path: Path
) -> AsyncIterator[Callable[..., Any]]:
    """Starts work processes on the test's database, each on the data dir it is told."""

    async def begin(folder: str = "one") -> Role:
        return await start("work", PLANETWIRE_DATA_DIR=str(tmp_path / folder), **SLOW)

    yield begin


async def job_of(pool: Pool) -> dict[str, Any]:
    async def look() -> Any:
        return await pool.fetchrow(
            "select *, lease_until - clock_timestamp() as left from collection_tasks where status = 'running'"
            " and records_processed > 0"
        )

    return dict(await eventually(look, "a collect under way"))


async def submit(pool: Pool) -> None:
    await pool.execute("insert into collection_tasks (task_type, source) values ('collect', 'celestrak_gp')")


async def killed(role: Role) -> None:
    role.process.send_signal(signal.SIGKILL)
    await role.process.wait()


async def test_a_worker_that_is_only_stopped_keeps_its_job_and_a_dead_one_does_not(
    slow_start: Callable[..., Any], pg_pool: Pool
) -> None:
    """E20: the kernel says who is dead, not the clock and not silence."""
    await submit(pg_pool)
    first = await slow_start()
    job = await job_of(pg_pool)
    first.process.send_signal(signal.SIGSTOP)
    second = await slow_start()
    told = await second.said(TOOK_OVER)
    assert (told["dead"], told["jobs"]) == ([], 0)
    now = await pg_pool.fetchrow("select * from collection_tasks where id = $1", job["id"])
    assert (now["worker_id"], now["lease_seq"], now["status"]) == (job["worker_id"], job["lease_seq"], "running")
    await killed(first)
    third = await slow_start()
    told = await third.said(TOOK_OVER)
    assert (told["dead"], told["jobs"]) == ([job["worker_id"]], 1)
    again = await job_of(pg_pool)
    assert again["id"] == job["id"] and again["worker_id"] != job["worker_id"]
    assert (again["attempts"], again["lease_seq"]) == (2, job["lease_seq"] + 2)


async def test_the_dead_of_another_installation_are_left_to_it(
    slow_start: Callable[..., Any], pg_pool: Pool, tmp_path: Path
) -> None:
    """E20: two installations on one database; a copy of a data dir is another one too."""
    await submit(pg_pool)
    first = await slow_start("one")
    job = await job_of(pg_pool)
    await killed(first)
    shutil.copytree(tmp_path / "one", tmp_path / "copy")
    for folder in ("two", "copy"):
        other = await slow_start(folder)
        told = await other.said(TOOK_OVER)
        assert (told["dead"], told["jobs"]) == ([], 0)
        now = await pg_pool.fetchrow("select * from collection_tasks where id = $1", job["id"])
        assert (now["worker_id"], now["status"]) == (job["worker_id"], "running")
    assert (await (await slow_start("one")).said(TOOK_OVER))["jobs"] == 1


def test_a_mark_of_another_boot_proves_nothing(tmp_path: Path) -> None:
    """A data dir that two hosts share: locks may not reach from one to the other."""
    with WorkerMarks(tmp_path, boot="there").living("w1"):
        pass
    with WorkerMarks(tmp_path, boot="here").dead() as dead:
        assert dead == []
    with WorkerMarks(tmp_path, boot="there").dead() as dead:
        assert [one.worker_id for one in dead] == ["w1"]
        with WorkerMarks(tmp_path, boot="there").dead() as same:
            assert same == [], "who is looking after it does so alone"


def test_a_mark_is_locked_before_it_can_be_seen_and_a_broken_one_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "broken.worker").write_text("{")
    marks = WorkerMarks(tmp_path)
    with marks.living("w1"), marks.dead() as dead:
        assert dead == []
    with marks.dead() as dead:
        assert [one.worker_id for one in dead] == ["w1"]
