"""A real PostgreSQL for tests: one embedded cluster per test process, one fresh migrated database per test."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from planetwire.database.postgres import Pool, connect, open_pool
from planetwire.supervise.embedded_postgres import EmbeddedPostgres
from planetwire.testing.databases import CONFIG, CREATE, DROP, TEMPLATE, Databases, new_name

FIRST_ID = 2**31 + 1  # all ids in tests exceed four bytes


@pytest.fixture(scope="session")
def pg_cluster() -> Iterator[EmbeddedPostgres]:
    """A running cluster with a migrated template database. Durability is off: crash tests start their own."""
    folder = Path(tempfile.mkdtemp(prefix="pw-test-"))
    folder.chmod(0o755)
    cluster = EmbeddedPostgres(folder, config=dict(CONFIG))
    cluster.start()
    try:
        asyncio.run(_make_template(Databases(cluster)))
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


async def _make_template(databases: Databases) -> None:
    await databases.prepare()
    connection = await connect(databases.dsn(TEMPLATE), application="test")
    for row in await connection.fetch("select sequencename from pg_sequences where schemaname = 'public'"):
        await connection.execute(f'alter sequence "{row["sequencename"]}" restart with {FIRST_ID}')
    await connection.close()


@contextmanager
def database_of(cluster: EmbeddedPostgres, script: str = "") -> Iterator[str]:
    """A migrated database for several tests, which clean up after themselves; `script` is run in it first."""
    databases, name = Databases(cluster), new_name()
    dsn = databases.dsn(name)
    asyncio.run(databases.run(CREATE.format(name=name)))
    try:
        if script:
            asyncio.run(_run(dsn, script))
        yield dsn
    finally:
        asyncio.run(databases.run(DROP.format(name=name)))


async def _run(dsn: str, script: str) -> None:
    connection = await connect(dsn, application="test")
    await connection.execute(script)
    await connection.close()


@asynccontextmanager
async def fresh_database(cluster: EmbeddedPostgres) -> AsyncIterator[str]:
    """Address of a fresh, migrated database; dropped afterwards."""
    async with Databases(cluster).fresh() as dsn:
        yield dsn


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
