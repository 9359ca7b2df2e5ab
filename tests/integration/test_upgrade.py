"""A database of an earlier version, with facts in it, is brought up to date: what came since is made of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from planetwire import migrate as module
from planetwire.clock import SystemClock
from planetwire.facts.by_hand import ByHand
from planetwire.facts.by_hand_postgres import PostgresByHandFacts
from planetwire.facts.derived_postgres import Projection
from planetwire.layers.registry import EarthLayerAdapterRegistry
from planetwire.migrate import migrate_postgres, migrations
from planetwire.outbox.wakeup_memory import MemoryWakeup
from planetwire.postgres import Pool, close_pool, connect, connected, open_pool
from planetwire.supervise.embedded_postgres import EmbeddedPostgres, dsn_of

FACTS = 1_300
OLD = """insert into collected_data (source, external_key, kind, title, data)
    select source, n::text, 'thing', 'Thing ' || n, '{"NORAD_CAT_ID": 1, "MEAN_MOTION": 15, "ECCENTRICITY": 0.1}'
    from unnest(array['celestrak_gp', 'usgs_quakes', 'nobody']) source, generate_series(1, $1) n"""


@pytest.fixture
async def old(pg_cluster: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    """Address of a database that stopped at 0008, before there were derived rows."""
    admin = await connect(dsn_of(pg_cluster.socket_dir, "postgres", "postgres"), application="test")
    await admin.execute("create database t_upgraded owner planetwire")
    dsn = dsn_of(pg_cluster.socket_dir, "planetwire", "t_upgraded")
    known = [one for one in migrations("postgres") if one.name <= "0008_partitions"]
    with monkeypatch.context() as patch:
        patch.setattr(module, "migrations", lambda engine: known)
        async with connected(dsn, application="test") as connection:
            await migrate_postgres(connection)
            await connection.execute(OLD, FACTS)
    try:
        yield dsn
    finally:
        await admin.execute("drop database t_upgraded with (force)")
        await admin.close()


async def counts(pool: Pool) -> dict[str, int]:
    rows = await pool.fetch("select source, count(*) from earth_interactables group by source")
    return {row[0]: row[1] for row in rows}


async def test_facts_of_an_earlier_version_get_their_derived_rows_without_a_collect(old: str) -> None:
    """Contracts §7: what was applied is named."""
    pool = await open_pool(old, application="test")
    try:
        async with pool.acquire() as connection:
            applied = await migrate_postgres(connection)
        assert applied[0] == "0009_derived"
        assert applied == [one.name for one in migrations("postgres")][-len(applied) :]
        assert await counts(pool) == {}
        projection = Projection(EarthLayerAdapterRegistry().derivers)
        await asyncio.wait_for(ByHand(PostgresByHandFacts(pool, projection), MemoryWakeup(), SystemClock()).step(), 60)
        assert await counts(pool) == {"celestrak_gp": FACTS, "usgs_quakes": FACTS}
        assert await pool.fetchval("select count(*) from satellite_orbits") == FACTS
        assert await pool.fetchval("select count(*) from derived_pending") == 0
    finally:
        await close_pool(pool)
