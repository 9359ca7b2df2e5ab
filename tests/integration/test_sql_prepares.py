"""Every statement of every PostgreSQL sidecar is one that the migrated schema understands and some code uses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import planetwire
from planetwire.database.postgres import Pool
from planetwire.database.sql import queries_beside

ROOT = Path(planetwire.__file__).parent
SIDECARS = sorted(ROOT.rglob("*_postgres.sql"))
PREPARABLE = {"select", "insert", "update", "delete", "merge", "with", "values", "("}


def _first_word(statement: str) -> str:
    text = re.sub(r"--[^\n]*\n", "", statement).lstrip()
    return "(" if text.startswith("(") else text.split(None, 1)[0].lower()


def test_there_are_sidecars_to_check() -> None:
    assert {"jobs_postgres.sql", "facts_postgres.sql"} <= {path.name for path in SIDECARS}


@pytest.mark.parametrize("sidecar", SIDECARS, ids=lambda path: path.stem)
async def test_every_statement_prepares_against_the_migrated_schema(sidecar: Path, pg_pool: Pool) -> None:
    """Statements that cannot be prepared (a temporary table) are run first, in a transaction that is rolled back."""
    named = dict(queries_beside(str(sidecar.with_suffix(".py"))))
    assert named
    async with pg_pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        for statement in named.values():
            if _first_word(statement) not in PREPARABLE:
                await connection.execute(statement)
        for name, statement in named.items():
            if _first_word(statement) in PREPARABLE:
                assert await connection.prepare(statement), name
        await transaction.rollback()


@pytest.mark.parametrize("sidecar", SIDECARS, ids=lambda path: path.stem)
def test_every_statement_is_used_and_every_use_is_a_statement(sidecar: Path) -> None:
    named = {name for name, _ in queries_beside(str(sidecar.with_suffix(".py")))}
    used = set(re.findall(r"\bQ\.([a-z][a-z0-9_]*)", sidecar.with_suffix(".py").read_text(encoding="utf-8")))
    assert named == used
