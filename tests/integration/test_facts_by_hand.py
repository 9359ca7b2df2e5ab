"""Facts written past the jobs: noted by the statement that writes them, derived by whoever works, held ones later."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from ledger_tools import claim_one, queue_on, until, wish
from planetwire.database.postgres import Pool
from planetwire.facts.by_hand import ByHand
from planetwire.facts.by_hand_postgres import PostgresByHandFacts
from planetwire.facts.derived_postgres import Projection
from planetwire.facts.facts_postgres import PostgresFactStore
from planetwire.facts.objects_postgres import PostgresObjectStore
from planetwire.layers.registry import EarthLayerAdapterRegistry
from planetwire.model import Batch, Derived, Deriver, Fact
from planetwire.outbox.upkeep.canary_postgres import release_canary
from planetwire.outbox.wakeup_memory import MemoryWakeup
from planetwire.runtime.clock import SystemClock
from planetwire.runtime.ending import end_all

REGISTRY = EarthLayerAdapterRegistry()
QUAKE = """insert into collected_data (source, external_key, kind, title, data, lat, lon)
select 'usgs_quakes', 'k' || n, 'earthquake', 'near ' || n, '{"mag": 5}', 1, 2
from generate_series($1::int, $2::int) n"""


def loop(pool: Pool, *, page: int = 500, derivers: Any = REGISTRY.derivers) -> ByHand:
    return ByHand(PostgresByHandFacts(pool, Projection(derivers), page=page), MemoryWakeup(), SystemClock())


async def noted(pool: Pool) -> list[tuple[str, str | None]]:
    rows = await pool.fetch("select source, fact_key from derived_pending order by source, fact_key")
    return [tuple(row) for row in rows]


async def found(pool: Pool, words: str) -> list[str]:
    return [row["key"] for row in await PostgresObjectStore(pool).search(words, None, 50)]


async def test_what_is_typed_in_changed_and_renamed_is_found_as_it_is_now(pg_pool: Pool) -> None:
    """S79, S80."""
    by_hand = loop(pg_pool)
    await pg_pool.execute(QUAKE, 1, 2)
    assert await noted(pg_pool) == [("usgs_quakes", "k1"), ("usgs_quakes", "k2")]
    await by_hand.step()
    assert await noted(pg_pool) == [] and sorted(await found(pg_pool, "near")) == ["k1", "k2"]
    await pg_pool.execute("update collected_data set title = 'Kyoto' where external_key = 'k1'")
    await pg_pool.execute("update collected_data set external_key = 'other' where external_key = 'k2'")
    await by_hand.step()
    assert (await found(pg_pool, "kyoto"), await found(pg_pool, "near")) == (["k1"], ["other"])
    await pg_pool.execute(
        "insert into collected_data (source, external_key, kind, title) values ('usgs_quakes', 'k1', 'k', 'Nara')"
        " on conflict (source, external_key) do update set title = excluded.title"
    )
    await by_hand.step()
    assert (await found(pg_pool, "nara"), await found(pg_pool, "kyoto")) == (["k1"], [])
    await pg_pool.execute("delete from collected_data")
    await by_hand.step()
    assert await noted(pg_pool) == [] and await found(pg_pool, "nara") == []


async def test_a_load_of_many_statements_is_passed_through_once(pg_pool: Pool) -> None:
    """Ten statements of a million-row load noted their source ten times: nine passes changed nothing."""
    seen: list[str] = []

    def counting(source: str) -> Sequence[tuple[str, Deriver]]:
        def derive(fact: Fact) -> Derived:
            seen.append(fact.external_key)
            return Derived(fact.title)

        return [("earthquakes", derive)]

    for first in (1, 1_001, 2_001):
        await pg_pool.execute(QUAKE, first, first + 999)
    assert await noted(pg_pool) == [("usgs_quakes", None)] * 3
    await loop(pg_pool, derivers=counting).step()
    assert await noted(pg_pool) == [] and len(seen) == len(set(seen)) == 3_000


async def test_an_update_that_changes_nothing_and_a_source_without_a_layer_leave_nothing(pg_pool: Pool) -> None:
    await pg_pool.execute(QUAKE, 1, 1)
    await loop(pg_pool).step()
    await pg_pool.execute("update collected_data set title = title, collected_at = clock_timestamp()")
    assert await noted(pg_pool) == []
    await pg_pool.execute("insert into collected_data (source, external_key, kind) values ('nobody', '1', 'k')")
    await loop(pg_pool).step()
    assert await noted(pg_pool) == []
    assert await pg_pool.fetchval("select array_agg(id) from earth_interactables") == ["earthquakes:usgs_quakes:k1"]


async def test_what_a_job_writes_is_not_noted_and_neither_is_the_canary(pg_pool: Pool) -> None:
    queue = queue_on(pg_pool)
    await queue.submit(wish(source="usgs_quakes"))
    lease = await claim_one(queue)
    for title in ("first", "second"):
        async with queue.batch(lease) as tx:
            facts = [Fact("1", "earthquake", title, {})]
            await PostgresFactStore(pg_pool, Projection(REGISTRY.derivers)).upsert(tx, "usgs_quakes", Batch(facts), 1)
    async with pg_pool.acquire() as connection:
        assert len((await release_canary(connection, 20)).ids) == 3
    assert await noted(pg_pool) == [] and await found(pg_pool, "second") == ["1"]


async def test_a_store_that_derives_nothing_leaves_it_to_others(pg_pool: Pool) -> None:
    queue = queue_on(pg_pool)
    await queue.submit(wish(source="usgs_quakes"))
    async with queue.batch(await claim_one(queue)) as tx:
        await PostgresFactStore(pg_pool).upsert(tx, "usgs_quakes", Batch([Fact("1", "k", "T", {})]), 1)
    assert await noted(pg_pool) == [("usgs_quakes", "1")]


async def test_a_load_is_one_note_a_source_and_is_done_in_pages(pg_pool: Pool) -> None:
    await pg_pool.execute(QUAKE, 1, 500)
    assert len(await noted(pg_pool)) == 500
    await pg_pool.execute("truncate derived_pending; truncate collected_data")
    await pg_pool.execute(QUAKE, 1, 501)
    assert await noted(pg_pool) == [("usgs_quakes", None)]
    await loop(pg_pool, page=50).step()
    assert await noted(pg_pool) == []
    assert await pg_pool.fetchval("select count(*) from earth_interactables") == 501
    await pg_pool.execute("update collected_data set title = 'all of them'")
    assert await noted(pg_pool) == [("usgs_quakes", None)]
    await loop(pg_pool).step()
    assert await pg_pool.fetchval("select count(*) from earth_interactables where title = 'all of them'") == 501


@pytest.mark.parametrize("count", [3, 501])
async def test_a_fact_that_somebody_holds_is_not_waited_for_and_done_later(pg_pool: Pool, count: int) -> None:
    """Whatever order others lock facts in, nobody is blocked by this."""
    await pg_pool.execute(QUAKE, 1, count)
    by_hand = loop(pg_pool)
    async with pg_pool.acquire() as repair, repair.transaction():
        await repair.execute("update collected_data set title = 'held' where external_key = 'k2'")
        await by_hand.step()
        assert await noted(pg_pool) == [("usgs_quakes", "k2")]
        assert await pg_pool.fetchval("select count(*) from earth_interactables") == count - 1
    await by_hand.step()
    assert await noted(pg_pool) == [] and await found(pg_pool, "held") == ["k2"]


async def test_two_workers_share_the_work_and_neither_waits_for_the_other(pg_pool: Pool) -> None:
    await pg_pool.execute(QUAKE, 1, 2)
    async with pg_pool.acquire() as other, other.transaction():
        await other.execute("select from derived_pending where fact_key = 'k1' for update")
        await loop(pg_pool).step()
        assert await found(pg_pool, "near") == ["k2"]
    await loop(pg_pool).step()
    assert sorted(await found(pg_pool, "near")) == ["k1", "k2"]


@pytest.mark.parametrize("count", [3, 501])
async def test_a_fact_that_cannot_be_derived_costs_itself_alone(pg_pool: Pool, count: int) -> None:
    def derive(fact: Fact) -> Derived:
        if fact.external_key == "k2":
            raise KeyError("mag")
        return Derived()

    def derivers(source: str) -> Sequence[tuple[str, Deriver]]:
        return [("earthquakes", derive)]

    await pg_pool.execute(QUAKE, 1, count)
    await loop(pg_pool, derivers=derivers).step()
    assert await noted(pg_pool) == []
    assert await pg_pool.fetchval("select count(*) from earth_interactables") == count - 1


async def test_the_loop_follows_rings_until_it_is_ended(pg_pool: Pool) -> None:
    bell = MemoryWakeup()
    facts = PostgresByHandFacts(pg_pool, Projection(REGISTRY.derivers))
    running = asyncio.ensure_future(ByHand(facts, bell, SystemClock()).run())
    await pg_pool.execute(QUAKE, 1, 1)
    bell.ring()

    async def is_found() -> bool:
        return await found(pg_pool, "near") == ["k1"]

    await until(is_found)
    await end_all([running])
