"""A database of an earlier version, with facts in it, is brought up to date: what came since is made of them."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import AsyncIterator

import pytest

from planetwire.database.postgres import Pool, close_pool, connect, connected, open_pool
from planetwire.facts.by_hand import ByHand
from planetwire.facts.by_hand_postgres import PostgresByHandFacts
from planetwire.facts.derived_postgres import Projection
from planetwire.facts.recipes_postgres import note_recipes
from planetwire.layers.registry import EarthLayerAdapterRegistry
from planetwire.migrating import migrate as module
from planetwire.migrating.migrate import migrate_postgres, migrations
from planetwire.model import LayerAdapter
from planetwire.outbox.wakeup_memory import MemoryWakeup
from planetwire.runtime.clock import SystemClock
from planetwire.supervise.embedded_postgres import EmbeddedPostgres, dsn_of
from planetwire.wiring import facts as deriving
from planetwire.wiring.facts import derive_anew, recipes

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


REGISTRY = EarthLayerAdapterRegistry()


async def noted(pool: Pool) -> list[str]:
    rows = await pool.fetch("select source from derived_pending where fact_key is null order by source")
    return [row[0] for row in rows]


async def test_a_version_that_derives_otherwise_notes_the_facts_that_are_there(pg_pool: Pool) -> None:
    """After an upgrade search held 315 of 13,727: what was made, or not made, of a fact that stays as it is."""
    await pg_pool.execute(OLD, 3)
    await pg_pool.execute("truncate derived_pending")
    await derive_anew(pg_pool, REGISTRY)
    assert await noted(pg_pool) == ["celestrak_gp", "usgs_quakes"], "nothing is known of who made them: all of them"
    await pg_pool.execute("update derivation_recipes set recipe = 'older'")
    await derive_anew(pg_pool, REGISTRY)
    assert await noted(pg_pool) == ["celestrak_gp", "usgs_quakes"], "and each once"
    await pg_pool.execute("truncate derived_pending")
    await derive_anew(pg_pool, REGISTRY)
    assert await noted(pg_pool) == [], "a start that changes nothing notes nothing"
    await pg_pool.execute("update derivation_recipes set recipe = 'older' where layer = 'earthquakes'")
    await derive_anew(pg_pool, REGISTRY)
    assert await noted(pg_pool) == ["usgs_quakes"]
    await pg_pool.execute("truncate derived_pending")
    assert await note_recipes(pg_pool, {("*", "all"): "new"}) == ["celestrak_gp", "nobody", "usgs_quakes"]


def test_a_recipe_is_of_the_program_and_not_of_its_comments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the layer's own file, and of what all are made with."""
    before = recipes(REGISTRY)
    assert {source for source, _ in before} >= {"celestrak_gp", "celestrak_tle", "usgs_quakes"}
    texts = {"layers/satellites.py": "a = 1  # why", "layers/earthquakes.py": "b = 2", "layers/values.py": "c = 3"}

    def told(**changed: str) -> dict[str, str]:
        known = texts | {name.replace("__", "/") + ".py": text for name, text in changed.items()}
        monkeypatch.setattr(deriving, "text_of", lambda name: known.get(name, "" if name.endswith(".py") else "x"))
        return {source: recipe for (source, _), recipe in recipes(REGISTRY).items()}

    first = told()
    assert told(layers__satellites="a = 1\n\n# another reason") == first
    moved = told(layers__satellites="a = 2")
    assert {source for source in first if moved[source] != first[source]} == {"celestrak_gp", "celestrak_tle"}
    assert all(recipe != first[source] for source, recipe in told(layers__values="c = 4").items())


@pytest.mark.parametrize("adapter", [one for one in REGISTRY.all() if one.derive], ids=lambda one: one.id)
def test_what_derives_is_all_in_the_files_that_a_recipe_is_of(adapter: LayerAdapter) -> None:
    """A layer's file asks nothing of ours but the values and the frozen types."""
    tree = ast.parse(deriving.text_of(f"layers/{adapter.id}.py"))
    ours = {
        node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and "planetwire" in str(node.module)
    }
    assert ours <= {f"planetwire.layers.{name}" for name in ("values", "places")} | {
        "planetwire.model",
        "planetwire.observing",
    }
