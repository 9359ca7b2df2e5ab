"""Five kinds of trouble, one law: every job ends exactly once by its effects, and all of them end.

Worker processes are real and are started again when they end. What is counted are committed rows, never logs.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

import chaos
from cable import Cable
from ledger_tools import until
from planetwire.supervise.embedded_postgres import SOCKET_NAME, EmbeddedPostgres

WORKING = "datname = current_database() and application_name like 'planetwire %' and usename = 'planetwire'"
# Also when the workers were cut off between two jobs: then none is left to run out.
NO_LEASE_IS_ALIVE = """
    select not exists (
        select from collection_tasks where status in ('running', 'cancelling') and lease_until >= clock_timestamp())
"""
A_LEASE_RAN_OUT = """
    select count(*) from collection_tasks
    where status in ('running', 'cancelling') and lease_until < clock_timestamp()
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A place for a cluster that an unprivileged server can reach too."""
    made = Path(tempfile.mkdtemp(prefix="pw-chaos-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


async def _judge(stage: chaos.Stage) -> None:
    """All of them, not only the 98 % that are asked for."""
    await stage.all_final()
    assert await stage.verdict() == ({"completed": chaos.JOBS}, [])


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGQUIT], ids=["killed", "immediate"])
async def test_jobs_end_once_though_postgresql_crashes_twice(how: signal.Signals, folder: Path) -> None:
    """S38, S45, Q18."""

    async def crash() -> None:
        pid = stage.cluster.pid
        assert pid is not None
        os.kill(pid, how)
        await asyncio.to_thread(stage.cluster.stop)
        stage.cluster = EmbeddedPostgres(folder, config=stage.cluster.config)
        await asyncio.to_thread(stage.cluster.start)

    async with chaos.stage(folder) as stage:
        stage.crew.hire("a", stage.dsn)
        stage.crew.hire("b", stage.dsn)
        await stage.at_shares((0.2, 0.6), crash)
        await _judge(stage)


async def test_jobs_end_once_though_backends_are_killed_at_random(folder: Path) -> None:
    """S38, S45, Q18."""
    kill = f"select pg_terminate_backend(pid) from pg_stat_activity where {WORKING} and random() < 0.6"
    async with chaos.stage(folder) as stage:
        stage.crew.hire("a", stage.dsn)
        stage.crew.hire("b", stage.dsn)
        await stage.at_shares(tuple(n / 10 for n in range(1, 9)), lambda: stage.ask(kill))
        await _judge(stage)


async def test_jobs_end_once_though_workers_are_killed_again_and_again(folder: Path) -> None:
    """S38, S45, Q18."""

    async def kill() -> None:
        stage.crew.kill_one()

    async with chaos.stage(folder) as stage:
        for name in "abc":
            stage.crew.hire(name, stage.dsn)
        await stage.at_shares((0.05, 0.15, 0.3, 0.4, 0.55, 0.7, 0.85), kill)

        async def started() -> bool:
            return stage.crew.starts >= 9

        await until(started)
        await _judge(stage)


class Strangers:
    """Other programs of the same server that take every connection it has, and every one that gets free."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self.full = asyncio.Event()
        self._held: list[asyncpg.Connection[asyncpg.Record]] = []
        self._task = asyncio.create_task(self._take())

    async def _take(self) -> None:
        while True:
            try:
                self._held.append(await asyncpg.connect(self._dsn, server_settings={"application_name": "stranger"}))
            except asyncpg.TooManyConnectionsError:
                self.full.set()
                await asyncio.sleep(0.005)

    async def leave(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        for connection in self._held:
            connection.terminate()


async def test_jobs_end_once_though_strangers_take_every_connection(folder: Path) -> None:
    """S38, S45, Q18: small pools, then none at all until a lease has run out."""
    cut = f"select pg_terminate_backend(pid) from pg_stat_activity where {WORKING}"
    async with chaos.stage(folder, "--pool", "2", max_connections="20") as stage:
        stage.crew.hire("a", stage.dsn)
        stage.crew.hire("b", stage.dsn)
        await stage.batches(0.2)
        strangers = Strangers(stage.dsn)
        try:
            await asyncio.wait_for(strangers.full.wait(), chaos.WITHIN_S)
            await stage.batches(0.3)  # with the few connections that they have
            async with asyncio.timeout(chaos.WITHIN_S):
                while not await stage.ask(NO_LEASE_IS_ALIVE):
                    await stage.ask(cut)
                    await asyncio.sleep(0.1)
        finally:
            await strangers.leave()
        await _judge(stage)


async def test_jobs_end_once_though_the_network_becomes_a_black_hole(folder: Path) -> None:
    """S38, S45, Q18: the server never hears that its clients are gone, nor they that it is."""
    async with chaos.stage(folder, "--statement-s", "3") as stage:
        with Cable(f"unix:{stage.cluster.socket_dir / SOCKET_NAME}") as cable:
            through = f"postgresql://planetwire@127.0.0.1:{cable.port}/planetwire?sslmode=disable"
            stage.crew.hire("a", through)
            stage.crew.hire("b", through)
            await stage.batches(0.3)
            cable.swallow()
            await stage.until(A_LEASE_RAN_OUT, bool)
            cable.heal()
            await _judge(stage)
