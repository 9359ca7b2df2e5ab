"""The lanes of the ledger: what it does to a task type is said by one function, and no other SQL names a type."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import asyncpg
import pytest

import planetwire
from planetwire.database.postgres import Pool
from planetwire.model import Lane, TaskType

ROOT = Path(planetwire.__file__).parent
HEAD = ROOT / "_schema" / "head.sql"
NAMED = re.compile("'(" + "|".join(TaskType) + ")'")
NEW_TYPES = "when 'thin' then 'clear' when 'paint' then 'fill' when 'stroll' then 'free' when 'collect'"
CLAIM = """select * from planet_claim_jobs('w', array['collect', 'thin', 'paint', 'stroll'], array[60, 60, 60, 60], 10,
    interval '1 min', null, null, 0)"""


def statements_naming_a_type(text: str) -> list[str]:
    """Of a dump, or of a file beside a module; comments name what they like."""
    bare = re.sub(r"--[^\n]*", "", text)
    return [" ".join(part.split()) for part in re.split(r";\n\n|;$", bare) if NAMED.search(part)]


def test_no_sql_outside_of_the_mapping_names_a_task_type() -> None:
    """Else to add a type is to find all of them."""
    files = [HEAD, *ROOT.rglob("*_postgres.sql")]
    found = [statement for file in files for statement in statements_naming_a_type(file.read_text(encoding="utf-8"))]
    assert [one for one in found if not one.startswith("CREATE FUNCTION public.planet_task_lane(")] == []


@pytest.mark.parametrize("kind", TaskType)
def test_a_statement_that_names_a_type_is_found(kind: TaskType) -> None:
    """The look itself can fail; a comment or a table of such a name is none."""
    assert statements_naming_a_type(f"select 1;\n\nselect 2 from t\nwhere task_type in ('{kind}')") != []
    assert statements_naming_a_type(f"-- of '{kind}'\nselect * from {kind}_hints") == []


async def test_the_database_and_the_registry_say_the_same_of_every_type(pg_pool: Pool) -> None:
    told = await pg_pool.fetch("select kind, planet_task_lane(kind) as lane from unnest($1::text[]) kind", [*TaskType])
    assert {row["kind"]: row["lane"] for row in told} == {kind.value: kind.lane.value for kind in TaskType}
    source = await pg_pool.fetchval("select pg_get_functiondef('planet_task_lane'::regproc)")
    assert set(re.findall(r"WHEN '(\w+)'", source)) == set(TaskType)
    assert set(re.findall(r"THEN '(\w+)'", source)) == set(Lane)


@pytest.mark.parametrize(("one", "other"), list(product(TaskType, TaskType)))
async def test_of_two_running_jobs_of_a_source_at_most_one_writes(
    one: TaskType, other: TaskType, pg_pool: Pool
) -> None:
    """S38, Q16: held by the table, for each type that there is."""
    running = "insert into collection_tasks (task_type, source, status, lease_until) values ($1, 'a', 'running', now())"
    await pg_pool.execute(running, one)
    if one.is_write and other.is_write:
        with pytest.raises(asyncpg.UniqueViolationError):
            await pg_pool.execute(running, other)
    else:
        await pg_pool.execute(running, other)


@pytest.mark.parametrize("kind", TaskType)
async def test_only_a_write_needs_a_source(kind: TaskType, pg_pool: Pool) -> None:
    """S36, Q16."""
    submit = "insert into collection_tasks (task_type) values ($1) returning lane"
    if kind.is_write:
        with pytest.raises(asyncpg.CheckViolationError):
            await pg_pool.fetchval(submit, kind)
    else:
        assert await pg_pool.fetchval(submit, kind) == kind.lane


async def test_a_new_type_is_one_line_in_the_mapping(pg_pool: Pool) -> None:
    """Three types that nobody has heard of are treated as their lanes: in turn, begun anew or gone on with, audited."""
    source = await pg_pool.fetchval("select pg_get_functiondef('planet_task_lane'::regproc)")
    await pg_pool.execute(source.replace("WHEN 'collect'::text", NEW_TYPES))
    await pg_pool.execute(
        """insert into collection_tasks (task_type, source, records_processed, progress) values
            ('thin', 'a', 7, 0.5), ('paint', 'a', 7, 0.5), ('collect', 'a', 0, 0), ('stroll', null, 0, 0),
            ('paint', 'b', 7, 0.5)"""
    )
    first = {row["task_type"]: row for row in await pg_pool.fetch(CLAIM)}
    assert {kind: row["phase"] for kind, row in first.items()} == {"thin": "clear", "paint": "fetch", "stroll": "hint"}
    assert (first["paint"]["source"], first["paint"]["records_processed"]) == ("b", 0), "a new try starts over"
    assert (first["thin"]["source"], first["thin"]["records_processed"]) == ("a", 7), "a clear goes on where it was"
    assert await pg_pool.fetch(CLAIM) == [], "the others of the source wait for it"
    assert await pg_pool.fetchval("select planet_park_jobs(100, 0)") == 2
    thin = first["thin"]
    await pg_pool.execute(
        "select planet_complete_jobs(array[$1::bigint], array[$2::bigint])", thin["id"], thin["lease_seq"]
    )
    audited = await pg_pool.fetch("select what, task_id, rows_deleted from audit_log")
    assert [tuple(row) for row in audited] == [("data.cleared", thin["id"], 7)]
    assert [row["task_type"] for row in await pg_pool.fetch(CLAIM)] == ["paint"], "its end wakes the next in line"
