"""The copy of the layer registry in the database, and the question that SQL can answer with it."""

from __future__ import annotations

from planetwire.database.postgres import Pool
from planetwire.layers.registry import EarthLayerAdapterRegistry
from planetwire.outbox.registry_postgres import write_feeds
from planetwire.outbox.tables import WATCHED

FEEDS = "select table_name, source, layer from earth_layer_feeds order by 1, 2, 3"
UNSHOWN = """select distinct fact.source from collected_data fact
where not exists (
    select from earth_layer_feeds feed
    where feed.table_name = 'collected_data' and feed.source in (fact.source, '*'))"""


async def test_the_copy_says_what_the_registry_says_and_forgets_what_it_forgot(pg_pool: Pool) -> None:
    """S72."""
    await pg_pool.execute("insert into earth_layer_feeds values ('collected_data', 'gone', 'nowhere')")
    registry = EarthLayerAdapterRegistry()
    for _ in range(2):
        await write_feeds(pg_pool, registry.feeds())
        assert {tuple(row) for row in await pg_pool.fetch(FEEDS)} == set(registry.feeds())
    assert {table for table, _, _ in registry.feeds()} <= {table.name for table in WATCHED}


async def test_sql_finds_the_sources_that_no_layer_shows(pg_pool: Pool) -> None:
    await write_feeds(pg_pool, EarthLayerAdapterRegistry().feeds())
    await pg_pool.execute(
        """insert into collected_data (source, external_key, kind) values
           ('usgs_quakes', 'a', 'earthquake'), ('celestrak_tle', 'b', 'satellite'), ('nobody', 'c', 'thing')"""
    )
    assert [row["source"] for row in await pg_pool.fetch(UNSHOWN)] == ["nobody"]
