"""One feed between a real HTTP server and a real database, with the product's client, collector, ledger and store."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from planetwire.collect.bodies_file import FileBodyStore
from planetwire.collect.collector import FeedCollector
from planetwire.collect.feeds import FactFeed, source_defaults
from planetwire.collect.http.client import PoliteClient
from planetwire.database.postgres import Pool, close_pool, open_pool
from planetwire.demo.script import Counts, Step
from planetwire.demo.server import FeedServer
from planetwire.demo.simclock import SimClock
from planetwire.demo.world import World
from planetwire.errors import LeaseLost, PlanetwireError
from planetwire.facts.sources_postgres import PostgresSourceStore
from planetwire.jobs.ledger.jobs_postgres import PostgresJobQueue
from planetwire.jobs.tasks.collect import CollectTask
from planetwire.layers.registry import EarthLayerAdapterRegistry
from planetwire.model import Batch, FetchState, JobRequest, JobStatus, Json, LayerAdapter, TaskType
from planetwire.ports import Collector
from planetwire.runtime.clock import SystemClock
from planetwire.settings import Settings
from planetwire.testing.databases import Databases
from planetwire.testing.said import expect, raising_feed_errors_only
from planetwire.wiring.facts import deriving_facts

PATH = "/contract"
BINARY = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Ran:
    """How a collect job ended. `code`, `error`: of a failed one."""

    message: str
    code: str | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Cancelling:
    """Port Collector during whose run somebody cancels the job, once so many batches are committed."""

    inner: Collector
    after: int
    cancel: Callable[[], Awaitable[object]]

    async def batches(self, source: str, state: FetchState | None, *, manual: bool) -> AsyncGenerator[Batch, None]:
        """See the port."""
        given = 0
        async with aclosing(self.inner.batches(source, state, manual=manual)) as batches:
            async for batch in batches:
                if given == self.after:
                    await self.cancel()
                given += 1
                yield batch


@dataclass(frozen=True, slots=True)
class Stage:
    """`serve` what the provider has, `collect` it, look at `rows`."""

    feed: FactFeed
    server: FeedServer
    pool: Pool
    queue: PostgresJobQueue
    task: CollectTask

    def serve(self, body: bytes) -> None:
        """From now on, with an ETag of its own."""
        self.server.set_body(PATH, body, BINARY)

    def once(self, step: Step) -> None:
        """The next answer."""
        self.server.script(PATH, [step])

    @property
    def asked(self) -> Counts:
        """The provider's counts."""
        return self.server.counts[PATH]

    async def collect(self, *, cancel_after: int | None = None) -> Ran:
        """One job. `cancel_after`: somebody cancels it when so many batches are committed."""
        await self.queue.submit(JobRequest(TaskType.COLLECT, self.feed.source, {}))
        [lease] = await self.queue.claim("contract", [TaskType.COLLECT.value], 1)
        task = self.task

        if cancel_after is not None:
            cancel = partial(self.queue.cancel, lease.job.id)
            task = replace(task, collector=Cancelling(task.collector, cancel_after, cancel))
        status, error = JobStatus.COMPLETED, None
        try:
            with raising_feed_errors_only():
                await task(lease)
        except LeaseLost as lost:
            status, error = JobStatus.CANCELLED, (lost.code, lost.message)
        except PlanetwireError as failed:  # ended for good: no retry comes between two runs of a test
            status, error = JobStatus.CANCELLED, (failed.code, failed.message)
        await self.queue.finish(lease, status, error=error)
        said = await self.pool.fetchval("select message from collection_tasks where id = $1", lease.job.id)
        return Ran(said or "") if error is None else Ran(said or "", *error)

    async def rows(self) -> dict[str, Mapping[str, object]]:
        """The stored facts by key. `version` changes whenever the row is written."""
        rows = await self.pool.fetch(
            "select external_key, title, lat, lon, observed_at, xmin::text as version from collected_data"
            " where source = $1 order by external_key",
            self.feed.source,
        )
        return {row["external_key"]: dict(row) for row in rows}

    async def changes(self) -> int:
        """Changes that the map was told of so far."""
        count: int = await self.pool.fetchval("select count(*) from earth_data_change_events")
        return count

    async def forget(self) -> None:
        """As if nothing were known of the body any more."""
        await self.pool.execute(
            "update datasources set etag = null, last_modified = null, body_sha256 = null where source = $1",
            self.feed.source,
        )

    async def fresh(self, body: bytes) -> dict[str, Mapping[str, object]]:
        """The rows after a first, good run."""
        self.serve(body)
        ran = await self.collect()
        expect(ran.code is None, f"the body `full` was not collected: {ran.error}")
        return await self.rows()


@asynccontextmanager
async def stage_of(
    feed: FactFeed, layer: LayerAdapter | None, databases: Databases, *, batch_rows: int = 5_000
) -> AsyncIterator[Stage]:
    """A stage of its own: an empty database, a server, a folder for bodies. `layer`: what is derived of the facts."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pw-contract-")))
        server = FeedServer(World(1, SimClock(None, 0.0)))
        await server.start()
        stack.push_async_callback(server.stop)
        dsn = await stack.enter_async_context(databases.fresh())
        pool = await open_pool(dsn, application="contract", min_size=1, max_size=4)
        stack.push_async_callback(close_pool, pool)
        own: Json = {feed.source: {"url": f"{server.url}{PATH}", "floor_s": 0.0}}
        settings = Settings(data_dir=folder, feeds=own, jobs={"batch_rows": batch_rows})
        clock = SystemClock()
        client = await stack.enter_async_context(PoliteClient(clock))
        queue = PostgresJobQueue(pool, settings.jobs)
        collector = FeedCollector({feed.source: feed}, client, FileBodyStore(folder / "bodies"), clock, settings)
        sources = PostgresSourceStore(pool, source_defaults([feed], settings))
        await sources.ensure()
        registry = EarthLayerAdapterRegistry(() if layer is None else (layer,))
        task = CollectTask(queue, collector, deriving_facts(pool, registry), sources, clock)
        yield Stage(feed, server, pool, queue, task)
