"""What `migrate --plan` says of a migration is what the server does: locks, rewritten tables."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from planetwire.database.postgres import Connection, Pool, connect, connected
from planetwire.migrating.effects import LOCKS, checks_of, effects_of, indexes_of, statements
from planetwire.migrating.migrate import migrations
from planetwire.supervise.embedded_postgres import EmbeddedPostgres, dsn_of
from planetwire.testing.databases import Databases

TABLES = """select c.relname, c.relfilenode from pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')"""
HELD = """select c.relname, l.mode from pg_locks l join pg_class c on c.oid = l.relation
    where l.pid = pg_backend_pid() and l.granted and c.relnamespace = 'public'::regnamespace
        and c.relkind in ('r', 'p')"""
MODES = {f"{lock.title().replace(' ', '')}Lock": lock for lock in LOCKS}
SCRIPTS = [one.sql for one in migrations("postgres")]
INDEXES, CHECKS = indexes_of(SCRIPTS), checks_of(SCRIPTS)
OTHERS = (
    "alter table collected_data add column made_at timestamptz not null default clock_timestamp()",
    "alter table collected_data add column note text",
    "alter table collected_data add column note text, add column said text not null default ''",
    "alter table collected_data alter column title type varchar(100)",
    "alter table collected_data alter column kind set not null",
    "alter table collected_data alter column kind drop not null",
    "alter table collected_data add constraint lat_is_one check (lat between -90 and 90)",
    "alter table collected_data drop column title",
    "alter table collected_data rename column title to name",
    "alter table collected_data disable trigger planet_derive_inserted",
    "alter table collected_data set (fillfactor = 90)",
    "create unique index one_title on collected_data (source, title)",
    "create index by_kind on collected_data (kind)",
    "drop index collected_data_source_observed",
    "drop trigger planet_derive_inserted on collected_data",
    "update collected_data set title = 'x; y -- z'",
    "delete from collected_data where title = 'it''s; gone'",
    "create table beside (source text references datasources (source))",
    "alter table collection_tasks drop constraint collection_tasks_running_has_lease",
    "alter table collection_tasks drop constraint collection_tasks_progress_check",
    "alter table paused_sources drop constraint paused_sources_pkey",
    "alter table collected_data add column half double precision generated always as (lat / 2) stored",
    "alter table collected_data add column half double precision check (half is not null or lat is null)",
    "alter table collected_data add column half double precision not null",
    "drop index collection_tasks_busy",
)
EXPANDS = {OTHERS[n] for n in (0, 1, 2, 5, 9, 10, 12, 13, 15, 16, 17, 18, 19, 21, 22)}


async def done(connection: Connection, script: str) -> tuple[dict[str, str], set[str]]:
    """The strongest lock on each table that was there, and those that got a new file. Inside a transaction."""
    before = {row[0]: row[1] for row in await connection.fetch(TABLES)}
    await connection.execute(script)
    locks: dict[str, str] = {}
    for table, mode in await connection.fetch(HELD):
        if mode in MODES and table in before:
            locks[table] = max(locks.get(table, LOCKS[0]), MODES[mode], key=LOCKS.index)
    after = {row[0]: row[1] for row in await connection.fetch(TABLES)}
    return locks, {table for table, file in before.items() if after.get(table, file) != file}


@pytest.fixture
def empty(pg_cluster: EmbeddedPostgres) -> Iterator[str]:
    async def run(statement: str) -> None:
        async with connected(dsn_of(pg_cluster.socket_dir, "postgres", "postgres"), application="test") as admin:
            await admin.execute(statement)

    asyncio.run(run("create database t_effects owner planetwire"))
    yield Databases(pg_cluster).dsn("t_effects")
    asyncio.run(run("drop database t_effects with (force)"))


def test_the_plan_of_every_migration_is_what_the_server_does(empty: str) -> None:
    async def run() -> dict[str, object]:
        wrong: dict[str, object] = {}
        connection = await connect(empty, application="test")
        for one in migrations("postgres"):
            told = effects_of(one.sql, INDEXES, CHECKS)
            async with connection.transaction():
                locks, rewritten = await done(connection, one.sql)
            if (told.locks, told.rewrites) != (locks, rewritten):
                wrong[one.name] = (told.locks, locks, told.rewrites, rewritten)
        await connection.close()
        return wrong

    assert asyncio.run(run()) == {}


async def test_statements_that_no_migration_has_yet_are_known_too(pg_pool: Pool) -> None:
    """The kinds that a next one may have, each planned and done."""
    wrong = {}
    async with pg_pool.acquire() as connection:
        for text in OTHERS:
            told = effects_of(text, INDEXES, CHECKS)
            transaction = connection.transaction()
            await transaction.start()
            locks, rewritten = await done(connection, text)
            locks = {table: lock for table, lock in locks.items() if table in told.locks or lock != "row exclusive"}
            await transaction.rollback()
            if (told.locks, told.rewrites, told.kind == "expand") != (locks, rewritten, text in EXPANDS):
                wrong[text] = (told.locks, locks, told.rewrites, rewritten, told.contracts)
    assert wrong == {}


def test_an_older_process_works_on_beside_the_lanes() -> None:
    """Of the ledger, which everything waits for: no contraction, and that it is written anew is said."""
    lanes = next(one for one in migrations("postgres") if one.name == "0026_lanes")
    told = effects_of(lanes.sql, INDEXES, CHECKS)
    assert (told.contracts, told.rewrites) == ([], {"collection_tasks"})


def test_what_is_not_known_counts_as_a_contraction_and_texts_are_no_statements() -> None:
    assert effects_of("do $$ begin drop table x; end $$").contracts == ["not known: do $$"]
    assert list(statements("select ';--'; -- a; b\nSELECT $x$ ; $x$;")) == ["select ';--'", "select $$"]
