"""A ledger under failures: many jobs, real worker processes that are restarted, and an outside observer.

Lease 2 s; first back-offs are short, so that a scenario takes seconds. Everything else is as in the product.
"""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ledger_oracle
from planetwire.database.postgres import CONNECTION_ERRORS, SERVER_BUSY, Connection, connect
from planetwire.errors import BackendError
from planetwire.migrating.migrate import migrate_postgres
from planetwire.supervise.embedded_postgres import EmbeddedPostgres, dsn_of
from planetwire.supervise.parentage import ends_with_parent

SOURCES, JOBS_EACH, BATCHES = 12, 6, 4
JOBS = SOURCES * JOBS_EACH
WORKER = Path(__file__).parent / "chaos_worker.py"
WITHIN_S = 150.0  # generous: until the last final state
LOOK_S = 0.02
STARTS_MAX = 60
GIVEN_UP = (*CONNECTION_ERRORS, *SERVER_BUSY, BackendError)

SUBMIT = """
insert into collection_tasks (task_type, source, priority, payload, max_attempts, created_at)
select case when n % 4 = 3 then 'clear_data' else 'collect' end, 's' || (n % $1), 100 + (n / 5) % 2,
    jsonb_build_object('batches', $3::int), 25, clock_timestamp() - interval '1 h'
from generate_series(0, $2 - 1) n
"""


@dataclass
class Crew:
    """Worker processes by name; one that ended is restarted, as by the supervisor, until `stop`."""

    options: tuple[str, ...] = ()
    command: tuple[str, ...] = (sys.executable, str(WORKER))
    processes: dict[str, asyncio.subprocess.Process] = field(default_factory=dict)
    starts: int = 0
    _keepers: list[asyncio.Task[None]] = field(default_factory=list)

    def hire(self, name: str, dsn: str, *prefix: str) -> None:
        """`prefix`: a program that execs the worker, such as `faketime`."""
        self._keepers.append(asyncio.create_task(self._keep(name, dsn, prefix)))

    async def _keep(self, name: str, dsn: str, prefix: tuple[str, ...]) -> None:
        tie = ends_with_parent(signal.SIGKILL)
        while True:
            self.starts += 1
            process = await asyncio.create_subprocess_exec(
                *prefix, *self.command, dsn, f"{name}-{self.starts}", *self.options, preexec_fn=tie
            )
            self.processes[name] = process
            try:
                await process.wait()
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
            await asyncio.sleep(0.1)

    def kill_one(self) -> None:
        """`kill -9` of a live worker."""
        self.kill(random.choice([name for name, process in self.processes.items() if process.returncode is None]))

    def kill(self, name: str) -> None:
        self.processes[name].kill()

    async def stop(self) -> None:
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)


@dataclass
class Stage:
    """One durable cluster with our tables, the oracle's notes, and a superuser that can always query."""

    cluster: EmbeddedPostgres
    crew: Crew
    _admin: Connection | None = None

    @property
    def dsn(self) -> str:
        return self.cluster.dsn

    async def prepare(self) -> None:
        owner = await connect(self.dsn, application="test")
        await migrate_postgres(owner)
        await ledger_oracle.install(owner)
        await owner.execute(SUBMIT, SOURCES, JOBS, BATCHES)
        await owner.close()

    async def ask(self, query: str, *arguments: Any) -> Any:
        """The first value, over a kept connection; None while the server does not answer."""
        try:
            if self._admin is None or self._admin.is_closed():
                self._admin = await connect(dsn_of(self.cluster.socket_dir, "postgres"), application="test")
            return await self._admin.fetchval(query, *arguments)
        except GIVEN_UP:
            return None

    async def until(self, query: str, wanted: Callable[[Any], bool]) -> None:
        """Poll until the value is as wanted."""
        async with asyncio.timeout(WITHIN_S):
            while not ((value := await self.ask(query)) is not None and wanted(value)):
                assert self.crew.starts < STARTS_MAX, "workers end as soon as they are started"
                await asyncio.sleep(LOOK_S)

    async def batches(self, share: float) -> None:
        """Wait until this share of all batches is committed."""
        await self.until("select count(*) from effects", lambda n: bool(n >= share * JOBS * BATCHES))

    async def all_final(self) -> None:
        await self.until(
            "select count(*) from collection_tasks where finished_at is null", lambda waiting: waiting == 0
        )

    async def at_shares(self, shares: tuple[float, ...], trouble: Callable[[], Awaitable[object]]) -> None:
        """Cause a failure each time another share of the work is done."""
        for share in shares:
            await self.batches(share)
            await trouble()

    async def verdict(self) -> tuple[dict[str, int], list[str]]:
        """Jobs by final state, and every broken promise."""
        assert self._admin is not None
        rows = await self._admin.fetch("select status, count(*)::int from collection_tasks group by 1")
        return {status: count for status, count in rows}, await ledger_oracle.violations(self._admin)

    async def close(self) -> None:
        await self.crew.stop()
        if self._admin is not None:
            self._admin.terminate()


@asynccontextmanager
async def stage(folder: Path, *options: str, **config: str) -> AsyncIterator[Stage]:
    """A started cluster with its jobs submitted and no worker yet. `options` go to every worker."""
    cluster = EmbeddedPostgres(folder, config={"shared_buffers": "32MB", **config})
    await asyncio.to_thread(cluster.start)
    made = Stage(cluster, Crew(options))
    try:
        await made.prepare()
        yield made
    finally:
        await made.close()
        await asyncio.to_thread(made.cluster.stop)
