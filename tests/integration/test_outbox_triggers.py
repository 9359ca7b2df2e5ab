"""What writes a change row and what does not: every shape of statement, on a real server."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest

from planetwire.database.postgres import Connection, Pool
from planetwire.outbox.tables import EVENTS, WATCHED, Watched, statements, trigger_names
from planetwire.supervise.embedded_postgres import EmbeddedPostgres, dsn_of

# As the operators' manual prints them.
BACKLOG = """SELECT id, table_name, operation, source, occurred_at
FROM earth_data_change_events
WHERE consumed_at IS NULL
ORDER BY id
LIMIT 20;"""
TRIGGERS = """SELECT tgname, tgrelid::regclass
FROM pg_trigger
WHERE tgname LIKE 'tr_planet_%_changed_%'
ORDER BY 2, 1;"""
MANUAL = Path(__file__).resolve().parents[2] / "docs" / "operations.md"

Seen = tuple[str, str, str | None, int]


async def changes(connection: Connection) -> list[Seen]:
    """New change rows as (table, operation, source, records), and forget them."""
    rows = await connection.fetch(
        "select table_name, operation, source, records_processed from earth_data_change_events order by id"
    )
    await connection.execute("delete from earth_data_change_events")
    return [tuple(row) for row in rows]


async def insert(connection: Connection, source: str, *keys: str, table: str = "collected_data") -> None:
    await connection.execute(
        f"insert into {table} (source, external_key, kind) select $1, unnest($2::text[]), 'k'", source, list(keys)
    )


async def test_each_statement_writes_one_row_per_source(pg_pool: Pool) -> None:
    """S8, S16, S23, S25, Q25."""
    async with pg_pool.acquire() as connection:
        await connection.execute(
            "insert into collected_data (source, external_key, kind)"
            " select case n % 2 when 0 then 'a' else 'b' end, n::text, 'k' from generate_series(1, 5) n"
        )
        assert sorted(await changes(connection)) == [
            ("collected_data", "INSERT", "a", 2),
            ("collected_data", "INSERT", "b", 3),
        ]
        await connection.execute("update collected_data set title = 'new' where source = 'a'")
        assert await changes(connection) == [("collected_data", "UPDATE", "a", 2)]
        await connection.execute("delete from collected_data where source = 'b'")
        assert await changes(connection) == [("collected_data", "DELETE", "b", 3)]


async def test_zero_rows_and_unchanged_rows_write_nothing(pg_pool: Pool) -> None:
    """Q24."""
    async with pg_pool.acquire() as connection:
        await insert(connection, "a", "1", "2")
        await changes(connection)
        await connection.execute("delete from collected_data where source = 'nobody'")
        await connection.execute("update collected_data set title = 'x' where source = 'nobody'")
        await connection.execute("update collected_data set title = title, data = data")
        await connection.execute("insert into collected_data (source, external_key, kind) select 'a', 'b', 'c' limit 0")
        assert await changes(connection) == []
        await connection.execute("update collected_data set title = case external_key when '1' then 'x' else '' end")
        assert await changes(connection) == [("collected_data", "UPDATE", "a", 1)]


async def fill(connection: Connection, rows: int) -> None:
    await connection.execute(
        "insert into collected_data (source, external_key, kind, data)"
        " select case n % 4 when 0 then 'a' else 'b' end, n::text, 'k', '{\"x\": 1.0}' from generate_series(1, $1) n",
        rows,
    )
    await changes(connection)


@pytest.mark.parametrize("rows", [8, 2_000])
@pytest.mark.parametrize(
    ("what", "a", "b"),
    [
        ("title = 'new'", 1, 1),
        ("title = title, data = data", 0, 0),
        ("title = case when {n} % 8 in (4, 5) then 'new' else '' end", 1 / 2, 1 / 6),
        ("data = jsonb_set(data, '{x}', '1.00')", 1, 1),  # equal by value, and shown differently
        ("observed_at = now(), source = case when {n} % 8 = 4 then 'b' else source end", 1, 7 / 6),
        ("title = 'new', source = case source when 'a' then 'b' else 'a' end", 4, 4 / 3),
        ("title = case when {n} <= 4 then 'x' else '' end, kind = case when {n} > 4 then 'x' else kind end", 1, 1),
    ],
)
async def test_of_many_rows_as_of_few_those_that_changed_are_counted(
    rows: int, what: str, a: float, b: float, pg_pool: Pool
) -> None:
    """Q24, Q25: also where the first rows do not tell what happened to the others."""
    async with pg_pool.acquire() as connection:
        await fill(connection, rows)
        wanted = {"a": round(rows / 4 * a), "b": round(rows * 3 / 4 * b)}
        await connection.execute(f"update collected_data set {what.replace('{n}', 'external_key::int')}")
        seen = await changes(connection)
    assert {row[2]: row[3] for row in seen} == {source: n for source, n in wanted.items() if n}
    assert len(seen) == sum(1 for n in wanted.values() if n)


async def test_columns_that_cannot_be_compared_are_no_hindrance(pg_pool: Pool) -> None:
    """Q24: a type without an equality, a generated column, a dropped one."""
    async with pg_pool.acquire() as connection:
        await connection.execute(
            "create table derived_rows (id bigint primary key, source text not null, gone text, raw json,"
            " twice bigint generated always as (id * 2) stored)"
        )
        await connection.execute("alter table derived_rows drop column gone")
        await connection.execute(statements(Watched("derived_rows")))
        await connection.execute("insert into derived_rows select n, 'a', '{}' from generate_series(1, 2000) n")
        await changes(connection)
        await connection.execute("update derived_rows set raw = raw")
        assert await changes(connection) == []
        await connection.execute("""update derived_rows set raw = '{"b": 1}' where id <= 1500""")
        assert await changes(connection) == [("derived_rows", "UPDATE", "a", 1500)]
        await connection.execute("alter table derived_rows add column note text")
        await connection.execute("update derived_rows set note = 'new', id = -id")  # what went and what came
        assert await changes(connection) == [("derived_rows", "UPDATE", "a", 4000)]
        await connection.execute("update derived_rows set note = 'newer'")
        assert await changes(connection) == [("derived_rows", "UPDATE", "a", 2000)]


async def test_an_upsert_writes_its_updates_and_its_inserts(pg_pool: Pool) -> None:
    """Q24."""
    async with pg_pool.acquire() as connection:
        await insert(connection, "a", "1", "2")
        await changes(connection)
        await connection.execute(
            "insert into collected_data (source, external_key, kind) select 'a', unnest(array['1','2','3']), 'new'"
            " on conflict (source, external_key) do update set kind = excluded.kind"
        )
        assert sorted(await changes(connection)) == [
            ("collected_data", "INSERT", "a", 1),
            ("collected_data", "UPDATE", "a", 2),
        ]
        await connection.execute(
            "insert into collected_data (source, external_key, kind) values ('a', '1', 'new')"
            " on conflict (source, external_key) do nothing"
        )
        assert await changes(connection) == []


async def test_merge_writes_each_action_that_touched_rows(pg_pool: Pool) -> None:
    """Q24."""
    async with pg_pool.acquire() as connection:
        await insert(connection, "a", "1", "2")
        await changes(connection)
        await connection.execute(
            """merge into collected_data f using (values ('1', true), ('2', false), ('3', false)) v (key, gone)
               on f.source = 'a' and f.external_key = v.key
               when matched and v.gone then delete
               when matched then update set title = 'merged'
               when not matched then insert (source, external_key, kind) values ('a', v.key, 'k')"""
        )
        assert sorted(row[1] for row in await changes(connection)) == ["DELETE", "INSERT", "UPDATE"]


async def test_writes_inside_a_cte_are_seen(pg_pool: Pool) -> None:
    """Q24."""
    async with pg_pool.acquire() as connection:
        await insert(connection, "old", "1")
        await changes(connection)
        await connection.execute(
            "with gone as (delete from collected_data where source = 'old' returning external_key, kind)"
            " insert into collected_data (source, external_key, kind) select 'new', external_key, kind from gone"
        )
        assert sorted(await changes(connection)) == [
            ("collected_data", "DELETE", "old", 1),
            ("collected_data", "INSERT", "new", 1),
        ]


async def test_copy_is_one_insert(pg_pool: Pool) -> None:
    """Q24."""
    async with pg_pool.acquire() as connection:
        await connection.copy_records_to_table(
            "collected_data",
            records=[("a", str(n), "k") for n in range(500)],
            columns=["source", "external_key", "kind"],
        )
        assert await changes(connection) == [("collected_data", "INSERT", "a", 500)]


async def test_truncate_is_a_delete_of_every_source_unless_the_table_was_empty(pg_pool: Pool) -> None:
    """Q24."""
    async with pg_pool.acquire() as connection:
        await insert(connection, "a", "1", "2")
        await changes(connection)
        await connection.execute("truncate collected_data")
        assert await changes(connection) == [("collected_data", "DELETE", None, 2)]
        await connection.execute("truncate collected_data")
        assert await changes(connection) == []


async def test_a_changed_source_counts_for_the_old_and_the_new(pg_pool: Pool) -> None:
    """Q24, Q25."""
    async with pg_pool.acquire() as connection:
        await insert(connection, "a", "1", "2")
        await insert(connection, "c", "9")
        await changes(connection)
        await connection.execute("update collected_data set source = 'b' where source = 'a'")
        assert sorted(await changes(connection)) == [
            ("collected_data", "UPDATE", "a", 2),
            ("collected_data", "UPDATE", "b", 2),
        ]


async def test_the_replica_role_does_not_escape(pg_pool: Pool) -> None:
    """S16, S80."""
    async with pg_pool.acquire() as connection:
        await connection.execute("set session_replication_role = replica")
        await insert(connection, "a", "1")
        await connection.execute("truncate collected_data")
        await connection.execute("reset session_replication_role")
        assert [row[1] for row in await changes(connection)] == ["INSERT", "DELETE"]


async def test_a_rollback_leaves_no_change_row(pg_pool: Pool) -> None:
    """S17."""
    async with pg_pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        await insert(connection, "a", "1")
        assert await connection.fetchval("select count(*) from earth_data_change_events") == 1
        await transaction.rollback()
        assert await changes(connection) == []


async def test_a_role_that_may_only_write_facts_is_recorded_too(
    pg_pool: Pool, pg_dsn: str, pg_cluster: EmbeddedPostgres
) -> None:
    """S80: a repair script of any role, with a search path that hides our tables behind its own."""
    role = f"repairer_{os.getpid()}"
    database = urlsplit(pg_dsn).path.removeprefix("/")
    admin = await asyncpg.connect(dsn_of(pg_cluster.socket_dir, "postgres", database))
    try:
        await admin.execute(f"create role {role}")
        await admin.execute(f"grant select, insert on collected_data to {role}")
        await admin.execute("create schema trap; create table trap.earth_data_change_events (table_name text)")
        await admin.execute(f"set role {role}; set search_path = trap, public")
        await admin.execute("insert into public.collected_data (source, external_key, kind) values ('a', '1', 'k')")
        await admin.execute("reset role")
        assert await admin.fetchval("select count(*) from trap.earth_data_change_events") == 0
        async with pg_pool.acquire() as connection:
            assert await changes(connection) == [("collected_data", "INSERT", "a", 1)]
    finally:
        await admin.execute(f"reset role; drop owned by {role}; drop role {role}")
        await admin.close()


async def _derived(connection: Connection) -> None:
    await connection.execute(
        "create table derived_rows (id bigint generated always as identity primary key, source text not null,"
        " fact_key text not null, note text, foreign key (source, fact_key)"
        " references collected_data (source, external_key) on delete cascade)"
    )
    await connection.execute(statements(Watched("derived_rows")))


async def test_a_derived_table_is_seen_when_edited_and_when_a_cascade_empties_it(pg_pool: Pool) -> None:
    """S9, S79."""
    async with pg_pool.acquire() as connection:
        await _derived(connection)
        await insert(connection, "a", "1", "2")
        await connection.execute("insert into derived_rows (source, fact_key) values ('a', '1'), ('a', '2')")
        await changes(connection)
        await connection.execute("update derived_rows set note = 'repaired' where fact_key = '1'")
        assert await changes(connection) == [("derived_rows", "UPDATE", "a", 1)]
        await connection.execute("delete from collected_data where external_key = '1'")
        assert sorted(await changes(connection)) == [
            ("collected_data", "DELETE", "a", 1),
            ("derived_rows", "DELETE", "a", 1),
        ]
        await connection.execute("truncate collected_data cascade")
        assert sorted(await changes(connection)) == [
            ("collected_data", "DELETE", None, 1),
            ("derived_rows", "DELETE", None, 1),
        ]


async def test_the_two_statements_of_the_manual_run_as_printed(pg_pool: Pool) -> None:
    """S81, S82: word for word, order included; and they are what the page prints."""
    assert BACKLOG in MANUAL.read_text(encoding="utf-8") and TRIGGERS in MANUAL.read_text(encoding="utf-8")
    async with pg_pool.acquire() as connection:
        for n in range(25):
            await insert(connection, "a", str(n))
        ids = [row["id"] for row in await connection.fetch("select id from earth_data_change_events order by id")]
        await connection.execute("update earth_data_change_events set consumed_at = now() where id = any($1)", ids[:3])
        backlog = await connection.fetch(BACKLOG)
        assert list(backlog[0].keys()) == ["id", "table_name", "operation", "source", "occurred_at"]
        assert [row["id"] for row in backlog] == ids[3:23]
        assert [tuple(row)[1:4] for row in backlog] == [("collected_data", "INSERT", "a")] * 20
        listed = [tuple(row) for row in await connection.fetch(TRIGGERS)]
        oids = {row[0]: row[1] for row in await connection.fetch("select relname, oid from pg_class")}
        assert listed == sorted(listed, key=lambda row: (oids[row[1]], row[0])), "by table, then by name"
        wanted = {(name, watched.name) for watched in WATCHED for name in trigger_names(watched.name)}
        assert set(listed) == wanted and len(listed) == len(wanted)


async def test_every_listed_table_has_its_triggers_and_they_always_fire(pg_pool: Pool) -> None:
    """S16, S82."""
    async with pg_pool.acquire() as connection:
        rows = await connection.fetch(
            "select tgname, tgrelid::regclass::text as relation, tgenabled from pg_trigger"
            " where tgname like 'tr_planet_%'"
        )
        known = await connection.fetch("select relation::text, reported from earth_watched_relations")
    wanted = {(name, watched.name) for watched in WATCHED for name in trigger_names(watched.name)}
    assert {(row["tgname"], row["relation"]) for row in rows} == wanted
    assert {row["tgenabled"] for row in rows} == {b"A"}
    assert {(row["relation"], row["reported"]) for row in known} <= {(w.name, w.name) for w in WATCHED}


def test_the_shipped_migrations_hold_the_generated_text() -> None:
    """S71: one list of tables."""
    shipped = "".join(
        entry.read_text(encoding="utf-8")
        for entry in sorted(files("planetwire._schema").iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(".postgres.sql")
    )
    for watched in WATCHED:
        assert statements(watched) in shipped
    assert shipped.count("create trigger tr_planet_") == len(EVENTS) * len(WATCHED)


async def test_a_bad_operation_cannot_be_written(pg_pool: Pool) -> None:
    """S8."""
    async with pg_pool.acquire() as connection:
        with pytest.raises(asyncpg.CheckViolationError):
            await connection.execute(
                "insert into earth_data_change_events (table_name, operation) values ('t', 'DROP')"
            )


async def test_a_writer_rings_only_while_the_gate_is_open(pg_pool: Pool, pg_dsn: str) -> None:
    """S18: empty payload, once per transaction; nothing while the gate is shut."""
    heard: list[object] = []
    listener = await asyncpg.connect(pg_dsn)
    await listener.add_listener("planet_earth_data_changes", lambda *call: heard.append(call[-1]))
    async with pg_pool.acquire() as connection:
        await insert(connection, "a", "1")
        await connection.execute(
            "insert into wakeup_gates values ('planet_earth_data_changes', clock_timestamp() + interval '1 minute')"
            " on conflict (channel) do update set open_until = excluded.open_until"
        )
        async with connection.transaction():
            await insert(connection, "a", "2")
            await insert(connection, "b", "3")
        await connection.execute("delete from collected_data where source = 'nobody'")
        await connection.execute("insert into earth_refresh_hints (action) values ('manual_refresh')")
    # Notifications arrive in commit order before the answer of a later query of the listener.
    await listener.execute("select 1")
    await listener.close()
    assert heard == ["", ""]
