"""Settings → backends → stages, for the web process: what answers browsers, the relay and the observation writer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from fastapi import APIRouter, FastAPI

from planetwire import __version__, cities
from planetwire.audit.audit_file import FileAuditLog
from planetwire.audit.audit_postgres import PostgresAuditLog
from planetwire.catalogue.catalogue import Catalogue, Snapshot
from planetwire.catalogue.follow import Changed, Follower
from planetwire.collect.feedstate_file import FeedStates
from planetwire.collect.push.accept import Ingest
from planetwire.database.postgres import Pool, translated
from planetwire.datasets.registry import city_facts, observed_sources, owned_tables
from planetwire.diagnosis.path import Diagnostics, behind_text, watched_tables
from planetwire.facts.facts_postgres import PostgresFactStore
from planetwire.facts.objects_postgres import PostgresObjectStore
from planetwire.facts.sources_postgres import PostgresSourceStore
from planetwire.facts.stations import StationBridge
from planetwire.facts.stations_postgres import PostgresStations
from planetwire.jobs.ledger.board_postgres import PostgresJobBoard
from planetwire.jobs.ledger.desk_postgres import PostgresJobDesk
from planetwire.jobs.ledger.jobs_postgres import PostgresJobQueue
from planetwire.log import get_logger
from planetwire.migrating.migrate import pending_postgres
from planetwire.model import Json
from planetwire.observing import Sources
from planetwire.outbox.changelog_postgres import PostgresChangeLog
from planetwire.outbox.upkeep.prune import prune_forever
from planetwire.outbox.upkeep.prune_postgres import PostgresPruner
from planetwire.outbox.upkeep.signals_postgres import read_signals
from planetwire.outbox.wakeup_postgres import PostgresWakeup
from planetwire.relay.payload import payload
from planetwire.runtime.clock import SystemClock
from planetwire.settings import Settings, plain
from planetwire.stream.hub import Hub
from planetwire.stream.log_postgres import PostgresEventLog
from planetwire.stream.tail import Tail
from planetwire.tls import own_trust, scheme_of
from planetwire.web import app as web_app
from planetwire.web import halves, health
from planetwire.web.access import audit as audit_route
from planetwire.web.access import session
from planetwire.web.access.audit import Notes
from planetwire.web.access.auth import Guard
from planetwire.web.access.limits import ConnectionLimits
from planetwire.web.earth import declarations, job_notes, jobs, sources, visualization
from planetwire.web.earth.layer_snapshots import LayerSnapshots
from planetwire.web.earth.search import router as search_router
from planetwire.web.http.front import Front
from planetwire.web.http.hosts import AllowedHosts, listed
from planetwire.web.http.proxies import BehindProxies, proxies_of
from planetwire.web.live import frames, sse_route
from planetwire.web.live.sse import SseEndpoint
from planetwire.web.live.task_board import TaskBoard
from planetwire.web.live.websocket import SocketEndpoint
from planetwire.web.live.websocket import router as socket_router
from planetwire.web.metrics import expose, expose_bus, expose_earth, expose_front
from planetwire.web.plain import PlainBounds
from planetwire.web.terminal import cities as terminal
from planetwire.web.terminal import ingest
from planetwire.wiring.catalogue import CHANNEL as DECLARED
from planetwire.wiring.catalogue import copy_feeds, defaults_of, desk_of, ensure_sources, followed, rows_counter
from planetwire.wiring.commands import check_request, token_book
from planetwire.wiring.facts import deriving_facts
from planetwire.wiring.keeping import add_keeper
from planetwire.wiring.observations import open_observations
from planetwire.wiring.outlets import add_outlet
from planetwire.wiring.plugins import tell_plugins
from planetwire.wiring.secrets import Secrets
from planetwire.wiring.shared import Shared, job_log_of, open_shared
from planetwire.wiring.work import BROADCASTS, CHANGES, TASKS, Parts, check_supported, pool_of, relay_of, soon

log = get_logger()

UPDATES = "earth_updates"


@dataclass(slots=True)
class Web(Parts):
    """The web process: the application, and the protocol class that answers `/api/events`; None: uvicorn's own."""

    app: FastAPI = field(default_factory=FastAPI)
    protocol: Any = None
    routers: list[APIRouter] = field(default_factory=list)
    checks: dict[str, health.Check] = field(default_factory=dict)
    shared: Shared = field(default_factory=Shared)
    readings: object = None  # the observation store


@asynccontextmanager
async def open_web(
    settings: Settings, dsn: str | None, secrets: Secrets, *, login_code: str | None
) -> AsyncIterator[Web]:
    """Everything that answers browsers; the relay and the observation writer live here too."""
    check_supported(settings)
    tell_plugins()
    limits = ConnectionLimits(total=settings.stream.max_connections, per_address=settings.stream.max_per_address)
    async with AsyncExitStack() as stack:
        shared = await open_shared(stack, settings, secrets.session_key, login_code)
        front = _front(settings)
        web, pool, follower = Web(shared=shared, protocol=_protocol(settings, front)), None, None
        guard = _guard(settings, secrets, shared)
        if dsn is not None and settings.earth:
            pool = await pool_of(stack, dsn, "web", 8)
            follower = await followed(pool, settings, ensure_sources(pool, settings), copy_feeds(pool))
            await _open_earth(web, stack, settings, dsn, pool, guard, limits, secrets, follower)
        else:
            web.routers.append(halves.router("earth"))
        if settings.terminal:
            await _open_terminal(web, stack, settings, guard, limits, pool, dsn, front, follower)
        else:
            web.routers.append(halves.router("terminal"))
        web.routers.append(_sources(settings, pool, guard, follower))
        names = [name for name, on in (("earth", pool is not None), ("terminal", settings.terminal)) if on]
        notes = _audit(web, settings, pool, guard)
        room = add_keeper(web.loops, settings, pool, web.readings)
        web.routers.append(
            session.router(guard, notes, halves=names, simulated=settings.simulated, version=__version__, room=room)
        )
        readiness = health.Readiness(web.checks)
        diagnosis = Diagnostics(pool, readiness.look, secrets.admin_token, own_trust(settings.tls_cert))
        web.routers.append(health.router(readiness, names, diagnosis, guard, scheme_of(settings)))
        rights = {"public_reads": settings.public_reads, "public_diagnostics": settings.diagnostics_are_public}
        web.app = web_app.create(web.routers, __version__, **rights)
        web.app.add_middleware(BehindProxies, proxies=guard.proxies)
        if settings.plain_http:
            web.app.add_middleware(PlainBounds, front=front)
        yield web


def _guard(settings: Settings, secrets: Secrets, shared: Shared) -> Guard:
    return Guard(
        secrets.admin_token,
        secrets.ingest_token,
        secrets.session_key,
        settings.public_reads,
        shared.codes,
        shared.limits,
        shared.sessions,
        operator_token=plain(settings.operator_token),
        viewer_token=plain(settings.viewer_token),
        named=token_book(settings),
        proxies=proxies_of(settings),
        public_diagnostics=settings.diagnostics_are_public,
    )


async def _open_earth(
    web: Web,
    stack: AsyncExitStack,
    settings: Settings,
    dsn: str,
    pool: Pool,
    guard: Guard,
    limits: ConnectionLimits,
    secrets: Secrets,
    follower: Follower,
) -> None:
    clock, cache = SystemClock(), web.shared.cache
    doorbell = PostgresWakeup(settings.database_direct_url or dsn, (CHANGES, TASKS, BROADCASTS, DECLARED))
    doorbell.start()
    stack.push_async_callback(doorbell.aclose)
    registry = follower.catalogue.registry
    event_log = await PostgresEventLog.open(pool)
    facts, objects = PostgresFactStore(pool), PostgresObjectStore(pool, owned_tables())
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
    relay = relay_of(settings, pool, doorbell, cache.invalidate, lambda events: tail_bell.ring(), follower)
    queue = PostgresJobQueue(pool, settings.jobs)
    board, audit = PostgresJobBoard(pool), PostgresAuditLog(pool, settings.audit_keep_days)
    job_log = job_log_of(stack, settings, pool, secrets.session_key)
    tasks = TaskBoard(board, clock, doorbell.bell(TASKS))
    sockets = SocketEndpoint(hub, tasks, guard=guard, limits=limits, clock=clock, settings=settings.stream)
    pruner = PostgresPruner(pool)
    web.routers += [
        jobs.router(
            PostgresJobDesk(pool, queue),
            board,
            guard,
            rows_counter(pool, follower.catalogue),
            registry.canonical,
            admit=partial(check_request, known=follower.catalogue.fact_feeds),
        ),
        job_notes.router(board, audit, job_log, guard),
        visualization.router(snapshots, guard, lambda: follower.catalogue.current.revision),
        search_router(objects, registry, guard),
        socket_router(sockets),
    ]
    web.loops |= {
        "relay": relay.run,
        "tail": tail.run,
        "earth-hub": hub.run,
        "sockets": sockets.run,
        "tasks": tasks.run,
        "prune": lambda: prune_forever((pruner.changes, pruner.hints, pruner.broadcasts, audit.prune), clock),
        "catalogue": partial(follower.run, doorbell.bell(DECLARED)),
        "signals": expose_earth(relay, snapshots, lambda: read_signals(pool, watched_tables()), clock),
    }
    follower.changed.append(_layers_changed(snapshots, sockets))
    add_outlet(
        web.loops,
        settings,
        secrets.changes_bus,
        pool,
        event_log,
        doorbell.bell(BROADCASTS),
        follower.catalogue.layer_ids,
    )
    web.before_end.append(soon(sockets.drain))
    web.checks |= {
        "postgres": lambda: _schema_current(pool),
        "relay": lambda: _someone_leads(pool),
    }
    expose("earth", hub)


async def _open_terminal(
    web: Web,
    stack: AsyncExitStack,
    settings: Settings,
    guard: Guard,
    limits: ConnectionLimits,
    pool: Pool | None,
    dsn: str | None,
    front: Front,
    follower: Follower | None,
) -> None:
    clock = SystemClock()
    cities.read_zones()
    known = observed_sources()
    if follower is not None:
        _keep_up(known, follower)
    observations = await open_observations(stack, settings, dsn)
    web.readings, store, event_log = observations.store, observations.store, observations.log
    hub = Hub(event_log, encode=frames.sse_encoder(event_log.epoch), clock=clock, stall_s=settings.stream.stall_s)
    stack.push_async_callback(hub.aclose)
    endpoint = SseEndpoint(
        hub, resolve_city=_city_key, guard=guard, limits=limits, clock=clock, settings=settings.stream
    )
    pushed = ingest.IngestEndpoint(Ingest(store, clock, known, admit=observations.admit).accept, guard)
    web.protocol = _protocol(settings, front, endpoint, pushed)
    web.routers += [
        sse_route.router(endpoint),
        ingest.router(pushed),
        terminal.router(store, event_log, clock, known, guard, web.shared.cache.generation),
    ]
    web.loops |= {"terminal-hub": hub.run, "streams": endpoint.run}
    web.before_end.append(soon(endpoint.drain))
    web.checks |= {"observations": observations.usable, "bus": observations.joined}
    expose("terminal", hub)
    expose_bus(observations.connected)
    publish: Callable[[Sequence[Any]], None] = hub.publish
    if (
        pool is not None and follower is not None and (source := city_facts())
    ):  # the weather half on the globe, where both halves run
        stations = PostgresStations(pool, deriving_facts(pool, follower.catalogue.registry), source)
        bridge = StationBridge(event_log, store, stations, clock, known)
        publish, web.loops["stations"] = bridge.after(hub.publish), bridge.run
    web.loops |= await observations.feed(hub, publish)


def _city_key(name: str) -> str | None:
    city = cities.resolve(name)
    return city.key if city else None


def _sources(settings: Settings, pool: Pool | None, guard: Guard, follower: Follower | None) -> APIRouter:
    states = FeedStates(settings.data_dir / "feeds")
    catalogue = Catalogue() if follower is None else follower.catalogue
    canonical, describe = catalogue.registry.canonical, sources.described_by(catalogue.registry)

    def runs() -> Sequence[Json]:
        return states.runs(list(catalogue.observation_feeds)) if settings.terminal else ()

    if pool is None or follower is None:
        return sources.router(None, guard, runs=runs, canonical=canonical, describe=describe)
    store = PostgresSourceStore(pool, defaults_of(settings, catalogue))
    pause = PostgresJobDesk(pool, PostgresJobQueue(pool, settings.jobs)).pause
    counter = rows_counter(pool, catalogue)
    routes = sources.router(
        store, guard, pause=pause, rows_of=counter, runs=runs, canonical=canonical, describe=describe
    )
    routes.include_router(declarations.router(desk_of(pool, settings, catalogue), guard, follower.look))
    return routes


def _keep_up(known: Sources, follower: Follower) -> None:
    """What is known of sources of readings follows the declarations."""

    async def changed(before: Snapshot, after: Snapshot) -> None:
        known.know(feed.observed for feed in after.observation_feeds.values())

    known.know(feed.observed for feed in follower.catalogue.observation_feeds.values())
    follower.changed.append(changed)


def _layers_changed(snapshots: LayerSnapshots, sockets: SocketEndpoint) -> Changed:
    """Bodies of layers that are declared otherwise are dropped, then open pages are told."""

    async def changed(before: Snapshot, after: Snapshot) -> None:
        ids = before.index.adapters.keys() | after.index.adapters.keys()
        other = [i for i in ids if before.index.adapters.get(i) != after.index.adapters.get(i)]
        layers = [layer for one in (before, after) for layer in one.layers if layer.id in other]
        await snapshots.drop(layers)
        sockets.tell_layers(after.revision)

    return changed


def _audit(web: Web, settings: Settings, pool: Pool | None, guard: Guard) -> Notes:
    """In the ledger's database, and in a file while that is away; without a ledger in the file alone."""
    clock = SystemClock()
    kept = FileAuditLog(settings.data_dir / "audit", settings.audit_keep_days, clock.now)
    if pool is None:
        web.loops["prune-audit"] = lambda: prune_forever((kept.prune,), clock)
        web.routers.append(audit_route.router(kept, guard))
        notes = Notes(kept, clock)
    else:
        log = PostgresAuditLog(pool, settings.audit_keep_days)
        web.routers.append(audit_route.router(log, guard))
        notes = Notes(log, clock, kept, log.carry)
    web.loops["audit"] = notes.run
    return notes


async def _schema_current(pool: Pool) -> str | None:
    async with translated(), pool.acquire(timeout=health.READY_S) as connection:
        missing = await pending_postgres(connection)
    return behind_text(missing)


async def _someone_leads(pool: Pool) -> str | None:
    leader = await PostgresChangeLog(pool, payload).leader()
    return None if leader["held"] else "no relay leads"


def _protocol(settings: Settings, front: Front, *endpoints: Any) -> Any:
    """Imported for who wants it alone: a plain server starts also when uvicorn has changed below ours."""
    if settings.plain_http:
        return None
    from planetwire.web.live.sse_protocol import make_protocol

    endpoint, pushed = endpoints or (None, None)
    return make_protocol(endpoint, pushed, front)


def _front(settings: Settings) -> Front:
    """The name that the operator listens on is one of ours too."""
    front = Front(settings.requests, AllowedHosts([*listed(settings.allowed_hosts), settings.host]))
    expose_front(front)
    return front
