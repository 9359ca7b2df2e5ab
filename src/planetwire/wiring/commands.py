"""What single commands need of the ledger and the sources: no role, no loops."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime

from planetwire.audit.audit_file import FileAuditLog
from planetwire.audit.audit_postgres import PostgresAuditLog
from planetwire.catalogue.catalogue import Catalogue
from planetwire.catalogue.desk import DeclaredSources
from planetwire.catalogue.folder import refusals
from planetwire.collect import parse
from planetwire.collect.feeds import FactFeed, access_to, address_of, check_feed, rules_of, unknown
from planetwire.collect.feedstate_file import FeedStates
from planetwire.collect.http.client import PoliteClient
from planetwire.collect.http.slots import filled
from planetwire.database.postgres import Pool, close_pool, open_pool
from planetwire.datasets.registry import feeds, layer_registry, owned_tables
from planetwire.declared.faults import DeclarationFaults
from planetwire.declared.read import Declared, read
from planetwire.declared.report import examine, render
from planetwire.diagnosis.path import of_this_version
from planetwire.errors import FeedError, InputError
from planetwire.facts.facts_postgres import PostgresFactStore
from planetwire.facts.objects_postgres import PostgresObjectStore
from planetwire.facts.sources_postgres import PostgresSourceStore
from planetwire.jobs.ledger.board_postgres import PostgresJobBoard
from planetwire.jobs.ledger.desk_postgres import PostgresJobDesk
from planetwire.jobs.ledger.jobs_postgres import PostgresJobQueue
from planetwire.model import FetchState, JobRequest, Json, Lane, TaskType
from planetwire.model.facts import RowsOf
from planetwire.model.finding import Finding, step
from planetwire.ports import AuditLog, JobLog
from planetwire.runtime.clock import SystemClock
from planetwire.settings import Settings
from planetwire.stream.log_postgres import PostgresEventLog
from planetwire.web.earth.layer_snapshots import LayerSnapshots
from planetwire.web.stores.cache_memory import MemoryCache
from planetwire.web.stores.tokens_file import FileTokens
from planetwire.wiring.catalogue import SOURCE_FILES, catalogue_of, defaults_of, desk_of, rows_counter
from planetwire.wiring.plugins import with_plugin
from planetwire.wiring.shared import job_log_of

SAID_CHARS = 300  # of one fault


@dataclass(frozen=True, slots=True)
class Ledger:
    """The ledger without a worker."""

    desk: PostgresJobDesk
    board: PostgresJobBoard
    audit: PostgresAuditLog
    lines: JobLog
    rows_of: RowsOf
    catalogue: Catalogue


def canonical(source: str) -> str:
    """A source's own name for its alias; any other text as it is."""
    return layer_registry().canonical(source)


def ledger_source(source: str, catalogue: Catalogue) -> tuple[str, str | None]:
    """The source's own name, and a warning when no feed has it. Raises InputError for one that runs without jobs."""
    name, known = canonical(source), catalogue.fact_feeds
    if name in catalogue.observation_feeds:
        off = f"PLANETWIRE_FEEDS__{name.upper()}__ENABLED=false"
        raise InputError(
            f"{name} runs without jobs, so there is nothing to hold; {off} switches it off at the next start"
        )
    return name, None if name in known else f"{unknown(name, known).message}; done all the same"


def parse_body(source: str, body: bytes, at: datetime) -> Json:
    """What the source's feed makes of a body. Raises NotFound, FeedError; see `collect.parse`."""
    return parse.parse_body(source, body, at, feeds())


@dataclass(frozen=True, slots=True)
class Checked:
    """What is wrong with a declaration, and what it makes of a body: for programs, for people, and whether all is well.

    All is well when nothing is wrong with the declaration and, given a body, some record of it gave a row or it has
    none.
    """

    record: Json
    text: str
    good: bool


def parse_declared(text: str, name: str, body: bytes, at: datetime) -> Json:
    """As `parse_body`, by a declaration that need not be installed. Raises DeclarationFaults, FeedError."""
    feed = read(text, name=name, private=True).feed  # nobody is asked
    return parse.parse_body(feed.source, body, at, {feed.source: feed})


async def check_source(
    settings: Settings, text: str, name: str, body: bytes | None, at: datetime, *, fetch: bool
) -> Checked:
    """Reads the declaration and, with `fetch` or given one, a body. Raises SetupError for settings of its own."""
    try:
        declared = read(text, name=name, private=settings.sources_private)
    except DeclarationFaults as found:
        faults = {"good": False, "faults": [one.record() for one in found.faults], "more": found.more}
        return Checked(faults, found.message, False)
    record: Json = {"good": True, "source": declared.source, "faults": [], "more": 0}
    try:
        if fetch:
            body = await _fetched(settings, declared, at)
        if body is None:
            return Checked(record, f"{declared.source}: nothing is wrong with the declaration", True)
        report = examine(declared, body, at)
    except FeedError as error:
        record |= {"good": False, "error": {"code": error.code, "message": error.message}}
        return Checked(record, f"{declared.source}: {error.message} [{error.code}]", False)
    good = bool(report["rows"] or not report["rejects"])
    return Checked(record | {"good": good, "body": report}, render(report), good)


async def _fetched(settings: Settings, declared: Declared, at: datetime) -> bytes:
    """What its address answers, asked once as the collector does, but without what is remembered of it."""
    feed = declared.feed
    own = settings.feed(feed.source)
    check_feed(feed, own)
    async with PoliteClient(SystemClock()) as client:
        url = filled(address_of(feed, own), at)
        fetched = await client.fetch(url, FetchState(), rules_of(feed, own), access_to(feed, own))
    fetched.raise_failure()
    return fetched.body or b""


def check_request(request: JobRequest, known: Mapping[str, FactFeed]) -> JobRequest:
    """The request with its source's own name, but a clearing as it is: it deletes exactly what was named.

    Raises NotFound for a collect of a source that no feed has.
    """
    if request.task_type.lane is Lane.CLEAR:
        return request
    source = canonical(request.source) if request.source else None
    if request.task_type is TaskType.COLLECT and source not in known:
        raise unknown(source or "", known)
    return replace(request, source=source)


def token_book(settings: Settings) -> FileTokens:
    """The tokens that have names."""
    return FileTokens(settings.tokens_file)


@asynccontextmanager
async def open_ledger(settings: Settings, dsn: str, session_key: bytes = b"") -> AsyncIterator[Ledger]:
    """For one command. Raises SetupError when it failed and the schema is that of another version.

    `session_key`: the installation's, by which its jobs' lines are found in Redis.
    """
    async with of_this_version(dsn), AsyncExitStack() as stack:
        pool = await _pool(stack, dsn)
        desk = PostgresJobDesk(pool, PostgresJobQueue(pool, settings.jobs))
        audit = PostgresAuditLog(pool, settings.audit_keep_days)
        lines = job_log_of(stack, settings, pool, session_key)
        catalogue = await catalogue_of(pool, settings)
        yield Ledger(desk, PostgresJobBoard(pool), audit, lines, rows_counter(pool, catalogue), catalogue)


@asynccontextmanager
async def open_declared(settings: Settings, dsn: str) -> AsyncIterator[DeclaredSources]:
    """What one command does to declared sources. Raises as `open_ledger`."""
    async with of_this_version(dsn), AsyncExitStack() as stack:
        pool = await _pool(stack, dsn)
        yield desk_of(pool, settings, await catalogue_of(pool, settings))


async def declared_step(settings: Settings, dsn: str) -> Json:
    """Of the diagnostic: declarations that are skipped, and files in the data dir that are refused."""
    async with of_this_version(dsn), AsyncExitStack() as stack:
        pool = await _pool(stack, dsn)
        catalogue = await catalogue_of(pool, settings)
        files = await refusals(settings.data_dir / SOURCE_FILES, desk_of(pool, settings, catalogue))
    snapshot = catalogue.current
    found = [
        Finding("declaration_skipped", f"{name}: {error.message[:SAID_CHARS]}")
        for name, error in sorted(snapshot.faults.items())
    ]
    found += [Finding("source_file_refused", f"{name}.yaml: {why[:SAID_CHARS]}") for name, why in sorted(files.items())]
    detail = f"{len(snapshot.declared)} at revision {snapshot.revision}"
    return step("sources", "Declared sources can be used", detail, found)


@asynccontextmanager
async def open_audit(settings: Settings, dsn: str | None) -> AsyncIterator[AuditLog]:
    """For one command: the ledger's, or, where no database is or answers, the one in the data dir. What is noted
    there is brought to the ledger's by the web process.
    """
    kept = FileAuditLog(settings.data_dir / "audit", settings.audit_keep_days, SystemClock().now)
    if dsn is None:
        yield kept
        return
    async with of_this_version(dsn), AsyncExitStack() as stack:
        yield PostgresAuditLog(await _pool(stack, dsn), settings.audit_keep_days)


async def source_records(settings: Settings, dsn: str | None) -> list[Json]:
    """What `GET /api/v1/sources` lists, in name order, each with its plug-in; without a database those of readings."""
    catalogue = Catalogue()
    records: list[Json] = []
    if dsn is not None:
        async with of_this_version(dsn), AsyncExitStack() as stack:
            pool = await _pool(stack, dsn)
            catalogue = await catalogue_of(pool, settings)
            records += await PostgresSourceStore(pool, defaults_of(settings, catalogue)).list()
    if settings.terminal:
        records += FeedStates(settings.data_dir / "feeds").runs(list(catalogue.observation_feeds))
    records.sort(key=lambda record: str(record["source"]))
    return [with_plugin(record, str(record["source"])) for record in records]


async def layer_records(settings: Settings, dsn: str) -> list[Json]:
    """As `GET /api/v1/layers`, each with its plug-in; from the database, which cannot tell which are simulated."""
    async with of_this_version(dsn), AsyncExitStack() as stack:
        pool = await _pool(stack, dsn)
        facts, objects = PostgresFactStore(pool), PostgresObjectStore(pool, owned_tables())
        log, clock = await PostgresEventLog.open(pool), SystemClock()
        registry = (await catalogue_of(pool, settings)).registry
        layers = await LayerSnapshots(facts, registry, log, MemoryCache(), clock, objects=objects).layers()
        return [with_plugin(layer, str(layer["id"])) for layer in layers]


async def _pool(stack: AsyncExitStack, dsn: str) -> Pool:
    pool = await open_pool(dsn, application="cli", max_size=2)
    stack.push_async_callback(close_pool, pool)
    return pool
