"""Finds the databases of an installation, for commands that work whether it runs or not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from planetwire.database.postgres import connected
from planetwire.errors import SetupError
from planetwire.outbox.upkeep.triggers_postgres import install_hooks
from planetwire.settings import Settings
from planetwire.supervise.datadir import DataDir
from planetwire.supervise.embedded_postgres import EmbeddedPostgres
from planetwire.wiring.observations import readings_file


@contextmanager
def database_while(settings: Settings) -> Iterator[str]:
    """Its address; an embedded server that does not run is started for the duration of the block."""
    data = DataDir(settings.data_dir)
    running = data.runtime() if data.is_running() else None
    if settings.database_url is not None:
        yield settings.database_direct_url or settings.database_url
    elif running and running.get("database_url"):
        yield str(running["database_url"])
    else:
        with embedded_while(settings) as postgres:
            yield postgres.dsn


@contextmanager
def embedded_while(settings: Settings) -> Iterator[EmbeddedPostgres]:
    """The data dir's own server; created if there is none."""
    postgres = EmbeddedPostgres(settings.data_dir, settings.pg_bin)
    postgres.start()
    try:
        yield postgres
    finally:
        postgres.stop()


async def follow_tables(dsn: str) -> bool:
    """As a superuser, install the event triggers that watch new partitions. Raises BackendError."""
    async with connected(dsn, application="migrate") as connection:
        return await install_hooks(connection)


def has_database(settings: Settings) -> bool:
    """Whether there is a server, or files of an embedded one."""
    return settings.database_url is not None or (settings.data_dir / "postgres").exists()


def saved_file(settings: Settings) -> Path | None:
    """The observation file; None if the database stores readings. Raises SetupError for a separate database."""
    path = readings_file(settings)
    if path is not None or (settings.earth and settings.observations_location == settings.database_url):
        return path
    raise SetupError("readings lie in a database of their own: save that one with pg_dump, beside this")
