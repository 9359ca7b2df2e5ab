"""Tables that belong to one layer: the database has what is declared, what is printed works, what is made stays."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from print_table import migration_of

from planetwire.database.postgres import Connection, Pool
from planetwire.datasets.registry import owned_tables
from planetwire.facts.objects_postgres import PostgresObjectStore
from planetwire.facts.owned_postgres import beside, put_owned, statements
from planetwire.model import Column, OwnedTable

TABLES = owned_tables()
CABLES = OwnedTable(
    "cable_segments",
    (
        Column("label", "text", "what it is called", required=True),
        Column("length_km", "double precision", "how long it is", "km"),
        Column("laid", "timestamptz", "when it was laid"),
        Column("pairs", "bigint", "of fibres"),
        Column("lit", "boolean", "whether it carries anything"),
        Column("route", "jsonb", "where it lies"),
        Column("state", "text", "how it is", values=("planned", "in use")),
    ),
    card_key="cable",
)
AT = datetime(2026, 12, 1, tzinfo=UTC)
TOLD = "select operation, records_processed from earth_data_change_events where table_name = $1 order by id"
ROW = ("Atlantic", 6_600.0, AT, 8, True, {"points": [[1, 2]]}, "in use")

each_declared = pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
each_table = pytest.mark.parametrize("table", [*TABLES, CABLES], ids=lambda table: table.name)


@pytest.fixture
async def connection(pg_pool: Pool) -> AsyncIterator[Connection]:
    """With the made-up table, by its printed text; nothing of it stays."""
    async with pg_pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute(migration_of(CABLES))
        yield connection
        await transaction.rollback()


async def described(connection: Connection, table: str) -> dict[str, Any]:
    """Everything of a table that its declaration says, with the table's own name taken out."""
    columns = await connection.fetch(
        "select attname, format_type(atttypid, atttypmod), attnotnull, attidentity,"
        " pg_get_expr(adbin, adrelid) as otherwise from pg_attribute"
        " left join pg_attrdef on adrelid = attrelid and adnum = attnum"
        " where attrelid = $1::text::regclass and attnum > 0 and not attisdropped order by attnum",
        table,
    )
    constraints = await connection.fetch(
        "select conname, pg_get_constraintdef(oid) from pg_constraint where conrelid = $1::text::regclass", table
    )
    triggers = await connection.fetch(
        "select pg_get_triggerdef(oid), tgenabled from pg_trigger where tgrelid = $1::text::regclass", table
    )
    options = await connection.fetchval("select reloptions from pg_class where oid = $1::text::regclass", table)
    lists = {"columns": columns, "constraints": constraints, "triggers": triggers}
    plain = {
        name: [tuple(str(value).replace(table, "…") for value in row) for row in rows] for name, rows in lists.items()
    }
    return plain | {name: sorted(plain[name]) for name in ("constraints", "triggers")} | {"options": options}


@each_declared
async def test_a_declared_table_is_the_one_that_the_migrations_made(table: OwnedTable, pg_pool: Pool) -> None:
    """S9, S71: columns in their order, types, defaults, keys, checks, room, triggers."""
    twin = replace(table, name="twin_of_it")
    async with pg_pool.acquire() as connection, connection.transaction():
        await connection.execute(migration_of(twin))
        made, wanted = [await described(connection, name) for name in (table.name, twin.name)]
        await connection.execute("drop table public.twin_of_it cascade")
        await connection.execute("drop function public.planet_follow_twin_of_it() cascade")
    assert made == wanted


async def fact(connection: Connection, key: str) -> None:
    await connection.execute("insert into collected_data (source, external_key, kind) values ('s', $1, 'k')", key)


def row_for(table: OwnedTable) -> Sequence[object]:
    given = {"text": "x", "double precision": 1.5, "bigint": 7, "boolean": True, "timestamptz": AT, "jsonb": {"a": 1}}
    return [column.values[0] if column.values else given[column.type] for column in table.columns]


async def kept(connection: Connection, table: OwnedTable) -> list[str]:
    return [row[0] for row in await connection.fetch(f"select fact_key from {table.name} order by fact_key")]


@each_table
@pytest.mark.parametrize(
    "deletion",
    [
        "delete from collected_data where external_key = 'a'",
        "update collected_data set external_key = 'c' where external_key = 'a'",
        "update collected_data set source = 't' where external_key = 'a'",
        "set local session_replication_role = replica; delete from collected_data where external_key = 'a'",
        "truncate collected_data",
    ],
)
async def test_rows_go_with_their_facts_and_both_are_told(
    deletion: str, table: OwnedTable, connection: Connection
) -> None:
    """S9, S80."""
    for key in ("a", "b"):
        await fact(connection, key)
    await put_owned(connection, table, "s", ["a", "b"], [row_for(table)] * 2)
    await connection.execute("delete from earth_data_change_events")
    await connection.execute(deletion)
    left = [] if "truncate" in deletion else ["b"]
    assert await kept(connection, table) == left
    told = await connection.fetch(TOLD, table.name)
    assert [tuple(row) for row in told] == [("DELETE", 2 - len(left))]


@each_table
async def test_rows_with_the_same_values_stay_and_those_of_facts_that_give_none_go(
    table: OwnedTable, connection: Connection
) -> None:
    """S9: one statement a table and batch, and no change row for nothing."""
    row = row_for(table)
    await put_owned(connection, table, "s", ["a", "b", "c"], [row, row, None])
    before = await connection.fetch(f"select ctid, xmin, * from {table.name} order by fact_key")
    assert [one["fact_key"] for one in before] == ["a", "b"]
    await put_owned(connection, table, "s", ["a", "b"], [row, row])
    assert await connection.fetch(f"select ctid, xmin, * from {table.name} order by fact_key") == before
    await put_owned(connection, table, "s", ["a", "b"], [None, row])
    assert await kept(connection, table) == ["b"]
    await put_owned(connection, table, "other", ["b"], [None])
    assert await kept(connection, table) == ["b"], "a key of another source is another fact"
    told = await connection.fetch(TOLD, table.name)
    assert [tuple(one) for one in told] == [("INSERT", 2), ("DELETE", 1)]


async def test_every_type_arrives_as_it_was_given_and_text_as_the_database_can_hold_it(connection: Connection) -> None:
    odd = ("A\x00B\ud800" + "x" * 5_000, math.nan, None, None, None, {"a\x00": "b\x00"}, None)
    await put_owned(connection, CABLES, "s", ["a", "b"], [ROW, odd])
    names = ", ".join(column.name for column in CABLES.columns)
    plain, cleaned = await connection.fetch(f"select {names} from cable_segments order by fact_key")
    assert tuple(plain) == ROW
    assert cleaned["label"].startswith("AB") and "\x00" not in cleaned["label"] and len(cleaned["label"]) == 2_000
    assert cleaned["route"] == {"a": "b"}
    assert [cleaned[name] for name in ("laid", "pairs", "lit", "state")] == [None] * 4


async def test_what_a_layer_gives_in_one_transaction_after_another_is_not_mixed(connection: Connection) -> None:
    for keys in (["a", "b"], ["c"]):
        await put_owned(connection, CABLES, "s", keys, [ROW] * len(keys))
        await put_owned(connection, CABLES, "t", keys, [ROW] * len(keys))
    rows = await connection.fetch("select source, count(*) from cable_segments group by source order by source")
    assert [tuple(row) for row in rows] == [("s", 3), ("t", 3)]


async def test_the_card_has_a_key_for_each_table_and_the_row_of_the_fact(pg_pool: Pool) -> None:
    """The keys are there for objects of other layers too; numbers that JSON has not are null."""
    assert [table.card_key for table in TABLES if table.card_key] == ["orbit"]
    columns = [column for column in TABLES[0].columns if column.type == "double precision"]
    await pg_pool.execute(
        "insert into collected_data (source, external_key, kind) values ('s', 'with', 'k'), ('s', 'without', 'k')"
    )
    row = [math.nan if column in columns else value for column, value in zip(TABLES[0].columns, row_for(TABLES[0]))]  # noqa: B905
    async with pg_pool.acquire() as connection, connection.transaction():
        await put_owned(connection, TABLES[0], "s", ["with"], [row])
    store = PostgresObjectStore(pg_pool, TABLES)
    shown, without = [await store.card(f"satellites:s:{key}") for key in ("with", "without")]
    assert shown is not None and without is not None
    assert without["orbit"] is None and list(shown) == list(without)
    assert list(shown)[list(shown).index("data") + 1] == "orbit"
    assert set(shown["orbit"]) == {column.name for column in TABLES[0].columns}
    assert {shown["orbit"][column.name] for column in columns} == {None} and shown["orbit"]["norad_id"] == 7
    assert "orbit" not in ((await PostgresObjectStore(pg_pool).card("satellites:s:with")) or {})


@each_table
async def test_every_generated_statement_prepares(table: OwnedTable, connection: Connection) -> None:
    made = statements(table)
    await connection.execute(made.create)
    for statement in (made.put, made.drop, beside("select 's' as source, 'k' as key", [table])):
        assert await connection.prepare(statement)


def test_a_stage_of_other_columns_has_another_name() -> None:
    """A pooler's connection outlives the version that made its stage."""
    assert statements(CABLES).stage != statements(replace(CABLES, columns=CABLES.columns[:-1])).stage


def wrong() -> Iterator[tuple[str, Any]]:
    def table(name: str = "t", *columns: Column, **more: Any) -> Any:
        return lambda: OwnedTable(name, columns or (Column("a", "text", "x"),), **more)

    yield "a quotation mark", table('a"b')
    yield "capitals", table("Cables")
    yield "a blank", table("a b")
    yield "too long for its triggers' names", table("a" * 37)
    yield "no columns", lambda: OwnedTable("t", ())
    yield "a column twice", table("t", Column("a", "text", "x"), Column("a", "bigint", "x"))
    yield "a key that is no name", table(card_key="a b")
    yield "a column of every table", lambda: Column("fact_key", "text", "x")
    yield "a column that is no name", lambda: Column("a;b", "text", "x")
    yield "values of a number", lambda: Column("a", "bigint", "x", values=("1",))
    yield "a value with a quotation mark", lambda: Column("a", "text", "x", values=("it's",))


@pytest.mark.parametrize(("what", "declare"), list(wrong()), ids=[what for what, _ in wrong()])
def test_a_declaration_that_could_not_be_printed_is_refused(what: str, declare: Any) -> None:
    with pytest.raises(ValueError):
        declare()
