"""Between the commit of a declaration and the moment a process has it: nothing is lost in processes that are behind."""

from __future__ import annotations

import asyncio

import pytest
import pytest_asyncio

from declared_tools import quakes
from ledger_tools import queue_on
from planetwire.catalogue.declarations_postgres import PostgresDeclarations
from planetwire.catalogue.follow import Follower
from planetwire.database.postgres import Pool
from planetwire.errors import BackendError
from planetwire.facts.by_hand import ByHand
from planetwire.facts.by_hand_postgres import PostgresByHandFacts
from planetwire.facts.derived_postgres import Projection
from planetwire.model import Actor, Lease, Role
from planetwire.model.facts import STORE
from planetwire.outbox.changelog_postgres import PostgresChangeLog
from planetwire.outbox.wakeup_memory import MemoryWakeup
from planetwire.relay.payload import payload
from planetwire.relay.relay import Relay
from planetwire.runtime.clock import SystemClock
from planetwire.settings import RelaySettings, Settings
from planetwire.wiring.catalogue import followed, looking_first

INSERT = "insert into collected_data (source, external_key, kind, title) values ('my_quakes', $1, 'quake', 'A quake')"
SETTINGS = Settings(halves="earth")


@pytest_asyncio.fixture
async def behind(pg_pool: Pool) -> Follower:
    """A process that read the store before the source was declared, and whose loop does not turn."""
    follower = await followed(pg_pool, SETTINGS)
    store = PostgresDeclarations(pg_pool, queue_on(pg_pool).submit_in)
    ann = Actor("ann", Role.ADMIN, "")
    await store.put(ann, "my_quakes", quakes(), enabled=True, origin=STORE, expected=None)
    assert "my_quakes" not in follower.catalogue.fact_feeds
    return follower


def relay_of(pool: Pool, follower: Follower) -> Relay:
    async def no_cache(patterns: object) -> None:
        """There is none."""

    return Relay(
        PostgresChangeLog(pool, payload),
        follower.catalogue.relay_registry(),
        no_cache,
        MemoryWakeup(),
        RelaySettings(),
        SystemClock(),
        lambda events: None,
        look=follower.look,
    )


async def test_the_relay_skips_no_change_of_a_source_that_it_does_not_know_yet(pg_pool: Pool, behind: Follower) -> None:
    await pg_pool.execute(INSERT, "one")
    await relay_of(pg_pool, behind).turn()
    assert await pg_pool.fetchval("select array_agg(layer) from earth_broadcasts") == ["my_quakes"]
    assert await pg_pool.fetchval("select count(*) from earth_data_change_events where skipped_reason is not null") == 0


async def test_the_relay_sends_what_it_read_of_a_layer_that_goes_before_its_turn(
    pg_pool: Pool, behind: Follower
) -> None:
    relay = relay_of(pg_pool, behind)
    await pg_pool.execute(INSERT, "one")
    await relay.turn()
    await pg_pool.execute(INSERT, "two")
    await relay._read()  # held for the merge window
    await pg_pool.execute("delete from declared_sources")
    await behind.look()
    async with asyncio.timeout(60):
        while await pg_pool.fetchval("select count(*) from earth_data_change_events where consumed_at is null"):
            await asyncio.sleep(max(0.01, min(0.1, await relay.turn())))
    assert await pg_pool.fetchval("select count(*) from earth_broadcasts") == 2
    assert await pg_pool.fetchval("select max(attempts) from earth_data_change_events") == 0


async def test_a_job_of_a_source_that_its_worker_does_not_know_yet_finds_it(behind: Follower) -> None:
    seen: list[bool] = []

    async def task(lease: Lease) -> str | None:
        seen.append("my_quakes" in behind.catalogue.fact_feeds)
        return None

    await looking_first(behind, task)(None)  # type: ignore[arg-type]
    assert seen == [True]


async def test_facts_typed_in_for_a_source_that_is_not_known_yet_get_their_rows(
    pg_pool: Pool, behind: Follower
) -> None:
    await pg_pool.execute(INSERT, "one")
    waiting = PostgresByHandFacts(pg_pool, Projection(behind.catalogue.registry.derivers))
    await ByHand(waiting, MemoryWakeup(), SystemClock(), before=behind.look).step()
    assert await pg_pool.fetchval("select array_agg(id) from earth_interactables") == ["my_quakes:my_quakes:one"]


async def test_what_cannot_be_prepared_is_not_swapped_in_and_tried_again(pg_pool: Pool, behind: Follower) -> None:
    failing = [True]

    async def prepare(snapshot: object) -> None:
        if failing:
            failing.clear()
            raise BackendError("the database went away")

    follower = await followed(pg_pool, SETTINGS)
    follower._prepare = [prepare]
    await pg_pool.execute("update declared_sources set enabled = false")
    with pytest.raises(BackendError):
        await follower.look()
    assert "my_quakes" in follower.catalogue.fact_feeds
    assert await follower.look()
    assert "my_quakes" not in follower.catalogue.fact_feeds


async def test_without_a_ring_and_with_a_database_that_comes_back_it_follows_all_the_same(
    pg_pool: Pool, behind: Follower
) -> None:
    """No LISTEN at all, as behind a pooler."""
    running = asyncio.ensure_future(behind.run())
    async with asyncio.timeout(60):
        while "my_quakes" not in behind.catalogue.fact_feeds:
            await asyncio.sleep(0.02)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
