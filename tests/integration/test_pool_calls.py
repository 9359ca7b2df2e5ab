"""A call on a pooled connection that did not end leaves nothing open: no transaction, no lock, no old snapshot."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import asyncpg
import pytest
import pytest_asyncio

from planetwire.database.postgres import Connection, Pool, connected, open_pool, translated
from planetwire.errors import BackendError

READ = "select id from collected_data where source = $1"


@pytest_asyncio.fixture
async def one(pg_dsn: str) -> AsyncIterator[Pool]:
    """A pool of a single connection, so that the next caller meets what the last one left."""
    pool = await open_pool(pg_dsn, application="one", min_size=1, max_size=1)
    yield pool
    await pool.close()


async def cut_off(call: Coroutine[Any, Any, object]) -> None:
    """Cancel a call in the very step in which the first answer it waits for has come."""
    answer: Any = call.send(None)
    answer._asyncio_future_blocking = False
    await asyncio.wait([answer])
    with pytest.raises(asyncio.CancelledError):
        call.throw(asyncio.CancelledError())


async def wrong_values(connection: Connection) -> None:
    """The driver refuses them after the statement was prepared, before it is executed."""
    with pytest.raises(asyncpg.DataError):
        await connection.fetch(READ, 7)


async def wrong_number(connection: Connection) -> None:
    with pytest.raises(asyncpg.InterfaceError):
        await connection.execute(READ, "a", "b")


async def cut_off_fetch(connection: Connection) -> None:
    await cut_off(connection.fetch(READ, "a"))


async def cut_off_fetchrow(connection: Connection) -> None:
    await cut_off(connection.fetchrow(READ, "a"))


async def cut_off_fetchval(connection: Connection) -> None:
    await cut_off(connection.fetchval(READ, "a"))


async def cut_off_execute(connection: Connection) -> None:
    await cut_off(connection.execute(READ, "a"))


async def cut_off_executemany(connection: Connection) -> None:
    await cut_off(connection.executemany(READ, [("a",)]))


async def cut_off_copy(connection: Connection) -> None:
    await cut_off(connection.copy_records_to_table("collected_data", records=[], columns=["source"]))


@pytest.mark.parametrize(
    "call",
    [
        wrong_values,
        wrong_number,
        cut_off_fetch,
        cut_off_fetchrow,
        cut_off_fetchval,
        cut_off_execute,
        cut_off_executemany,
        cut_off_copy,
    ],
)
async def test_the_next_caller_finds_a_connection_without_a_transaction(one: Pool, pg_dsn: str, call: Any) -> None:
    """The driver prepares without a Sync, and the server's transaction stays open until something else is sent."""
    async with one.acquire() as connection:
        await call(connection)
        pid = connection.get_server_pid()
    async with connected(pg_dsn, application="looks on") as other:
        held = "select relation::regclass::text from pg_locks where pid = $1 and relation is not null"
        assert await other.fetch(held, pid) == []
        assert await other.fetchval("select xact_start is null from pg_stat_activity where pid = $1", pid)
    async with one.acquire() as connection, connection.transaction(isolation="repeatable_read"):
        assert connection.get_server_pid() == pid
        assert await connection.fetch(READ, "a") == []


async def test_a_caller_without_trouble_costs_no_second_round_trip(one: Pool, pg_dsn: str) -> None:
    """What was sent last is the caller's own statement."""
    async with one.acquire() as connection:
        await connection.fetch(READ, "a")
        pid = connection.get_server_pid()
    async with connected(pg_dsn, application="looks on") as other:
        assert await other.fetchval("select query from pg_stat_activity where pid = $1", pid) == READ


async def test_a_statement_from_before_its_table_got_a_column_fails_once_and_is_a_backends_error(
    one: Pool, pg_pool: Pool
) -> None:
    """So that the loops of an older process survive the migration of a newer one."""

    async def paused() -> list[Any]:
        async with translated(), one.acquire() as connection, connection.transaction():
            return list(await connection.fetch("select * from paused_sources"))

    assert await paused() == []
    await pg_pool.execute("alter table paused_sources add column why text")
    with pytest.raises(BackendError):
        await paused()
    assert await paused() == []
