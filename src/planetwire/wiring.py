"""Settings → backends → stages: the only file that names backends. Each role gets its loops and a way to end them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from fastapi import APIRouter, FastAPI

from planetwire import __version__, cities
from planetwire.clock import SystemClock
from planetwire.collect.accept import Ingest
from planetwire.collect.bodies_file import FileBodyStore
from planetwire.collect.collector import FeedCollector
from planetwire.collect.feeds import fact_feeds, observation_feeds, source_defaults, unknown
from planetwire.collect.feedstate_file import FeedStates
from planetwire.collect.http import PoliteClient
from planetwire.collect.observe import ObservationFeeds
from planetwire.collect.parse import parse_body as parse_body
from planetwire.collect.sink_http import HttpPatchSink
from planetwire.deriving import add_by_hand, deriving_facts
from planetwire.diagnosing import Diagnostics, behind_text, of_this_version
from planetwire.errors import InputError, SetupError
from planetwire.facts.facts_postgres import PostgresFactStore
from planetwire.facts.objects_postgres import PostgresObjectStore
from planetwire.facts.sources_postgres import PostgresSourceStore
from planetwire.facts.stations import StationBridge
from planetwire.facts.stations_postgres import PostgresStations
from planetwire.jobs.board_postgres import PostgresJobBoard
from planetwire.jobs.hints_postgres import write_hint
from planetwire.jobs.housekeeping import Housekeeping
from planetwire.jobs.jobs_postgres import PostgresJobQueue
from planetwire.jobs.running import Handler
from planetwire.jobs.schedule import Schedule
from planetwire.jobs.schedule_postgres import PostgresScheduleBook
from planetwire.jobs.task_clear_cache import ClearCacheTask
from planetwire.jobs.task_clear_data import ClearDataTask
from planetwire.jobs.task_collect import CollectTask
from planetwire.jobs.task_earth_refresh import EarthRefreshTask
from planetwire.jobs.worker import Worker
from planetwire.layers.canary import RelayRegistry
from planetwire.layers.registry import EarthLayerAdapterRegistry
from planetwire.log import get_logger
from planetwire.migrate import pending_postgres
from planetwire.model import JobRequest, Json, TaskType
from planetwire.outbox.changelog_postgres import PostgresChangeLog
from planetwire.outbox.prune import prune_forever
from planetwire.outbox.prune_postgres import PostgresPruner
from planetwire.outbox.registry_postgres import write_feeds
from planetwire.outbox.signals_postgres import read_signals
from planetwire.outbox.wakeup_postgres import PostgresWakeup
from planetwire.outlets import add_outlet, check_changes_bus
from planetwire.postgres import Pool, close_pool, open_pool
from planetwire.relay.payload import payload
from planetwire.relay.relay import Relay
from planetwire.settings import Settings
from planetwire.sharing import Shared, open_shared
from planetwire.storing import check_sharing, open_observations
from planetwire.stream.hub import Hub
from planetwire.stream.log_postgres import PostgresEventLog
from planetwire.stream.tail import Tail
from planetwire.web import app as web_app
from planetwire.web import frames, halves, health, ingest, jobs, session, sources, sse_route, terminal, visualization
from planetwire.web.auth import Guard
from planetwire.web.layer_snapshots import LayerSnapshots
from planetwire.web.limits import ConnectionLimits
from planetwire.web.metrics import expose, expose_bus, expose_earth
from planetwire.web.search import router as search_router
from planetwire.web.sse import SseEndpoint
from planetwire.web.sse_protocol import make_protocol
from planetwire.web.task_board import TaskBoard
from planetwire.web.websocket import SocketEndpoint
from planetwire.web.websocket import router as socket_router

log = get_logger()

CHANGES = "planet_earth_data_changes"
TASKS = "planet_task_control"
WORK_CONNECTIONS_MAX = 20  # jobs wait for feeds more than for the database
BROADCASTS = "planet_earth_broadcasts"
UPDATES = "earth_updates"

Loop: TypeAlias = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Secrets:
    """Tokens, the key that signs sessions, and the one that signs what goes to other services."""

    admin_token: str
    ingest_token: str
    session_key: bytes
    changes_bus: str = ""


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


@dataclass(slots=True)
class Web(Parts):
    """The web process: the application, and the protocol class that answers `/api/events`."""

    app: FastAPI = field(default_factory=FastAPI)
    protocol: Any = field(default_factory=lambda: make_protocol(None))
    routers: list[APIRouter] = field(default_factory=list)
    checks: dict[str, health.Check] = field(default_factory=dict)
    shared: Shared = field(default_factory=Shared)


def check_supported(settings: Settings) -> None:
    """Raises SetupError for a setting whose backend this version does not have, rather than ignoring it."""
    check_sharing(settings)
    check_changes_bus(settings)
    known = {*fact_feeds(), *observation_feeds()}
    for source in settings.feeds:
        if source not in known:
            raise SetupError(f"PLANETWIRE_FEEDS__{source.upper()}__…: {unknown(source, known).message}")


# --- the web process ----------------------------------------------------------------------------------


@asynccontextmanager
async def open_web(
    settings: Settings, dsn: str | None, secrets: Secrets, *, login_code: str | None
) -> AsyncIterator[Web]:
    """Everything that answers browsers; the relay and the observation writer live here too."""
    check_supported(settings)
    limits = ConnectionLimits(total=settings.stream.max_connections, per_address=settings.stream.max_per_address)
    async with AsyncExitStack() as stack:
        shared = await open_shared(stack, settings, secrets.session_key, login_code)
        web, pool = Web(shared=shared), None
        tokens = (secrets.admin_token, secrets.ingest_token, secrets.session_key)
        guard = Guard(*tokens, settings.public_reads, shared.codes, shared.brake)
        if dsn is not None and settings.earth:
            pool = await _pool(stack, dsn, "web", 8)
            await _open_earth(web, stack, settings, dsn, pool, guard, limits, secrets.changes_bus)
        else:
            web.routers.append(halves.router("earth"))
        if settings.terminal:
            await _open_terminal(web, stack, settings, guard, limits, pool, dsn)
        else:
            web.routers.append(halves.router("terminal"))
        web.routers.append(await _sources(settings, pool, guard))
        names = [name for name, on in (("earth", pool is not None), ("terminal", settings.terminal)) if on]
        web.routers.append(session.router(guard, halves=names, simulated=settings.simulated, version=__version__))
        web.routers.append(health.router(web.checks, names, _diagnosis(pool, web.checks, secrets), guard))
        web.app = web_app.create(web.routers, __version__)
        yield web


async def _pool(stack: AsyncExitStack, dsn: str, name: str, size: int) -> Pool:
    pool = await open_pool(dsn, application=name, max_size=size)
    stack.push_async_callback(close_pool, pool)
    return pool


async def _open_earth(
    web: Web,
    stack: AsyncExitStack,
    settings: Settings,
    dsn: str,
    pool: Pool,
    guard: Guard,
    limits: ConnectionLimits,
    bus_secret: str,
) -> None:
    clock, cache = SystemClock(), web.shared.cache
    doorbell = PostgresWakeup(settings.database_direct_url or dsn, (CHANGES, TASKS, BROADCASTS))
    doorbell.start()
    stack.push_async_callback(doorbell.aclose)
    registry = EarthLayerAdapterRegistry()
    await write_feeds(pool, registry.feeds())
    event_log = await PostgresEventLog.open(pool)
    facts, objects = PostgresFactStore(pool), PostgresObjectStore(pool)
    snapshots = LayerSnapshots(facts, registry, event_log, cache, clock, objects=objects, simulated=settings.simulated)
    stack.push_async_callback(snapshots.aclose)
    hub = Hub(
        event_log,
        encode=frames.ws_encoder(event_log.epoch),
        clock=clock,
        stall_s=settings.stream.stall_s,
        topic_of=lambda event: UPDATES,
    )
    stack.push_async_callback(hub.aclose)
    tail_bell = doorbell.bell(BROADCASTS)
    tail = Tail(event_log, (UPDATES,), tail_bell, hub.publish, clock, before=snapshots.forget)
    tail.position = await hub.start()  # one head for both: an event between two heads would reach nobody
    relay = _relay(settings, pool, doorbell, cache.invalidate, lambda events: tail_bell.ring())
    queue = PostgresJobQueue(pool, settings.jobs)
    board = PostgresJobBoard(pool, queue)
    tasks = TaskBoard(board, clock, doorbell.bell(TASKS))
    sockets = SocketEndpoint(hub, tasks, guard=guard, limits=limits, clock=clock, settings=settings.stream)
    pruner = PostgresPruner(pool)
    web.routers += [
        jobs.router(queue, board, guard, registry.canonical, admit=check_request),
        visualization.router(snapshots, guard),
        search_router(objects, registry, guard),
        socket_router(sockets),
    ]
    web.loops |= {
        "relay": relay.run,
        "tail": tail.run,
        "earth-hub": hub.run,
        "sockets": sockets.run,
        "tasks": tasks.run,
        "prune": lambda: prune_forever((pruner.changes, pruner.hints, pruner.broadcasts), clock),
        "signals": expose_earth(relay, snapshots, lambda: read_signals(pool), clock),
    }
    add_outlet(web.loops, settings, bus_secret, pool, event_log, doorbell.bell(BROADCASTS))
    web.before_end.append(_soon(sockets.drain))
    web.checks |= {
        "postgres": lambda: _schema_current(pool),
        "relay": lambda: _someone_leads(pool),
    }
    expose("earth", hub)


def _relay(
    settings: Settings,
    pool: Pool,
    doorbell: PostgresWakeup,
    invalidate: Callable[[str], Awaitable[object]],
    on_published: Callable[[Sequence[object]], None],
) -> Relay:
    return Relay(
        PostgresChangeLog(pool, payload),
        RelayRegistry(),
        invalidate,
        doorbell.bell(CHANGES),
        settings.relay,
        SystemClock(),
        on_published,
    )


async def _open_terminal(
    web: Web,
    stack: AsyncExitStack,
    settings: Settings,
    guard: Guard,
    limits: ConnectionLimits,
    pool: Pool | None,
    dsn: str | None,
) -> None:
    clock = SystemClock()
    observations = await open_observations(stack, settings, dsn)
    store, event_log = observations.store, observations.log
    hub = Hub(event_log, encode=frames.sse_encoder(event_log.epoch), clock=clock, stall_s=settings.stream.stall_s)
    stack.push_async_callback(hub.aclose)
    endpoint = SseEndpoint(
        hub, resolve_city=_city_key, guard=guard, limits=limits, clock=clock, settings=settings.stream
    )
    pushed = ingest.IngestEndpoint(Ingest(store, clock, admit=observations.admit).accept, guard)
    web.protocol = make_protocol(endpoint, pushed)
    web.routers += [
        sse_route.router(endpoint),
        ingest.router(pushed),
        terminal.router(store, event_log, clock, guard, lambda: web.shared.cache.generation("weather_stations")),
    ]
    web.loops |= {"terminal-hub": hub.run, "streams": endpoint.run}
    web.before_end.append(_soon(endpoint.drain))
    web.checks |= {"observations": lambda: _answers(event_log.head), "bus": observations.joined}
    expose("terminal", hub)
    expose_bus(observations.connected)
    publish: Callable[[Sequence[Any]], None] = hub.publish
    if pool is not None:  # the weather half on the globe, where both halves run
        bridge = StationBridge(event_log, store, PostgresStations(pool, deriving_facts(pool)), clock)
        publish, web.loops["stations"] = bridge.after(hub.publish), bridge.run
    web.loops |= await observations.feed(hub, publish)


def _city_key(name: str) -> str | None:
    city = cities.resolve(name)
    return city.key if city else None


async def _sources(settings: Settings, pool: Pool | None, guard: Guard) -> APIRouter:
    states = FeedStates(settings.data_dir / "feeds")
    names = list(observation_feeds()) if settings.terminal else []
    canonical = EarthLayerAdapterRegistry().canonical
    if pool is None:
        return sources.router(None, guard, runs=lambda: states.runs(names), canonical=canonical)
    store = PostgresSourceStore(pool, source_defaults(settings))
    await store.ensure()
    pause = PostgresJobQueue(pool, settings.jobs).pause
    return sources.router(store, guard, pause=pause, runs=lambda: states.runs(names), canonical=canonical)


def _soon(step: Callable[[], None]) -> Callable[[], Awaitable[None]]:
    async def run() -> None:
        step()

    return run


async def _answers(read: Callable[[], Awaitable[object]]) -> str | None:
    await read()
    return None


async def _schema_current(pool: Pool) -> str | None:
    async with pool.acquire(timeout=health.CHECK_TIMEOUT_S) as connection:
        missing = await pending_postgres(connection)
    return behind_text(missing)


async def _someone_leads(pool: Pool) -> str | None:
    leader = await PostgresChangeLog(pool, payload).leader()
    return None if leader["held"] else "no relay leads"


def _diagnosis(pool: Pool | None, checks: dict[str, health.Check], secrets: Secrets) -> Diagnostics:
    return Diagnostics(pool, lambda: health.run_checks(checks), secrets.admin_token)


# --- work, collect, relay -----------------------------------------------------------------------------


@asynccontextmanager
async def open_work(
    settings: Settings, dsn: str, secrets: Secrets, *, feeds: bool, web_url: str
) -> AsyncIterator[Parts]:
    """The ledger's worker; with `feeds` the schedule and the observation feeds in the same process."""
    check_supported(settings)
    parts = Parts()
    async with AsyncExitStack() as stack:
        clock = SystemClock()
        pool = await _pool(stack, dsn, "work", min(settings.jobs.concurrency, WORK_CONNECTIONS_MAX) + 2)
        doorbell = PostgresWakeup(settings.database_direct_url or dsn, (TASKS, CHANGES))
        doorbell.start()
        stack.push_async_callback(doorbell.aclose)
        queue = PostgresJobQueue(pool, settings.jobs)
        client = PoliteClient(clock)
        stack.push_async_callback(client.aclose)
        registry = EarthLayerAdapterRegistry()
        facts = deriving_facts(pool)
        known = PostgresSourceStore(pool, source_defaults(settings))
        await known.ensure()
        collector = FeedCollector(fact_feeds(), client, FileBodyStore(settings.data_dir / "bodies"), clock, settings)
        handlers: dict[TaskType, Handler] = {
            TaskType.COLLECT: CollectTask(queue, collector, facts, known, clock, _throttle(settings)),
            TaskType.CLEAR_DATA: ClearDataTask(queue, facts, registry.owned_tables),
            TaskType.CLEAR_CACHE: ClearCacheTask(queue, write_hint, registry.adapter),
            TaskType.EARTH_REFRESH: EarthRefreshTask(queue, write_hint, registry.adapter),
        }
        worker = Worker(
            queue, queue, handlers, doorbell.bell(TASKS), settings.jobs, clock, heart=lambda: _heart(settings, dsn)
        )
        parts.loops["worker"] = worker.run
        add_by_hand(parts.loops, pool, doorbell.bell(CHANGES))
        parts.loops["job-housekeeping"] = Housekeeping(queue.sweep, [queue.prune], clock).run
        parts.before_end.append(_soon(worker.stop))
        if feeds:
            _add_schedule(parts, settings, pool, queue)
            if settings.terminal:
                _add_observation_feeds(parts, stack, settings, secrets, web_url)
        yield parts


@asynccontextmanager
async def _heart(settings: Settings, dsn: str) -> AsyncIterator[PostgresJobQueue]:
    """The queue as the worker's heart uses it, in its own loop."""
    async with AsyncExitStack() as stack:
        yield PostgresJobQueue(await _pool(stack, dsn, "heart", 2), settings.jobs)


def _throttle(settings: Settings) -> Callable[[str], float | None]:
    return lambda source: settings.feed(source).max_rows_per_s


def _add_schedule(parts: Parts, settings: Settings, pool: Pool, queue: PostgresJobQueue) -> None:
    book = PostgresScheduleBook(pool, queue, source_defaults(settings))
    parts.loops["schedule"] = Schedule(book, SystemClock()).run


def _add_observation_feeds(
    parts: Parts, stack: AsyncExitStack, settings: Settings, secrets: Secrets, web_url: str
) -> None:
    clock = SystemClock()
    client, sink = PoliteClient(clock), HttpPatchSink(web_url, secrets.ingest_token, clock)
    stack.push_async_callback(client.aclose)
    stack.push_async_callback(sink.aclose)
    states = FeedStates(settings.data_dir / "feeds")
    feeds = ObservationFeeds(observation_feeds(), client, sink, states, clock, settings)
    parts.loops["observation-feeds"] = feeds.run


@asynccontextmanager
async def open_collect(settings: Settings, dsn: str | None, secrets: Secrets, *, web_url: str) -> AsyncIterator[Parts]:
    """The schedule, where there is a ledger, and the observation feeds."""
    check_supported(settings)
    parts = Parts()
    async with AsyncExitStack() as stack:
        if dsn is not None:
            pool = await _pool(stack, dsn, "collect", 2)
            await PostgresSourceStore(pool, source_defaults(settings)).ensure()
            _add_schedule(parts, settings, pool, PostgresJobQueue(pool, settings.jobs))
        if settings.terminal:
            _add_observation_feeds(parts, stack, settings, secrets, web_url)
        yield parts


@asynccontextmanager
async def open_relay(settings: Settings, dsn: str, secrets: Secrets) -> AsyncIterator[Parts]:
    """A relay without a web process; web processes tail the log and drop their caches themselves."""
    check_supported(settings)

    async def no_cache(layer: str) -> None:
        """This process keeps no snapshots."""

    async with AsyncExitStack() as stack:
        pool = await _pool(stack, dsn, "relay", 3)
        doorbell = PostgresWakeup(settings.database_direct_url or dsn, (CHANGES, BROADCASTS))
        doorbell.start()
        stack.push_async_callback(doorbell.aclose)
        await write_feeds(pool, EarthLayerAdapterRegistry().feeds())
        parts = Parts({"relay": _relay(settings, pool, doorbell, no_cache, lambda events: None).run})
        event_log = await PostgresEventLog.open(pool)
        add_outlet(parts.loops, settings, secrets.changes_bus, pool, event_log, doorbell.bell(BROADCASTS))
        yield parts


# --- the ledger from a shell --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ledger:
    """The ledger without a worker."""

    queue: PostgresJobQueue
    board: PostgresJobBoard


def canonical(source: str) -> str:
    """A source's own name for its alias; any other text as it is."""
    return EarthLayerAdapterRegistry().canonical(source)


def ledger_source(source: str) -> tuple[str, str | None]:
    """The source's own name, and a warning when no feed has it. Raises InputError for one that runs without jobs."""
    name, feeds = canonical(source), fact_feeds()
    if name in observation_feeds():
        off = f"PLANETWIRE_FEEDS__{name.upper()}__ENABLED=false"
        raise InputError(
            f"{name} runs without jobs, so there is nothing to hold; {off} switches it off at the next start"
        )
    return name, None if name in feeds else f"{unknown(name, feeds).message}; done all the same"


def check_request(request: JobRequest) -> JobRequest:
    """The request with its source's own name. Raises NotFound for a collect of a source that no feed has."""
    source = canonical(request.source) if request.source else None
    if request.task_type is TaskType.COLLECT and source not in fact_feeds():
        raise unknown(source or "", fact_feeds())
    return replace(request, source=source)


@asynccontextmanager
async def open_ledger(settings: Settings, dsn: str) -> AsyncIterator[Ledger]:
    """For one command. Raises SetupError when it failed and the schema is that of another version."""
    async with of_this_version(dsn), AsyncExitStack() as stack:
        pool = await _pool(stack, dsn, "cli", 2)
        queue = PostgresJobQueue(pool, settings.jobs)
        yield Ledger(queue, PostgresJobBoard(pool, queue))


async def source_records(settings: Settings, dsn: str | None) -> list[Json]:
    """What `GET /api/v1/sources` lists, in name order; without a database the observation feeds alone."""
    names = list(observation_feeds()) if settings.terminal else []
    records = FeedStates(settings.data_dir / "feeds").runs(names)
    if dsn is not None:
        async with of_this_version(dsn), AsyncExitStack() as stack:
            pool = await _pool(stack, dsn, "cli", 2)
            records += await PostgresSourceStore(pool, source_defaults(settings)).list()
    return sorted(records, key=lambda record: str(record["source"]))
