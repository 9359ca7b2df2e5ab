"""A real PostgreSQL for tests: one embedded cluster per test process, one fresh migrated database per test."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest
import pytest_asyncio

from planetwire.database.postgres import Pool, connect, open_pool
from planetwire.migrating.migrate import migrate_postgres
from planetwire.supervise.embedded_postgres import EmbeddedPostgres, dsn_of

TEMPLATE = "template_planetwire"
# By file copy: a third of the CPU time of a copy through the WAL, since nothing is flushed anyway.
CREATE = f"create database {{name}} template {TEMPLATE} owner planetwire strategy file_copy"
FIRST_ID = 2**31 + 1  # all ids in tests exceed four bytes
_numbers = itertools.count()


def _with_database(dsn: str, name: str) -> str:
    return urlunsplit(urlsplit(dsn)._replace(path=f"/{name}"))


@pytest.fixture(scope="session")
def pg_cluster() -> Iterator[EmbeddedPostgres]:
    """A running cluster with a migrated template database. Durability is off: crash tests start their own."""
    folder = Path(tempfile.mkdtemp(prefix="pw-test-"))
    folder.chmod(0o755)
    cluster = EmbeddedPostgres(folder, config={"fsync": "off", "shared_buffers": "64MB", "max_connections": "100"})
    cluster.start()
    try:
        asyncio.run(_make_template(cluster))
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


async def _make_template(cluster: EmbeddedPostgres) -> None:
    admin = await connect(dsn_of(cluster.socket_dir, "postgres", "postgres"), application="test")
    await admin.execute(f"create database {TEMPLATE} owner planetwire")
    await admin.close()
    owner = await connect(dsn_of(cluster.socket_dir, "postgres", TEMPLATE), application="test")
    await owner.execute("alter schema public owner to planetwire")
    await owner.close()
    app = await connect(dsn_of(cluster.socket_dir, "planetwire", TEMPLATE), application="test")
    await migrate_postgres(app)
    for row in await app.fetch("select sequencename from pg_sequences where schemaname = 'public'"):
        await app.execute(f'alter sequence "{row["sequencename"]}" restart with {FIRST_ID}')
    await app.close()


@contextmanager
def database_of(cluster: EmbeddedPostgres, script: str = "") -> Iterator[str]:
    """A migrated database for several tests, which clean up after themselves; `script` is run in it first."""
    name = f"m_{os.getpid()}_{next(_numbers)}"
    dsn = _with_database(cluster.dsn, name)
    admin = dsn_of(cluster.socket_dir, "postgres", "postgres")
    asyncio.run(_run(admin, CREATE.format(name=name)))
    try:
        if script:
            asyncio.run(_run(dsn, script))
        yield dsn
    finally:
        asyncio.run(_run(admin, f"drop database {name} with (force)"))


async def _run(dsn: str, script: str) -> None:
    connection = await connect(dsn, application="test")
    await connection.execute(script)
    await connection.close()


@asynccontextmanager
async def fresh_database(cluster: EmbeddedPostgres) -> AsyncIterator[str]:
    """Address of a fresh, migrated database; dropped afterwards."""
    name = f"t_{os.getpid()}_{next(_numbers)}"
    admin = await connect(dsn_of(cluster.socket_dir, "postgres", "postgres"), application="test")
    await admin.execute(CREATE.format(name=name))
    try:
        yield _with_database(cluster.dsn, name)
    finally:
        await admin.execute(f"drop database {name} with (force)")
        await admin.close()


@pytest_asyncio.fixture
async def pg_dsn(pg_cluster: EmbeddedPostgres) -> AsyncIterator[str]:
    """Address of a fresh, migrated database; dropped afterwards."""
    async with fresh_database(pg_cluster) as dsn:
        yield dsn


@pytest_asyncio.fixture
async def pg_pool(pg_dsn: str) -> AsyncIterator[Pool]:
    """A pool on a fresh database."""
    pool = await open_pool(pg_dsn, application="test", min_size=1, max_size=10)
    try:
        yield pool
    finally:
        await pool.close()
