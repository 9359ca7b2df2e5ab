"""The store of declared sources: one revision for all, whoever writes, and nothing changes without its audit row."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from declared_tools import quakes
from ledger_tools import queue_on, wish
from planetwire.catalogue.declarations_postgres import PostgresDeclarations
from planetwire.database.postgres import Pool, connect
from planetwire.errors import NotFound, Outdated, StateError
from planetwire.model import Actor, JobStatus, Role, TaskType
from planetwire.model.facts import DECLARATION_MAX_BYTES, SOURCES_MAX, STORE, Declaration
from planetwire.wiring.catalogue import CHANNEL

ANN = Actor("ann", Role.ADMIN, "127.0.0.1")


@pytest.fixture
def store(pg_pool: Pool) -> PostgresDeclarations:
    return PostgresDeclarations(pg_pool, queue_on(pg_pool).submit_in)


async def put(
    store: PostgresDeclarations, name: str, text: str = "text", expected: int | None = None, *, clear: bool = False
) -> Declaration:
    jobs = (TaskType.CLEAR_DATA, TaskType.COLLECT) if clear else (TaskType.COLLECT,)
    return await store.put(ANN, name, text, enabled=True, origin=STORE, expected=expected, jobs=jobs)


async def insert(pool: Pool, name: str, text: str = "text") -> None:
    await pool.execute("insert into declared_sources (name, text) values ($1, $2)", name, text)


async def acts(pool: Pool) -> list[tuple[str, str, str]]:
    rows = await pool.fetch("select who, what, source from audit_log order by id")
    return [tuple(row) for row in rows]


async def test_each_change_moves_one_revision_and_what_changes_nothing_moves_none(
    store: PostgresDeclarations, pg_pool: Pool
) -> None:
    assert await store.revision() == 0
    await put(store, "one")
    await insert(pg_pool, "two")
    await pg_pool.execute("update declared_sources set text = 'other'")  # two rows, one statement
    await pg_pool.execute("update declared_sources set text = 'other', enabled = true")
    await pg_pool.execute("update declared_sources set enabled = false where name = 'one'")
    await pg_pool.execute("delete from declared_sources where name = 'two'")
    await pg_pool.execute("delete from declared_sources where name = 'two'")
    found = await store.read()
    assert [(one.name, one.revision, one.enabled) for one in found.all] == [("one", 4, False)]
    assert found.revision == await store.revision() == 5
    await pg_pool.execute("truncate declared_sources")
    assert await store.revision() == 6
    await pg_pool.execute("truncate declared_sources")
    assert await store.revision() == 6


async def test_revisions_follow_each_other_when_many_write_at_once(store: PostgresDeclarations, pg_pool: Pool) -> None:
    await asyncio.gather(*(put(store, f"source_{n}") for n in range(20)))
    assert sorted(one.revision for one in (await store.read()).all) == list(range(1, 21))
    assert await pg_pool.fetchval("select sources from declared_sources_head") == 20


async def test_an_upsert_by_hand_leaves_no_revision_out(store: PostgresDeclarations, pg_pool: Pool) -> None:
    upsert = "insert into declared_sources (name, text) values ('one', $1) on conflict (name) do update set text = $1"
    for text in ("a", "b", "b", "c"):
        await pg_pool.execute(upsert, text)
    assert [one.revision for one in (await store.read()).all] == [3]
    assert await pg_pool.fetchval("select sources from declared_sources_head") == 1


async def test_who_and_when_and_the_sum_are_set_by_the_database(store: PostgresDeclarations, pg_pool: Pool) -> None:
    stored = await put(store, "one", "käse")
    assert (stored.changed_by, len(stored.sha256)) == ("ann", 64)
    await pg_pool.execute(
        "update declared_sources set text = 'x', sha256 = 'lie', changed_by = 'nobody', revision = 99"
    )
    (typed,) = (await store.read()).all
    assert (typed.revision, typed.changed_by) == (2, await pg_pool.fetchval("select session_user::text"))
    assert typed.sha256 != "lie" and typed.changed_at > stored.changed_at


async def test_every_writer_rings(store: PostgresDeclarations, pg_dsn: str) -> None:
    listener = await connect(pg_dsn, application="test")
    rung = asyncio.Event()
    await listener.add_listener(CHANNEL, lambda *_: rung.set())
    await put(store, "one")
    async with asyncio.timeout(60):
        await rung.wait()
    await listener.close()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("", "text"),
        ("Upper", "text"),
        ("../etc", "text"),
        ("a b", "text"),
        ("1st", "text"),
        ("x" * 64, "text"),
        ("naïve", "text"),
        ("one\n", "text"),
        ("one", ""),
        ("one", "é" * (DECLARATION_MAX_BYTES // 2 + 1)),
    ],
)
async def test_names_and_sizes_that_cannot_be_are_refused_by_the_database(pg_pool: Pool, name: str, text: str) -> None:
    with pytest.raises(asyncpg.CheckViolationError):
        await insert(pg_pool, name, text)
    await insert(pg_pool, "one", "x" * DECLARATION_MAX_BYTES)


async def test_a_source_keeps_its_name(pg_pool: Pool) -> None:
    await insert(pg_pool, "one")
    with pytest.raises(asyncpg.CheckViolationError, match="keeps its name"):
        await pg_pool.execute("update declared_sources set name = 'two'")


async def test_there_are_so_many_and_no_more(store: PostgresDeclarations, pg_pool: Pool) -> None:
    await pg_pool.execute(
        f"insert into declared_sources (name, text) select 's' || n, 't' from generate_series(1, {SOURCES_MAX}) n"
    )
    with pytest.raises(StateError, match=str(SOURCES_MAX)) as caught:
        await put(store, "one_more")
    assert caught.value.code == "too_many_sources"
    await store.remove(ANN, "s1", expected=None, clear=False)
    await put(store, "one_more")


async def test_the_second_of_two_editors_is_told_who_was_first(store: PostgresDeclarations) -> None:
    first = await put(store, "one")
    again = await put(store, "one", "by ann", first.revision)
    with pytest.raises(Outdated, match="by ann") as caught:
        await put(store, "one", "by ben", first.revision)
    assert caught.value.status == 412
    with pytest.raises(Outdated):
        await put(store, "one", "as if new")
    with pytest.raises(Outdated):
        await store.remove(ANN, "one", expected=first.revision, clear=False)
    with pytest.raises(NotFound):
        await put(store, "two", "text", 1)
    assert (await store.get("one")) == again


async def test_each_act_has_its_row_and_what_was_refused_has_none(store: PostgresDeclarations, pg_pool: Pool) -> None:
    first = await put(store, "one")
    await put(store, "one", "other", first.revision, clear=True)
    with pytest.raises(Outdated):
        await put(store, "one", "x", first.revision)
    await store.remove(ANN, "one", expected=None, clear=True)
    assert [act for act in await acts(pg_pool) if act[1] != "job.submitted"] == [
        ("ann", "source.added", "one"),
        ("ann", "source.edited", "one"),
        ("ann", "source.removed", "one"),
    ]


async def test_a_new_text_is_asked_for_at_once_and_other_keys_are_cleared_before(
    store: PostgresDeclarations, pg_pool: Pool
) -> None:
    first = await put(store, "one", quakes("one"))
    jobs = "select task_type from collection_tasks order by priority, id"
    assert [row[0] for row in await pg_pool.fetch(jobs)] == ["collect"]
    await pg_pool.execute("delete from collection_tasks")
    await put(store, "one", "other", first.revision, clear=True)
    assert [row[0] for row in await pg_pool.fetch(jobs)] == ["clear_data", "collect"]


async def test_what_is_remembered_of_a_body_is_void_for_another_text(
    store: PostgresDeclarations, pg_pool: Pool
) -> None:
    await put(store, "one")
    await pg_pool.execute("update datasources set facts_deleted_at = null, next_run_at = now() + interval '1 hour'")
    await pg_pool.execute("update declared_sources set text = 'other'")  # typed in
    row = await pg_pool.fetchrow("select facts_deleted_at, next_run_at from datasources where source = 'one'")
    assert row["facts_deleted_at"] is not None and row["next_run_at"] is None


async def test_a_clear_waits_for_no_more_than_its_turn(store: PostgresDeclarations, pg_pool: Pool) -> None:
    queue = queue_on(pg_pool)
    await put(store, "one")
    (running,) = await queue.claim("w", [TaskType.COLLECT], 1)
    await store.remove(ANN, "one", expected=None, clear=True)
    assert await queue.claim("w", [TaskType.CLEAR_DATA], 1) == []
    await queue.finish(running, JobStatus.COMPLETED)
    (clear,) = await queue.claim("w", [TaskType.CLEAR_DATA], 1)
    assert clear.job.source == "one"
    assert (await queue.submit(wish(TaskType.COLLECT, "one")))[1]
