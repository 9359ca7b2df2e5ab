"""A real PostgreSQL for the contract's tests: one embedded cluster a process, a fresh migrated database a test."""

from __future__ import annotations

import asyncio
import atexit
import itertools
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from planetwire.database.postgres import connect
from planetwire.migrating.migrate import migrate_postgres
from planetwire.supervise.embedded_postgres import EmbeddedPostgres, dsn_of

TEMPLATE = "template_contract"
# Nothing outlives the tests, so nothing is flushed; then a copy by file costs least.
CONFIG = {"fsync": "off", "shared_buffers": "64MB", "max_connections": "50"}
CREATE = f"create database {{name}} template {TEMPLATE} owner planetwire strategy file_copy"


@dataclass(slots=True)
class Databases:
    """Started once, outside of any event loop."""

    cluster: EmbeddedPostgres
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    @asynccontextmanager
    async def fresh(self) -> AsyncIterator[str]:
        """Address of a migrated, empty database; dropped afterwards."""
        name = f"c_{os.getpid()}_{next(self._numbers)}"
        await self._as_owner(CREATE.format(name=name))
        try:
            yield _named(self.cluster.dsn, name)
        finally:
            await self._as_owner(f"drop database {name} with (force)")

    async def prepare(self) -> None:
        """Make the template. Raises BackendError."""
        await self._as_owner(f"create database {TEMPLATE} owner planetwire")
        await self._as_owner("alter schema public owner to planetwire", TEMPLATE)
        connection = await connect(_named(self.cluster.dsn, TEMPLATE), application="contract")
        try:
            await migrate_postgres(connection)
        finally:
            await connection.close()

    async def _as_owner(self, statement: str, database: str = "postgres") -> None:
        dsn = dsn_of(self.cluster.socket_dir, "postgres", database)
        connection = await connect(dsn, application="contract")
        try:
            await connection.execute(statement)
        finally:
            await connection.close()


@cache
def shared() -> Databases:
    """That of this process; it ends with it. Raises SetupError without binaries of PostgreSQL."""
    folder = Path(tempfile.mkdtemp(prefix="pw-contract-"))
    folder.chmod(0o755)  # where we are root, PostgreSQL runs as somebody else
    databases = Databases(EmbeddedPostgres(folder, config=CONFIG))

    def end() -> None:
        databases.cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    databases.cluster.start()
    asyncio.run(databases.prepare())
    return databases


def _named(dsn: str, name: str) -> str:
    return urlunsplit(urlsplit(dsn)._replace(path=f"/{name}"))
