"""What single commands need of the ledger and the sources: no role, no loops."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

from planetwire.audit.audit_file import FileAuditLog
from planetwire.audit.audit_postgres import PostgresAuditLog
from planetwire.collect.feeds import fact_feeds, observation_feeds, source_defaults, unknown
from planetwire.collect.feedstate_file import FeedStates
from planetwire.collect.parse import parse_body as parse_body
from planetwire.database.postgres import Pool, close_pool, open_pool
from planetwire.diagnosis.path import of_this_version
from planetwire.errors import InputError
from planetwire.facts.facts_postgres import PostgresFactStore
from planetwire.facts.sources_postgres import PostgresSourceStore
from planetwire.jobs.ledger.board_postgres import PostgresJobBoard
from planetwire.jobs.ledger.desk_postgres import PostgresJobDesk
from planetwire.jobs.ledger.jobs_postgres import PostgresJobQueue
from planetwire.layers.registry import EarthLayerAdapterRegistry
from planetwire.model import JobRequest, Json, Lane, TaskType
from planetwire.ports import AuditLog, JobLog
from planetwire.runtime.clock import SystemClock
from planetwire.settings import Settings
from planetwire.web.earth.clearing import FACT_TABLE, RowsOf
from planetwire.web.stores.tokens_file import FileTokens
from planetwire.wiring.shared import job_log_of


@dataclass(frozen=True, slots=True)
class Ledger:
    """The ledger without a worker."""

    desk: PostgresJobDesk
    board: PostgresJobBoard
    audit: PostgresAuditLog
    lines: JobLog
    rows_of: RowsOf


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
    """The request with its source's own name, but a clearing as it is: it deletes exactly what was named.

    Raises NotFound for a collect of a source that no feed has.
    """
    if request.task_type.lane is Lane.CLEAR:
        return request
    source = canonical(request.source) if request.source else None
    if request.task_type is TaskType.COLLECT and source not in fact_feeds():
        raise unknown(source or "", fact_feeds())
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
        yield Ledger(desk, PostgresJobBoard(pool), audit, lines, rows_of(pool))


def rows_of(pool: Pool) -> RowsOf:
    """Counts what clearing a source would delete, by table: the facts first, then what its layers own."""
    facts, registry = PostgresFactStore(pool), EarthLayerAdapterRegistry()

    async def count(source: str) -> Mapping[str, int]:
        return await facts.count_rows([FACT_TABLE, *registry.owned_tables(source)], source)

    return count


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
    """What `GET /api/v1/sources` lists, in name order; without a database the observation feeds alone."""
    names = list(observation_feeds()) if settings.terminal else []
    records = FeedStates(settings.data_dir / "feeds").runs(names)
    if dsn is not None:
        async with of_this_version(dsn), AsyncExitStack() as stack:
            pool = await _pool(stack, dsn)
            records += await PostgresSourceStore(pool, source_defaults(settings)).list()
    return sorted(records, key=lambda record: str(record["source"]))


async def _pool(stack: AsyncExitStack, dsn: str) -> Pool:
    pool = await open_pool(dsn, application="cli", max_size=2)
    stack.push_async_callback(close_pool, pool)
    return pool
