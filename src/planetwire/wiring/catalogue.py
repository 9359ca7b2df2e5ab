"""The catalogue of one process: what is shipped, what the store declares, and the loop that follows the store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial

from planetwire.catalogue.catalogue import Catalogue, LiveSequence, Snapshot
from planetwire.catalogue.compose import Composer, Read, ReadDeclaration
from planetwire.catalogue.declarations_postgres import PostgresDeclarations
from planetwire.catalogue.desk import DeclaredSources
from planetwire.catalogue.folder import SourceFolder
from planetwire.catalogue.follow import Follower, Prepare
from planetwire.collect.feeds import FactFeed, ObservationFeed, check_feed, source_defaults, unknown
from planetwire.database.postgres import Pool
from planetwire.datasets.registry import plugin_named, plugins
from planetwire.declared import read as declared
from planetwire.errors import SetupError
from planetwire.facts.facts_postgres import PostgresFactStore
from planetwire.facts.sources_postgres import PostgresSourceStore
from planetwire.jobs.ledger.jobs_postgres import PostgresJobQueue
from planetwire.jobs.running import Handler
from planetwire.model import Lease, SourceDefaults
from planetwire.model.facts import FACT_TABLE, RowsOf
from planetwire.outbox.registry_postgres import write_feeds
from planetwire.runtime.clock import SystemClock
from planetwire.settings import Settings

CHANNEL = "planet_declared_sources"
SOURCE_FILES, FILES_LOCK = "sources", "sources.lock"  # in the data dir, in its run/


def reader(settings: Settings) -> Read:
    """Reads one text. Raises DeclarationFaults, also for a private address unless the settings allow it."""

    def read(text: str, *, name: str | None = None) -> ReadDeclaration:
        found = declared.read(text, name=name, private=settings.sources_private)
        key = found.declaration.key
        return ReadDeclaration(found.source, found.dataset, [(one, found.declaration.fields[one]) for one in key])

    return read


def _declarations(pool: Pool, settings: Settings) -> PostgresDeclarations:
    return PostgresDeclarations(pool, PostgresJobQueue(pool, settings.jobs).submit_in)


async def followed(pool: Pool, settings: Settings, *prepare: Prepare) -> Follower:
    """The catalogue at the store's present revision. Raises BackendError, and SetupError as `check_feeds`."""
    store = _declarations(pool, settings)
    follower = Follower(Catalogue(), store, Composer(reader(settings)), SystemClock(), prepare=prepare)
    await follower.look()
    check_feeds(settings, follower.catalogue.current)
    return follower


async def catalogue_of(pool: Pool, settings: Settings) -> Catalogue:
    """For one command: as it is now. Raises BackendError."""
    store = _declarations(pool, settings)
    catalogue = Catalogue()
    catalogue.swap(Composer(reader(settings), quiet=True)(await store.read()))
    return catalogue


def ensure_sources(pool: Pool, settings: Settings) -> Prepare:
    """Each source has its row of schedule and last run."""

    async def prepare(snapshot: Snapshot) -> None:
        await PostgresSourceStore(pool, _defaults(settings, snapshot)).ensure()

    return prepare


def copy_feeds(pool: Pool) -> Prepare:
    """The triggers know which layers a source feeds."""

    async def prepare(snapshot: Snapshot) -> None:
        await write_feeds(pool, snapshot.registry.feeds())

    return prepare


def defaults_of(settings: Settings, catalogue: Catalogue) -> Sequence[SourceDefaults]:
    """Schedule of every feed of facts with the operator's settings in force, as they are at the moment.

    Made once a snapshot: the schedule asks every second, and again for each source that is due.
    """
    made = lru_cache(maxsize=1)(partial(_defaults, settings))
    return LiveSequence(lambda: made(catalogue.current))


def _defaults(settings: Settings, snapshot: Snapshot) -> list[SourceDefaults]:
    """Where feeds are simulated a plug-in's is off, since nobody simulates it, unless the operator says otherwise."""
    made = source_defaults(snapshot.fact_feeds.values(), settings)
    if not settings.simulated:
        return made
    return [replace(one, enabled=False) if _is_real(settings, one.source) else one for one in made]


def _is_real(settings: Settings, source: str) -> bool:
    own = settings.feed(source)
    return own.url is None and own.enabled is None and plugin_named(source) is not None


def check_feeds(settings: Settings, snapshot: Snapshot, *, others: bool = False) -> None:
    """Raises SetupError for settings that a feed cannot use, and unless there are `others` of a source that is none.

    While a plug-in is left out, that source may be one of its: it stops nothing.
    """
    known: dict[str, FactFeed | ObservationFeed] = {**snapshot.fact_feeds, **snapshot.observation_feeds}
    for source, own in settings.feeds.items():
        if source in snapshot.faults or (source not in known and (others or plugins().left_out)):
            continue
        if source not in known:
            raise SetupError(f"PLANETWIRE_FEEDS__{source.upper()}__…: {unknown(source, known).message}")
        check_feed(known[source], own)


def desk_of(pool: Pool, settings: Settings, catalogue: Catalogue) -> DeclaredSources:
    """What people do to declared sources."""
    store, rows_of = _declarations(pool, settings), rows_counter(pool, catalogue)
    return DeclaredSources(store, reader(settings), catalogue, rows_of)


def rows_counter(pool: Pool, catalogue: Catalogue) -> RowsOf:
    """Counts what clearing a source would delete, by table: the facts first, then what its layers own."""
    facts, registry = PostgresFactStore(pool), catalogue.registry

    async def count(source: str) -> dict[str, int]:
        return dict(await facts.count_rows([FACT_TABLE, *registry.owned_tables(source)], source))

    return count


def looking_first(follower: Follower, task: Handler) -> Handler:
    """The task with the newest declarations: a job may be as new as what declares its source."""

    async def run(lease: Lease) -> str | None:
        await follower.look()
        return await task(lease)

    return run


def source_files(settings: Settings, pool: Pool, catalogue: Catalogue) -> SourceFolder:
    """Run it beside the schedule; of several processes on one data dir one watches."""
    store = _declarations(pool, settings)

    async def brought(origin: str) -> list[str]:
        return [one.name for one in (await store.read()).all if one.origin == origin]

    folder, lock = settings.data_dir / SOURCE_FILES, settings.data_dir / "run" / FILES_LOCK
    desk = desk_of(pool, settings, catalogue)
    return SourceFolder(folder, lock, desk, brought, SystemClock(), lambda: catalogue.current.revision)
