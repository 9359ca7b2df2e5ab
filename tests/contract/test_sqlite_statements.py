"""Every statement of every SQLite sidecar is one that the migrated file understands and some code uses."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

import planetwire
from planetwire.database.sql import queries_beside
from planetwire.migrating.migrate import migrate_sqlite

SIDECARS = sorted(Path(planetwire.__file__).parent.rglob("*_sqlite.sql"))
EVERY_ROW = re.compile(r"\bSCAN (observation_patch_events|observation_history)\b(?!.*USING (COVERING )?INDEX)")


@pytest.fixture
def migrated() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate_sqlite(connection)
    yield connection
    connection.close()


def test_there_are_sidecars_to_check() -> None:
    assert {"observations_sqlite.sql", "log_sqlite.sql"} <= {path.name for path in SIDECARS}


@pytest.mark.parametrize("sidecar", SIDECARS, ids=lambda path: path.stem)
def test_every_statement_is_understood_and_reads_by_an_index(sidecar: Path, migrated: sqlite3.Connection) -> None:
    """S123, S124, S130: no statement walks over all events or readings."""
    for name, statement in queries_beside(str(sidecar.with_suffix(".py"))):
        named = dict.fromkeys(re.findall(r":([a-z][a-z0-9_]*)", statement))
        values = named or [None] * statement.count("?")
        plan = [row[3] for row in migrated.execute(f"explain query plan {statement}", values)]
        assert not [step for step in plan if EVERY_ROW.search(step)], name


@pytest.mark.parametrize("sidecar", SIDECARS, ids=lambda path: path.stem)
def test_every_statement_is_used_and_every_use_is_a_statement(sidecar: Path) -> None:
    named = {name for name, _ in queries_beside(str(sidecar.with_suffix(".py")))}
    used = set(re.findall(r"\bQ\.([a-z][a-z0-9_]*)", sidecar.with_suffix(".py").read_text(encoding="utf-8")))
    assert named == used


def test_migrating_twice_changes_nothing(migrated: sqlite3.Connection) -> None:
    """S114."""
    before = migrated.execute("select sql from sqlite_master order by name").fetchall()
    assert migrate_sqlite(migrated) == []
    assert migrated.execute("select sql from sqlite_master order by name").fetchall() == before
