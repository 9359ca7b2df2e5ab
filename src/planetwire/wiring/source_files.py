"""The files of declared sources, put together: the folder in the data dir, the store, the lock in `run/`."""

from __future__ import annotations

from planetwire.catalogue.catalogue import Catalogue
from planetwire.catalogue.declarations_postgres import PostgresDeclarations
from planetwire.catalogue.folder import SourceFolder
from planetwire.database.postgres import Pool
from planetwire.jobs.ledger.jobs_postgres import PostgresJobQueue
from planetwire.runtime.clock import SystemClock
from planetwire.settings import Settings
from planetwire.wiring.catalogue import desk_of

FOLDER, LOCK = "sources", "sources.lock"


def source_files(settings: Settings, pool: Pool, catalogue: Catalogue) -> SourceFolder:
    """Run it beside the schedule; of several processes on one data dir one watches."""
    store = PostgresDeclarations(pool, PostgresJobQueue(pool, settings.jobs).submit_in)

    async def brought(origin: str) -> list[str]:
        return [one.name for one in (await store.read()).all if one.origin == origin]

    run = settings.data_dir / "run"
    desk = desk_of(pool, settings, catalogue)
    return SourceFolder(settings.data_dir / FOLDER, run / LOCK, desk, brought, SystemClock())
