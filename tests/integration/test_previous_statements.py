"""Expand, then contract: what a process of the previous version says to the database is understood after the upgrade.

It still runs while the first process of this version migrates. Its statements are those beside its modules.
"""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import asyncpg
import pytest

import previous_version
from planetwire.database.postgres import Connection, Pool
from planetwire.database.sql import queries_beside
from planetwire.migrating.migrate import migrate_sqlite

PREPARABLE = {"select", "insert", "update", "delete", "merge", "with", "values", "("}


@pytest.fixture(scope="module")
def previous(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The previous version's package, as its sources."""
    tree = tmp_path_factory.mktemp("previous")
    previous_version.unpack(tree)
    return tree / "src" / "planetwire"


def named(sidecar: Path) -> list[tuple[str, str]]:
    return list(queries_beside(str(sidecar.with_suffix(".py"))))


def first_word(statement: str) -> str:
    text = re.sub(r"--[^\n]*\n", "", statement).lstrip()
    return "(" if text.startswith("(") else text.split(None, 1)[0].lower()


async def not_understood(connection: Connection, previous: Path) -> dict[str, str]:
    """By statement of the previous version what the server says against it."""
    wrong = {}
    for sidecar in sorted(previous.rglob("*_postgres.sql")):
        transaction = connection.transaction()
        await transaction.start()
        prepared = [pair for pair in named(sidecar) if first_word(pair[1]) in PREPARABLE]
        for _, statement in named(sidecar):
            if first_word(statement) == "create":  # a temporary table that others use
                await connection.execute(statement)
        for name, statement in prepared:
            await connection.execute("savepoint one")
            try:
                await connection.prepare(statement)
            except asyncpg.PostgresError as error:
                wrong[f"{sidecar.stem}.{name}"] = str(error)
                await connection.execute("rollback to one")
        await transaction.rollback()
    return wrong


async def test_what_the_previous_version_says_is_understood_by_this_schema(previous: Path, pg_pool: Pool) -> None:
    assert len(list(previous.rglob("*_postgres.sql"))) > 10
    async with pg_pool.acquire() as connection:
        assert await not_understood(connection, previous) == {}


async def test_a_contraction_is_seen_by_what_the_previous_version_says(previous: Path, pg_pool: Pool) -> None:
    """The check itself can fail: a column that it reads is gone."""
    async with pg_pool.acquire() as connection:
        await connection.execute("alter table collection_tasks rename column message to said")
        assert await not_understood(connection, previous)


def test_what_the_previous_version_says_to_the_file_is_understood_by_this_schema(previous: Path) -> None:
    file = sqlite3.connect(":memory:", isolation_level=None)
    migrate_sqlite(file)
    sidecars = sorted(previous.rglob("*_sqlite.sql"))
    assert sidecars
    for sidecar in sidecars:
        for _, statement in named(sidecar):
            names = dict.fromkeys(re.findall(r":([a-z][a-z0-9_]*)", statement))
            file.execute(f"explain {statement}", names or [None] * statement.count("?"))
    file.close()
