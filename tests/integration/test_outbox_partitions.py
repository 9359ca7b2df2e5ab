"""Partitions, children and views of watched tables: what writes a change row, and what happens as they come and go."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import asyncpg
import pytest
import pytest_asyncio

from planetwire.database.postgres import Connection, Pool, connect
from planetwire.outbox.tables import Watched, statements
from planetwire.outbox.upkeep.triggers_postgres import install_hooks, read_triggers, repair_triggers
from planetwire.supervise.embedded_postgres import EmbeddedPostgres, dsn_of

Seen = tuple[str, str, str | None, int]

PARTED = """
create table parted (id bigint not null, source text not null, external_key text, kind text) partition by list (source);
create table parted_a partition of parted for values in ('a');
create table parted_b partition of parted for values in ('b');
"""


async def changes(connection: Connection) -> list[Seen]:
    """New change rows as (table, operation, source, records), and forget them."""
    rows = await connection.fetch(
        "select table_name, operation, source, records_processed from earth_data_change_events order by id"
    )
    await connection.execute("delete from earth_data_change_events")
    return [tuple(row) for row in rows]


@pytest_asyncio.fixture
async def plain(pg_pool: Pool) -> AsyncIterator[Connection]:
    """The application's role, which may make no event triggers, and a partitioned table that is watched."""
    async with pg_pool.acquire() as connection:
        await connection.execute(PARTED + statements(Watched("parted", partitioned=True)))
        yield connection


@pytest_asyncio.fixture
async def followed(plain: Connection, pg_dsn: str, pg_cluster: EmbeddedPostgres) -> Connection:
    """The same where a superuser has let us follow tables that come and go."""
    admin = await connect(
        dsn_of(pg_cluster.socket_dir, "postgres", urlsplit(pg_dsn).path.removeprefix("/")), application="test"
    )
    assert await install_hooks(admin)
    await admin.close()
    return plain


async def test_partitions_are_seen_whether_named_or_reached_through_the_parent(plain: Connection) -> None:
    """Q24."""
    await plain.execute("insert into parted values (1, 'a', '1', 'k'), (2, 'b', '2', 'k')")
    assert sorted(await changes(plain)) == [("parted", "INSERT", "a", 1), ("parted", "INSERT", "b", 1)]
    await plain.execute("insert into parted_a values (3, 'a', '3', 'k')")
    assert await changes(plain) == [("parted", "INSERT", "a", 1)]
    await plain.execute("update parted_a set kind = 'new' where id = 3")
    await plain.execute("update parted_a set kind = 'new' where id = 3")
    assert await changes(plain) == [("parted", "UPDATE", "a", 1)]
    await plain.copy_records_to_table("parted_b", records=[(n, "b", "x", "k") for n in (7, 8)])
    assert await changes(plain) == [("parted", "INSERT", "b", 2)]
    await plain.execute("delete from parted_b where id > 6")
    assert await changes(plain) == [("parted", "DELETE", "b", 2)]


async def test_a_row_that_moves_to_another_partition_counts_for_both_sources(plain: Connection) -> None:
    """Q24, Q25."""
    await plain.execute("insert into parted values (3, 'a', '3', 'k')")
    await changes(plain)
    await plain.execute("update parted set source = 'b' where id = 3")
    assert sorted(await changes(plain)) == [("parted", "UPDATE", "a", 1), ("parted", "UPDATE", "b", 1)]


async def test_truncate_is_seen_on_a_partition_and_on_the_whole(plain: Connection) -> None:
    """Q24: of the whole, each relation that had rows reports; the relay merges them."""
    await plain.execute("insert into parted values (1, 'a', '1', 'k'), (2, 'b', '2', 'k')")
    await changes(plain)
    await plain.execute("truncate parted_a")
    assert await changes(plain) == [("parted", "DELETE", None, 1)]
    await plain.execute("truncate parted")
    assert set(await changes(plain)) == {("parted", "DELETE", None, 1)}
    await plain.execute("truncate parted")
    assert await changes(plain) == []


async def test_a_partition_written_to_by_a_replica_is_seen(plain: Connection) -> None:
    """S16, S80."""
    await plain.execute("set session_replication_role = replica")
    await plain.execute("insert into parted_b values (1, 'b', '1', 'k')")
    await plain.execute("reset session_replication_role")
    assert await changes(plain) == [("parted", "INSERT", "b", 1)]


async def test_partitions_of_partitions_and_long_names_are_watched(plain: Connection) -> None:
    long = "parted_" + "c" * 50
    await plain.execute(
        f"create table {long} partition of parted for values in ('c') partition by range (id);"
        f"create table parted_deep partition of {long} for values from (0) to (100);"
        "create schema aside; create table aside.parted_d partition of parted for values in ('d')"
    )
    assert await repair_triggers(plain, ["parted"]) == 12
    await plain.execute(f"insert into {long} values (1, 'c', '1', 'k')")
    await plain.execute("insert into parted_deep values (2, 'c', '2', 'k')")
    await plain.execute("insert into aside.parted_d values (3, 'd', '3', 'k')")
    assert await changes(plain) == [
        ("parted", "INSERT", "c", 1),
        ("parted", "INSERT", "c", 1),
        ("parted", "INSERT", "d", 1),
    ]


async def test_a_child_table_written_to_directly_is_seen(plain: Connection) -> None:
    """Inheritance: the parent's triggers keep silent as well."""
    await plain.execute("create table elder (id bigint not null, source text not null);" + statements(Watched("elder")))
    await plain.execute("create table younger (note text) inherits (elder)")
    await repair_triggers(plain, ["elder"])
    await plain.execute("insert into younger values (1, 'a', 'x')")
    await plain.execute("update elder set source = 'b' where id = 1")
    assert sorted(await changes(plain)) == [
        ("elder", "INSERT", "a", 1),
        ("elder", "UPDATE", "a", 1),
        ("elder", "UPDATE", "b", 1),
    ]


async def test_without_the_right_to_follow_new_partitions_are_found_and_can_be_watched(plain: Connection) -> None:
    """The migration has not failed for it; the diagnostic finds the leaf, the repair watches it."""
    assert not await install_hooks(plain)
    await plain.execute("create table parted_c partition of parted for values in ('c')")
    found = await read_triggers(plain, ["parted"])
    assert not found.followed and found.leaves == 3
    assert {(fault.relation, fault.lacks) for fault in found.faults} == {("parted_c", "missing")}
    assert len(found.faults) == 4 and found.right == 12
    assert await repair_triggers(plain, ["parted"]) == 4
    assert not (await read_triggers(plain, ["parted"])).faults
    assert await repair_triggers(plain, ["parted"]) == 0
    await plain.execute("insert into parted_c values (1, 'c', '1', 'k')")
    assert await changes(plain) == [("parted", "INSERT", "c", 1)]


@pytest.mark.parametrize(
    ("damage", "trigger", "lacks"),
    [
        ("drop trigger tr_planet_parted_a_changed_delete on parted_a", "delete", "missing"),
        ("alter table parted_a disable trigger tr_planet_parted_a_changed_insert", "insert", "disabled"),
        ("alter table parted_a enable trigger tr_planet_parted_a_changed_update", "update", "disabled"),
        (
            "create or replace trigger tr_planet_parted_a_changed_truncate before truncate on parted_a"
            " for each statement execute function planet_note_truncate('elsewhere');"
            "alter table parted_a enable always trigger tr_planet_parted_a_changed_truncate",
            "truncate",
            "wrong",
        ),
    ],
)
async def test_a_trigger_that_was_damaged_is_named_and_made_again(
    damage: str, trigger: str, lacks: str, plain: Connection
) -> None:
    await plain.execute(damage)
    (fault,) = (await read_triggers(plain, ["parted"])).faults
    assert (fault.relation, fault.trigger, fault.lacks) == ("parted_a", f"tr_planet_parted_a_changed_{trigger}", lacks)
    assert await repair_triggers(plain, ["parted"]) == 1
    assert not (await read_triggers(plain, ["parted"])).faults


async def test_a_watched_table_that_is_not_there_is_a_fault(plain: Connection) -> None:
    found = await read_triggers(plain, ["nowhere"])
    assert [(fault.relation, fault.lacks) for fault in found.faults] == [("nowhere", "missing")]


async def test_new_and_attached_partitions_are_followed(followed: Connection) -> None:
    """A new partition is watched at once; one that comes with rows is a change, an empty one is none."""
    await followed.execute("create table parted_c partition of parted for values in ('c')")
    await followed.execute("create table parted_d (like parted)")
    await followed.execute("insert into parted_d values (4, 'd', '4', 'k')")
    await followed.execute("create table parted_e (like parted)")
    assert await changes(followed) == []
    await followed.execute("alter table parted attach partition parted_d for values in ('d')")
    assert await changes(followed) == [("parted", "INSERT", None, 1)]
    await followed.execute("alter table parted attach partition parted_e for values in ('e')")
    assert await changes(followed) == []
    for name in "cde":
        await followed.execute(f"insert into parted_{name} values (9, '{name}', '9', 'k')")
    assert await changes(followed) == [("parted", "INSERT", name, 1) for name in "cde"]
    found = await read_triggers(followed, ["parted"])
    assert found.followed and found.leaves == 5 and not found.faults


async def test_a_detached_partition_is_a_delete_and_says_nothing_afterwards(followed: Connection) -> None:
    await followed.execute("insert into parted values (1, 'a', '1', 'k'), (2, 'b', '2', 'k')")
    await changes(followed)
    await followed.execute("alter table parted detach partition parted_a")
    assert await changes(followed) == [("parted", "DELETE", None, 1)]
    await followed.execute("alter table parted detach partition parted_b concurrently")
    assert await changes(followed) == [("parted", "DELETE", None, 1)]
    await followed.execute("insert into parted_a values (3, 'a', '3', 'k'); delete from parted_b")
    assert await changes(followed) == []


async def test_a_dropped_partition_and_a_dropped_table_are_a_delete(followed: Connection) -> None:
    """Its rows cannot be counted any more."""
    await followed.execute("create table other (id bigint, source text)")
    await followed.execute("drop table other")
    assert await changes(followed) == []
    await followed.execute("drop table parted_a")
    assert await changes(followed) == [("parted", "DELETE", None, 0)]
    await followed.execute("drop table parted")
    assert await changes(followed) == [("parted", "DELETE", None, 0)]
    assert await followed.fetchval("select count(*) from earth_watched_relations where reported = 'parted'") == 0


async def test_what_is_rolled_back_was_no_change(followed: Connection) -> None:
    """S17."""
    await followed.execute("insert into parted values (1, 'a', '1', 'k')")
    await changes(followed)
    transaction = followed.transaction()
    await transaction.start()
    await followed.execute("drop table parted_a")
    await transaction.rollback()
    assert await changes(followed) == []
    await followed.execute("drop table parted_a")
    assert await changes(followed) == [("parted", "DELETE", None, 0)]


async def test_a_trigger_dropped_by_hand_is_not_made_again_by_other_ddl(followed: Connection) -> None:
    """Somebody meant it; the diagnostic says so, and the repair is asked for."""
    await followed.execute("drop trigger tr_planet_parted_a_changed_delete on parted_a")
    await followed.execute("create table parted_c partition of parted for values in ('c')")
    await install_hooks(followed)  # as each start does
    assert [fault.trigger for fault in (await read_triggers(followed, ["parted"])).faults] == [
        "tr_planet_parted_a_changed_delete"
    ]


async def test_a_fault_of_ours_stops_nobodys_ddl(followed: Connection) -> None:
    await followed.execute("alter table earth_watched_relations rename to moved_away")
    heard: list[str] = []

    def hear(_: object, message: object) -> None:
        heard.append(str(message))

    followed.add_log_listener(hear)
    await followed.execute("create table parted_c partition of parted for values in ('c')")
    await followed.execute("drop table parted_a")
    followed.remove_log_listener(hear)
    assert await followed.fetchval("select to_regclass('parted_c') is not null")
    assert any("planetwire doctor" in message for message in heard)


async def test_tables_of_others_are_none_of_our_business(
    followed: Connection, pg_dsn: str, pg_cluster: EmbeddedPostgres
) -> None:
    """Whoever makes a table of his own needs no right to ours, and hears no warning."""
    role = f"stranger_{os.getpid()}"
    admin = await connect(
        dsn_of(pg_cluster.socket_dir, "postgres", urlsplit(pg_dsn).path.removeprefix("/")), application="test"
    )
    heard: list[str] = []

    def hear(_: object, message: object) -> None:
        heard.append(str(message))

    admin.add_log_listener(hear)
    try:
        await admin.execute(f"create role {role}; create schema own authorization {role}; set role {role}")
        await admin.execute("create table own.t (n integer); alter table own.t add m integer; drop table own.t")
        await admin.execute("create temporary table t (n integer); drop table t")
    finally:
        await admin.execute(f"reset role; drop owned by {role}; drop role {role}")
        admin.remove_log_listener(hear)
        await admin.close()
    assert not heard and await changes(followed) == []


async def test_a_materialised_view_is_refreshed_through_a_helper_that_reports(plain: Connection) -> None:
    """Views take no triggers."""
    await plain.execute("create materialized view parted_seen as select source, count(*) from parted group by source")
    with pytest.raises(asyncpg.PostgresError):
        await plain.execute(
            "create trigger t after insert on parted_seen for each statement execute function planet_note_insert('x')"
        )
    await plain.execute("insert into parted values (1, 'a', '1', 'k')")
    await changes(plain)
    await plain.execute("select planet_refresh_view('parted_seen')")
    assert await changes(plain) == [("parted_seen", "UPDATE", None, 1)]
