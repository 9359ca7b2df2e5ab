"""Settings → backends → stages, for the processes that work: jobs, feeds, relay; each gets its loops and an end.

`web.py` is the same for the web process, `commands.py` for one command; no other file names backends.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from ssl import SSLContext
from typing import TypeAlias

from planetwire.catalogue.catalogue import SHIPPED, Catalogue, Snapshot
from planetwire.catalogue.follow import Follower
from planetwire.collect.bodies_file import FileBodyStore
from planetwire.collect.collector import FeedCollector
from planetwire.collect.feedstate_file import FeedStates
from planetwire.collect.http.client import PoliteClient
from planetwire.collect.observe import ObservationFeeds
from planetwire.collect.push.sink_http import HttpPatchSink
from planetwire.database.postgres import Pool, close_pool, open_pool
from planetwire.datasets.registry import observation_feeds
from planetwire.facts.sources_postgres import PostgresSourceStore
from planetwire.jobs.housekeeping import Housekeeping
from planetwire.jobs.ledger.hints_postgres import write_hint
from planetwire.jobs.ledger.jobs_postgres import PostgresJobQueue
from planetwire.jobs.ledger.schedule_postgres import PostgresScheduleBook
from planetwire.jobs.marks_file import WorkerMarks, take_over
from planetwire.jobs.running import Handler
from planetwire.jobs.schedule import Schedule
from planetwire.jobs.tasks.clear_data import ClearDataTask
from planetwire.jobs.tasks.collect import CollectTask
from planetwire.jobs.tasks.hint import HintTask
from planetwire.jobs.telling import Telling
from planetwire.jobs.worker import Worker
from planetwire.log import get_logger
from planetwire.model import Action, TaskType
from planetwire.outbox.changelog_postgres import PostgresChangeLog
from planetwire.outbox.wakeup_postgres import PostgresWakeup
from planetwire.relay.payload import payload
from planetwire.relay.relay import Relay
from planetwire.runtime.clock import SystemClock
from planetwire.settings import Settings
from planetwire.stream.log_postgres import PostgresEventLog
from planetwire.wiring.catalogue import CHANNEL as DECLARED
from planetwire.wiring.catalogue import (
    check_feeds,
    copy_feeds,
    defaults_of,
    ensure_sources,
    followed,
    looking_first,
    source_files,
)
from planetwire.wiring.facts import add_by_hand, deriving_anew, deriving_facts
from planetwire.wiring.observations import check_sharing
from planetwire.wiring.outlets import add_outlet, outlet_kind
from planetwire.wiring.plugins import tell_plugins
from planetwire.wiring.secrets import Secrets
from planetwire.wiring.shared import job_log_of

log = get_logger()

CHANGES = "planet_earth_data_changes"
TASKS = "planet_task_control"
WORK_CONNECTIONS_MAX = 20  # jobs wait for feeds more than for the database
BROADCASTS = "planet_earth_broadcasts"

Loop: TypeAlias = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class OwnWeb:
    """Where our web process answers, and how its certificate is known; see `tls`."""

    url: str
    trust: SSLContext | None = None


@dataclass(slots=True)
class Parts:
    """A role's background loops by name, and what to do before they are ended."""

    loops: dict[str, Loop] = field(default_factory=dict)
    before_end: list[Callable[[], Awaitable[None]]] = field(default_factory=list)

    async def drain(self) -> None:
        """End softly what can be ended softly."""
        for step in self.before_end:
            await step()


Opening: TypeAlias = AbstractAsyncContextManager[Parts]


def check_supported(settings: Settings) -> None:
    """Raises SetupError for a setting whose backend this version does not have, rather than ignoring it."""
    check_sharing(settings)
    outlet_kind(settings)
    check_feeds(settings, Snapshot(SHIPPED), others=settings.earth)  # the store may declare those


async def pool_of(stack: AsyncExitStack, dsn: str, name: str, size: int) -> Pool:
    """A pool that is closed with the stack."""
    pool = await open_pool(dsn, application=name, max_size=size)
    stack.push_async_callback(close_pool, pool)
    return pool


def relay_of(
    settings: Settings,
    pool: Pool,
    doorbell: PostgresWakeup,
    invalidate: Callable[[Sequence[str]], Awaitable[object]],
    on_published: Callable[[Sequence[object]], None],
    follower: Follower,
) -> Relay:
    """A relay on this pool; what it published is told to `on_published`."""
    return Relay(
        PostgresChangeLog(pool, payload),
        follower.catalogue.relay_registry(),
        invalidate,
        doorbell.bell(CHANGES),
        settings.relay,
        SystemClock(),
        on_published,
        look=follower.look,
    )


def soon(step: Callable[[], None]) -> Callable[[], Awaitable[None]]:
    """The step as something to await."""

    async def run() -> None:
        step()

    return run


@asynccontextmanager
async def open_work(
    settings: Settings, dsn: str, secrets: Secrets, *, feeds: bool, web: OwnWeb
) -> AsyncIterator[Parts]:
    """The ledger's worker; with `feeds` the schedule and the observation feeds in the same process."""
    check_supported(settings)
    tell_plugins()
    parts = Parts()
    async with AsyncExitStack() as stack:
        clock = SystemClock()
        pool = await pool_of(stack, dsn, "work", min(settings.jobs.concurrency, WORK_CONNECTIONS_MAX) + 2)
        doorbell = PostgresWakeup(settings.database_direct_url or dsn, (TASKS, CHANGES, DECLARED))
        doorbell.start()
        stack.push_async_callback(doorbell.aclose)
        queue = PostgresJobQueue(pool, settings.jobs)
        client = PoliteClient(clock)
        stack.push_async_callback(client.aclose)
        follower = await followed(pool, settings, ensure_sources(pool, settings), deriving_anew(pool))
        catalogue, registry = follower.catalogue, follower.catalogue.registry
        facts = deriving_facts(pool, registry)
        known = PostgresSourceStore(pool, defaults_of(settings, catalogue))
        collector = FeedCollector(
            catalogue.fact_feeds,
            client,
            FileBodyStore(settings.data_dir / "bodies"),
            clock,
            settings,
        )
        job_log = job_log_of(stack, settings, pool, secrets.session_key)
        telling = Telling(job_log, clock)
        tell = telling.tell
        collect = CollectTask(queue, collector, facts, known, clock, _throttle(settings), tell)
        handlers: dict[TaskType, Handler] = {
            TaskType.COLLECT: looking_first(follower, collect),
            TaskType.CLEAR_DATA: ClearDataTask(queue, facts, registry.owned_tables, tell=tell),
            TaskType.CLEAR_CACHE: HintTask(Action.CACHE_CLEARED, queue, write_hint, registry.adapter),
            TaskType.EARTH_REFRESH: HintTask(Action.MANUAL_REFRESH, queue, write_hint, registry.adapter),
        }
        worker = Worker(
            queue,
            queue,
            handlers,
            doorbell.bell(TASKS),
            settings.jobs,
            clock,
            heart=lambda: _heart(settings, dsn),
            tell=tell,
        )
        marks = WorkerMarks(settings.data_dir / "run" / "workers")
        stack.enter_context(marks.living(worker.worker_id))
        await take_over(marks, queue.take_back)
        parts.loops |= {"worker": worker.run, "job-log": telling.run}
        parts.loops["catalogue"] = partial(follower.run, doorbell.bell(DECLARED))
        add_by_hand(parts.loops, pool, doorbell.bell(CHANGES), follower)
        parts.loops["job-housekeeping"] = Housekeeping(queue.sweep, [queue.prune, job_log.prune], clock).run
        parts.before_end.append(soon(worker.stop))
        if feeds:
            _add_schedule(parts, settings, pool, queue, catalogue)
            if settings.terminal:
                _add_observation_feeds(parts, stack, settings, secrets, web, follower)
        yield parts


@asynccontextmanager
async def _heart(settings: Settings, dsn: str) -> AsyncIterator[PostgresJobQueue]:
    """The queue as the worker's heart uses it, in its own loop."""
    async with AsyncExitStack() as stack:
        yield PostgresJobQueue(await pool_of(stack, dsn, "heart", 2), settings.jobs)


def _throttle(settings: Settings) -> Callable[[str], float | None]:
    return lambda source: settings.feed(source).max_rows_per_s


def _add_schedule(parts: Parts, settings: Settings, pool: Pool, queue: PostgresJobQueue, catalogue: Catalogue) -> None:
    book = PostgresScheduleBook(pool, queue, defaults_of(settings, catalogue))
    parts.loops["schedule"] = Schedule(book, SystemClock()).run
    parts.loops["source-files"] = source_files(settings, pool, catalogue).run


def _add_observation_feeds(
    parts: Parts,
    stack: AsyncExitStack,
    settings: Settings,
    secrets: Secrets,
    web: OwnWeb,
    follower: Follower | None,
) -> None:
    clock = SystemClock()
    client, sink = PoliteClient(clock), HttpPatchSink(web.url, secrets.ingest_token, clock, trust=web.trust)
    stack.push_async_callback(client.aclose)
    stack.push_async_callback(sink.aclose)
    states = FeedStates(settings.data_dir / "feeds")
    feeds = observation_feeds() if follower is None else follower.catalogue.observation_feeds
    run = ObservationFeeds(feeds, client, sink, states, clock, settings)
    if follower is not None:
        follower.changed.append(run.renew)
    parts.loops["observation-feeds"] = run.run


@asynccontextmanager
async def open_collect(settings: Settings, dsn: str | None, secrets: Secrets, *, web: OwnWeb) -> AsyncIterator[Parts]:
    """The schedule, where there is a ledger, and the observation feeds."""
    check_supported(settings)
    tell_plugins()
    parts = Parts()
    async with AsyncExitStack() as stack:
        follower = None
        if dsn is not None:
            pool = await pool_of(stack, dsn, "collect", 2)
            follower = await followed(pool, settings, ensure_sources(pool, settings))
            parts.loops["catalogue"] = follower.run
            _add_schedule(parts, settings, pool, PostgresJobQueue(pool, settings.jobs), follower.catalogue)
        if settings.terminal:
            _add_observation_feeds(parts, stack, settings, secrets, web, follower)
        yield parts


@asynccontextmanager
async def open_relay(settings: Settings, dsn: str, secrets: Secrets) -> AsyncIterator[Parts]:
    """A relay without a web process; web processes tail the log and drop their caches themselves."""
    check_supported(settings)
    tell_plugins()

    async def no_cache(patterns: Sequence[str]) -> None:
        """This process keeps no snapshots."""

    async with AsyncExitStack() as stack:
        pool = await pool_of(stack, dsn, "relay", 3)
        doorbell = PostgresWakeup(settings.database_direct_url or dsn, (CHANGES, BROADCASTS, DECLARED))
        doorbell.start()
        stack.push_async_callback(doorbell.aclose)
        follower = await followed(pool, settings, copy_feeds(pool))
        relay = relay_of(settings, pool, doorbell, no_cache, lambda events: None, follower)
        parts = Parts({"relay": relay.run, "catalogue": partial(follower.run, doorbell.bell(DECLARED))})
        event_log = await PostgresEventLog.open(pool)
        add_outlet(
            parts.loops,
            settings,
            secrets.changes_bus,
            pool,
            event_log,
            doorbell.bell(BROADCASTS),
            follower.catalogue.layer_ids,
        )
        yield parts
