"""Applies `_schema/NNNN_name.<engine>.sql` in order: forward only, each in a transaction, checksums kept.

Processes that start together exclude each other: on PostgreSQL by an advisory lock, on SQLite by its write lock.
Time limits are in `locks_postgres.py`.
"""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Literal

from planetwire.database.pool_sqlite import connect
from planetwire.database.postgres import Connection
from planetwire.errors import SetupError
from planetwire.migrating.locks_postgres import Patience, Watch
from planetwire.settings import MigrationSettings

Engine = Literal["postgres", "sqlite"]
LEAST_SERVER = 150_000  # PostgreSQL 15: ENABLE ALWAYS on partitions, GRANT SET ON PARAMETER

_TABLE = """create table if not exists planetwire_migrations (
    name text primary key, checksum text not null, applied_at text not null default current_timestamp)"""


@dataclass(frozen=True, slots=True)
class Migration:
    """One schema file."""

    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """SHA-256 of the file's text."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


def migrations(engine: Engine) -> list[Migration]:
    """The engine's files in order."""
    suffix = f".{engine}.sql"
    found = [
        Migration(entry.name.removesuffix(suffix), entry.read_text(encoding="utf-8"))
        for entry in files("planetwire._schema").iterdir()
        if entry.name.endswith(suffix)
    ]
    return sorted(found, key=lambda migration: migration.name)


def _missing(wanted: list[Migration], applied: dict[str, str]) -> list[Migration]:
    known = {migration.name: migration for migration in wanted}
    for name, checksum in applied.items():
        if name not in known:
            raise SetupError(f"the database has migration {name}, which this version does not know; upgrade first")
        if known[name].checksum != checksum:
            raise SetupError(f"migration {name} was changed after it had been applied")
    return [migration for migration in wanted if migration.name not in applied]


async def migrate_postgres(
    connection: Connection, limits: MigrationSettings | None = None, *, watch: Watch | None = None
) -> list[str]:
    """Names applied now; empty when up to date. `watch` opens a second connection that finds blocking sessions.

    Raises SetupError for an old server, a changed file, and a migration that cannot be done now; says what to do.
    """
    version = connection.get_server_version()
    if version.major * 10_000 < LEAST_SERVER:
        raise SetupError(f"PostgreSQL 15 or newer is needed; this server is {version.major}.{version.minor}")
    patience = Patience(connection, limits or MigrationSettings(), watch)
    applied: list[str] = []
    while (name := await patience.again(lambda: _apply_next(connection, patience))) is not None:
        applied.append(name)
    return applied


async def _apply_next(connection: Connection, patience: Patience) -> str | None:
    async with patience.transaction():
        await connection.execute(_TABLE)
        rows = await connection.fetch("select name, checksum from planetwire_migrations")
        todo = _missing(migrations("postgres"), {row["name"]: row["checksum"] for row in rows})
        if not todo:
            return None
        await patience.run(todo[0].name, todo[0].sql)
        await connection.execute(
            "insert into planetwire_migrations (name, checksum) values ($1, $2)", todo[0].name, todo[0].checksum
        )
    return todo[0].name


async def pending_postgres(connection: Connection) -> list[str]:
    """Names not yet applied."""
    return [migration.name for migration in await due_postgres(connection)]


async def due_postgres(connection: Connection) -> list[Migration]:
    """Those not yet applied. Raises SetupError for a database of a newer version."""
    return _missing(migrations("postgres"), await applied_postgres(connection))


async def applied_postgres(connection: Connection) -> dict[str, str]:
    """By name the checksums of those that the database has."""
    if await connection.fetchval("select to_regclass('planetwire_migrations')") is None:
        return {}
    rows = await connection.fetch("select name, checksum from planetwire_migrations")
    return {row["name"]: row["checksum"] for row in rows}


def due_sqlite(path: Path) -> list[Migration]:
    """Those that the file does not have; nothing is made or changed. Raises SetupError for one of a newer version."""
    return _missing(migrations("sqlite"), applied_sqlite(path))


def applied_sqlite(path: Path) -> dict[str, str]:
    """By name the checksums of those that the file has; a file that is not there has none. Raises SetupError."""
    if not path.exists():
        return {}
    try:
        with closing(connect(path, read_only=True)) as connection:
            named = "select 1 from sqlite_master where name = 'planetwire_migrations'"
            if connection.execute(named).fetchone() is None:
                return {}
            return dict(connection.execute("select name, checksum from planetwire_migrations").fetchall())
    except sqlite3.Error as error:
        raise SetupError(f"the observation file {path} cannot be read: {error}") from error


def migrate_sqlite(connection: sqlite3.Connection) -> list[str]:
    """Names applied now. The connection must be in autocommit mode (`isolation_level=None`)."""
    connection.execute("begin immediate")
    try:
        connection.execute(_TABLE)
        rows = connection.execute("select name, checksum from planetwire_migrations").fetchall()
        todo = _missing(migrations("sqlite"), dict(rows))
        for migration in todo:
            for statement in _statements(migration.sql):
                connection.execute(statement)
            connection.execute(
                "insert into planetwire_migrations (name, checksum) values (?, ?)", (migration.name, migration.checksum)
            )
    except BaseException:
        connection.execute("rollback")
        raise
    connection.execute("commit")
    return [migration.name for migration in todo]


def _statements(script: str) -> list[str]:
    """Split at the semicolons that end a statement; `executescript` would commit our transaction."""
    out: list[str] = []
    buffer = ""
    for line in script.splitlines(keepends=True):
        buffer += line
        if sqlite3.complete_statement(buffer):
            out.append(buffer)
            buffer = ""
    return [*out, buffer] if buffer.strip() else out
