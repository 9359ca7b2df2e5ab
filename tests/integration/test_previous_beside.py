"""A process of the previous version works the ledger on while this version's migrations are applied under it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import previous_version
from planetwire.database.postgres import connect, connected
from planetwire.migrating import migrate as module
from planetwire.migrating.migrate import migrate_postgres, migrations
from planetwire.supervise.embedded_postgres import EmbeddedPostgres, dsn_of

# A round for each line on stdin, on connections and prepared statements that stay; what it saw, as a line of JSON.
ROUNDS = """
import asyncio, json, sys
from planetwire.database.postgres import open_pool
from planetwire.jobs.ledger.board_postgres import PostgresJobBoard
from planetwire.jobs.ledger.jobs_postgres import PostgresJobQueue
from planetwire.model import JobRequest, JobStatus, TaskType
from planetwire.settings import JobSettings

TYPES = [kind.value for kind in TaskType]

async def main():
    pool = await open_pool(sys.argv[1], application="previous", min_size=1, max_size=1)
    queue = PostgresJobQueue(pool, JobSettings(), few_sources=0)
    board = PostgresJobBoard(pool)

    async def submit(kind, source):
        await queue.submit(JobRequest(kind, source))
        assert not (await queue.submit(JobRequest(kind, source)))[1], "its twin waits"

    async def drained():
        seen = []
        while leases := await queue.claim("previous", TYPES, 10):
            beats = await queue.heartbeat(leases)
            assert {lease.job.id for lease in leases} <= {job.id for job in await board.active()}
            for lease in leases:
                async with queue.batch(lease) as tx:
                    tx.progress(1)
                await queue.finish(lease, JobStatus.COMPLETED)
            seen.append([sorted(lease.job.task_type for lease in leases), len(beats)])
        return seen

    while await asyncio.to_thread(sys.stdin.readline):
        # First what the round before left. A worker claims all the time, and so its pool prepares anew what it had
        # prepared of the table before a change.
        left = await drained()
        for kind, source in ((TaskType.COLLECT, "a"), (TaskType.CLEAR_DATA, "a"), (TaskType.CLEAR_CACHE, None)):
            await submit(kind, source)
        seen = await drained()
        await submit(TaskType.COLLECT, "b")
        await submit(TaskType.EARTH_REFRESH, None)
        print(json.dumps([left, seen]), flush=True)

asyncio.run(main())
"""
IN_TURN = [[["clear_cache", "collect"], 2], [["clear_data"], 1]]
LEFT = [[["collect", "earth_refresh"], 2]]


@pytest.fixture
def previous(tmp_path: Path) -> Path:
    previous_version.unpack(tmp_path)
    return tmp_path / "src"


@pytest.fixture
async def older(pg_cluster: EmbeddedPostgres, previous: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    """Address of a database with the previous version's schema."""
    admin = await connect(dsn_of(pg_cluster.socket_dir, "postgres", "postgres"), application="test")
    await admin.execute("create database t_beside owner planetwire")
    dsn = dsn_of(pg_cluster.socket_dir, "planetwire", "t_beside")
    there = {path.name for path in (previous / "planetwire" / "_schema").glob("*.postgres.sql")}
    known = [one for one in migrations("postgres") if f"{one.name}.postgres.sql" in there]
    with monkeypatch.context() as patch:
        patch.setattr(module, "migrations", lambda engine: known)
        async with connected(dsn, application="test") as connection:
            await migrate_postgres(connection)
    try:
        yield dsn
    finally:
        await admin.execute("drop database t_beside with (force)")
        await admin.close()


async def test_the_previous_version_works_the_ledger_on_while_this_one_migrates(previous: Path, older: str) -> None:
    """S38: one write job of a source at a time, before and after."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        ROUNDS,
        older,
        env=os.environ | {"PYTHONPATH": str(previous)},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None and process.stdout is not None

    async def round_() -> Any:
        process.stdin.write(b"\n")  # type: ignore[union-attr]
        return json.loads(await asyncio.wait_for(process.stdout.readline(), 60) or b"null")  # type: ignore[union-attr]

    try:
        assert await round_() == [[], IN_TURN]
        async with connected(older, application="test") as connection:
            assert await migrate_postgres(connection)
        assert await round_() == [LEFT, IN_TURN]
        assert await round_() == [LEFT, IN_TURN]
    finally:
        process.stdin.close()
        await asyncio.wait_for(process.wait(), 30)
    assert process.returncode == 0
