"""A real PostgreSQL for tests: one embedded cluster a process, a fresh migrated database a test."""

from __future__ import annotations

import asyncio
import atexit
import itertools
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from planetwire.database.postgres import Connection, connect
from planetwire.migrating.migrate import migrate_postgres
from planetwire.supervise.embedded_postgres import EmbeddedPostgres, dsn_of

TEMPLATE = "template_planetwire"
# Durability is off: nothing outlives the tests.
CONFIG = {"fsync": "off", "shared_buffers": "64MB", "max_connections": "100"}
# By file copy: a third of the CPU time of a copy through the WAL, since nothing is flushed anyway.
CREATE = f"create database {{name}} template {TEMPLATE} owner planetwire strategy file_copy"
DROP = "drop database {name} with (force)"
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Databases:
    """Those of a running cluster."""

    cluster: EmbeddedPostgres

    def dsn(self, name: str) -> str:
        """Address of one of them, for the application's role."""
        return urlunsplit(urlsplit(self.cluster.dsn)._replace(path=f"/{name}"))

    async def prepare(self) -> None:
        """Make the template. Raises BackendError."""
        admin = await self._admin()
        await admin.execute(f"create database {TEMPLATE} owner planetwire")
        await admin.close()
        owner = await self._admin(TEMPLATE)
        await owner.execute("alter schema public owner to planetwire")
        await owner.close()
        application = await connect(self.dsn(TEMPLATE), application="test")
        await migrate_postgres(application)
        await application.close()

    @asynccontextmanager
    async def fresh(self) -> AsyncIterator[str]:
        """Address of a migrated, empty database; dropped afterwards."""
        name, admin = new_name(), await self._admin()
        await admin.execute(CREATE.format(name=name))
        try:
            yield self.dsn(name)
        finally:
            await admin.execute(DROP.format(name=name))
            await admin.close()

    async def run(self, statement: str) -> None:
        """As the superuser, for who makes and drops databases from outside of an event loop."""
        admin = await self._admin()
        await admin.execute(statement)
        await admin.close()

    async def _admin(self, database: str = "postgres") -> Connection:
        return await connect(dsn_of(self.cluster.socket_dir, "postgres", database), application="test")


def new_name() -> str:
    """Of a database, unique among the test processes of this machine."""
    return f"t_{os.getpid()}_{next(_numbers)}"


@cache
def shared() -> Databases:
    """That of this process; it ends with it. Call it outside of an event loop. Raises SetupError without PostgreSQL."""
    folder = Path(tempfile.mkdtemp(prefix="pw-contract-"))
    folder.chmod(0o755)  # where we are root, PostgreSQL runs as somebody else
    databases = Databases(EmbeddedPostgres(folder, config=dict(CONFIG)))

    def end() -> None:
        databases.cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    databases.cluster.start()
    asyncio.run(databases.prepare())
    return databases
