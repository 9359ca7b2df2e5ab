"""Random writers, jobs and several workers' loops at once: in the end every fact is found as it is, and no other."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest

from ledger_tools import until
from long_form import amount, seed_of
from planetwire.database.postgres import Pool, open_pool
from planetwire.facts.by_hand import ByHand
from planetwire.facts.by_hand_postgres import PostgresByHandFacts
from planetwire.facts.derived_postgres import Projection
from planetwire.layers.registry import EarthLayerAdapterRegistry
from planetwire.outbox.wakeup_memory import MemoryWakeup
from planetwire.runtime.clock import SystemClock
from planetwire.runtime.ending import end_all
from random_writes import FAR, REFUSED, SOURCES, Writer

# Short with the other tests, long by `make test-long`; PLANETWIRE_LONG_CHANGES names any other number.
WRITES = amount("CHANGES", 300, 6_000)
WRITERS, LOOPS = 5, 2
DERIVERS = EarthLayerAdapterRegistry().derivers
LOAD = """insert into collected_data (source, external_key, kind, title)
select $1, 'load-' || n, 'k', 'L' || $2::int from generate_series(1, 520) n
on conflict (source, external_key) do update set title = excluded.title"""
# What search has of each fact, or lacks, and what it has of none. Orphans are not found, but none should be made.
SEARCHED = """select coalesce(f.source, i.source) as source, f.title as is, i.title as has
from collected_data f full join earth_interactables i on i.source = f.source and i.fact_key = f.external_key
where (f.source is null or f.source = any ($1)) and f.title is distinct from i.title"""

pytestmark = pytest.mark.timeout(600 + WRITES / 20)


async def write(writer: Writer, writes: int, done: Counter[str]) -> None:
    shapes = [writer.plain] * 8 + [writer.several] * 3 + [writer.copy] * 2 + [writer.job] * 2
    shapes += [writer.rolled_back, writer.as_replica, writer.psql]
    for number in range(writes):
        shape = writer.rng.choice(shapes)
        try:
            await shape()
            done[shape.__name__] += 1
            if number % 40 == 39:
                await writer.pool.execute(LOAD, writer.rng.choice(SOURCES), number)
                done["load"] += 1
            if number % 150 == 149:
                await writer.pool.execute("truncate collected_data")
                done["truncate"] += 1
        except REFUSED:
            done["refused"] += 1


async def test_in_the_end_every_fact_is_found_as_it_is_whoever_wrote_it(pg_pool: Pool, pg_dsn: str) -> None:
    """S79, S80: no order of commits leaves search with what a fact was before, or without it."""
    seed = seed_of("SEED")
    print("seed", seed)
    await pg_pool.execute(FAR)
    writing = await open_pool(pg_dsn, application="test", max_size=WRITERS)
    bells = [MemoryWakeup() for _ in range(LOOPS)]
    loops = [
        asyncio.ensure_future(ByHand(PostgresByHandFacts(pg_pool, Projection(DERIVERS)), bell, SystemClock()).run())
        for bell in bells
    ]
    done: Counter[str] = Counter()
    writers = [Writer(writing, pg_dsn, random.Random(seed + n), n) for n in range(WRITERS)]
    try:
        working = asyncio.gather(*(write(writer, WRITES // WRITERS, done) for writer in writers))
        while not working.done():
            for bell in bells:
                bell.ring()
            await asyncio.wait([working], timeout=0.02)
        await working

        async def none_waits() -> bool:
            for bell in bells:
                bell.ring()
            return not await pg_pool.fetchval("select count(*) from derived_pending")

        await until(none_waits, 60)
        assert not any(task.done() for task in loops)
    finally:
        await end_all(loops)
        await writing.close()
    shown = [source for source in SOURCES if DERIVERS(source)]
    wrong = await pg_pool.fetch(SEARCHED, shown)
    assert not wrong, (seed, [tuple(row) for row in wrong[:10]])
    print(f"{dict(done)}, {await pg_pool.fetchval('select count(*) from collected_data')} facts")
    assert set(done) >= {"plain", "several", "copy", "job", "load"}
