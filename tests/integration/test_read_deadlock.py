"""A reader and a repair that take the same tables crosswise: PostgreSQL ends the reader, and the page never knows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager

import httpx
import pytest
import pytest_asyncio

from fix_earth import Earth
from ledger_tools import until
from planetwire.database.postgres import Connection, Pool, connect, translated
from planetwire.errors import BackendError
from planetwire.facts.objects_postgres import PostgresObjectStore
from planetwire.supervise.embedded_postgres import EmbeddedPostgres, dsn_of

FACT = "insert into collected_data (source, external_key, kind, title) values ('usgs_quakes', '1', 'k', 'T')"
PLACE = "/api/v1/visualization/earthquakes"
# Crosswise: the snapshot reads the facts, then the places.
TAKE, CROSS = "lock table resolved_locations in access exclusive mode", "truncate collected_data"
READER_S, REPAIR_S = 4, 60  # when each looks for a deadlock, and gives way: the reader is first
WAITS = "select exists (select from pg_locks where relation = $1::regclass and not granted and mode = $2)"
HALF_WAY = """
select exists (select from pg_locks wants join pg_locks has using (pid)
    where wants.relation = 'resolved_locations'::regclass and not wants.granted and wants.mode = 'AccessShareLock'
        and has.relation = 'collected_data'::regclass and has.granted)
"""


@asynccontextmanager
async def repairing(cluster: EmbeddedPostgres, earth: Earth) -> AsyncIterator[Connection]:
    """A superuser's session that never gives way, in an open transaction; the reader's sessions do."""
    name = await earth.pool.fetchval("select current_database()")
    repair = await connect(dsn_of(cluster.socket_dir, "postgres", name), application="repair")
    try:
        await repair.execute(f"set deadlock_timeout = '{REPAIR_S}s'; begin")
        yield repair
    finally:
        repair.terminate()


@pytest_asyncio.fixture
async def patient(pg_cluster: EmbeddedPostgres, pg_pool: Pool) -> None:
    """Sessions of the database that is about to be used look for a deadlock after `READER_S`."""
    name = await pg_pool.fetchval("select current_database()")
    admin = await connect(dsn_of(pg_cluster.socket_dir, "postgres", "postgres"), application="test")
    await admin.execute(f"alter database {name} set deadlock_timeout = '{READER_S}s'")
    await admin.close()


async def waits(pool: Pool, table: str, mode: str) -> None:
    async def so() -> bool:
        return bool(await pool.fetchval(WAITS, table, mode))

    await until(so)


async def half_way(pool: Pool) -> None:
    """The snapshot has the facts and waits for the places; others may wait for the places too."""

    async def so() -> bool:
        return bool(await pool.fetchval(HALF_WAY))

    await until(so)


def asked(earth: Earth, path: str = PLACE) -> asyncio.Future[httpx.Response]:
    async def ask() -> httpx.Response:
        async with httpx.AsyncClient(base_url=earth.url, trust_env=False, timeout=60) as client:
            return await client.get(path)

    return asyncio.ensure_future(ask())


@pytest.mark.usefixtures("patient")
async def test_a_snapshot_that_loses_a_deadlock_to_a_truncate_is_read_again(
    earth: Earth, pg_cluster: EmbeddedPostgres
) -> None:
    await earth.pool.execute(FACT)
    async with repairing(pg_cluster, earth) as repair:
        await repair.execute(TAKE)
        answer = asked(earth)
        await half_way(earth.pool)
        await repair.execute(CROSS)  # returns once the reader has given way
        await waits(earth.pool, "collected_data", "AccessShareLock")  # … and asks again
        assert not answer.done()
        await repair.execute("commit")
    found = await answer
    assert found.status_code == 200 and found.json()["features"] == []
    assert await deadlocks(earth) == 1


@pytest.mark.usefixtures("patient")
async def test_a_snapshot_that_loses_twice_says_so_and_the_next_one_is_right(
    earth: Earth, pg_cluster: EmbeddedPostgres
) -> None:
    await earth.pool.execute(FACT)
    async with repairing(pg_cluster, earth) as first, repairing(pg_cluster, earth) as second:
        await first.execute(TAKE)
        answer = asked(earth)
        await half_way(earth.pool)
        await first.execute(CROSS)
        next_one = asyncio.ensure_future(second.execute(TAKE))
        await waits(earth.pool, "resolved_locations", "AccessExclusiveLock")
        await waits(earth.pool, "collected_data", "AccessShareLock")
        await first.execute("commit")
        await next_one
        await half_way(earth.pool)
        await second.execute(CROSS)
        found = await answer
        assert (found.status_code, found.json()["code"]) == (503, "deadlock") and found.headers["Retry-After"]
        await second.execute("commit")
    assert await deadlocks(earth) == 2
    after = await asked(earth)
    assert after.status_code == 200 and after.json()["count"] == 0


async def deadlocks(earth: Earth) -> int:
    """Of the database, as its statistics have it once the sessions have reported."""
    number = 0

    async def told() -> bool:
        nonlocal number
        await earth.pool.execute("select pg_stat_force_next_flush()")
        number = await earth.pool.fetchval("select deadlocks from pg_stat_database where datname = current_database()")
        return number > 0

    await until(told)
    return number


async def test_the_reading_of_all_objects_takes_the_facts_first_as_a_truncate_does(pg_pool: Pool) -> None:
    """So those two never wait for each other, whoever comes first."""
    objects = PostgresObjectStore(pg_pool)
    readings: list[Awaitable[object]] = [objects.features(None, None), objects.features(None, 0)]
    async with pg_pool.acquire() as other:
        for reading in readings:
            async with other.transaction():
                await other.execute("lock table collected_data in access exclusive mode")
                read = asyncio.ensure_future(reading)
                await waits(pg_pool, "collected_data", "AccessShareLock")
                held = "select count(*) from pg_locks where relation = 'earth_interactables'::regclass and granted"
                assert await other.fetchval(held) == 0
                await other.execute("truncate collected_data, earth_interactables")
            await read


async def test_who_loses_a_deadlock_otherwise_gets_an_error_that_loops_survive(pg_dsn: str) -> None:
    """Whichever of the two it is."""
    one, two = await connect(pg_dsn, application="one"), await connect(pg_dsn, application="two")

    async def both(connection: Connection, mine: int, other: int) -> None:
        async with translated(), connection.transaction():
            await connection.execute("select pg_advisory_xact_lock($1)", mine)
            has_one.set() if mine == 1 else has_two.set()
            await has_one.wait()
            await has_two.wait()
            await connection.execute("select pg_advisory_xact_lock($1)", other)

    has_one, has_two = asyncio.Event(), asyncio.Event()
    ended = await asyncio.gather(both(one, 1, 2), both(two, 2, 1), return_exceptions=True)
    lost = [error for error in ended if error is not None]
    assert len(lost) == 1 and isinstance(lost[0], BackendError) and lost[0].code == "deadlock"
    await one.close()
    await two.close()
