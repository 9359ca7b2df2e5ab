"""Random writes in every shape while relays are killed at their named points: the map equals the database."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from long_form import amount, seed_of
from map_client import Page
from planetwire.database.postgres import Pool, open_pool
from planetwire.layers.registry import EarthLayerAdapterRegistry
from planetwire.outbox.changelog_postgres import BROADCASTS_CHANNEL
from planetwire.outbox.wakeup_postgres import PostgresWakeup
from planetwire.stream.log_postgres import PostgresEventLog
from random_writes import FAR, Writer

# Short with the other tests, long by `make test-long`; PLANETWIRE_LONG_CHANGES names any other number.
CHANGES = amount("CHANGES", 1_000, 20_000)
ROUND_CHANGES = max(CHANGES // 20, 750)  # then quiet, and the map is compared
KILLS = 2 if CHANGES < 10_000 else 4  # in a round, at least
WRITERS = 6
WITHIN_S = 120.0
POINTS = ("relay.read", "relay.before_publish", "relay.appended", "relay.after_publish")
REGISTRY = EarthLayerAdapterRegistry()
RELAY = Path(__file__).with_name("relay_process.py")

pytestmark = pytest.mark.timeout(600 + CHANGES / 10)

# The map, said by SQL alone.
FACTS = """select f.source || ':' || f.external_key, f.title, coalesce(r.lat, f.lat), coalesce(r.lon, f.lon),
    f.data->'v'
from collected_data f left join resolved_locations r on r.source = f.source and r.fact_key = f.external_key
where f.source = any ($1)"""
THINGS = """select i.id, i.title, i.lat, i.lon, i.properties->'v' from earth_interactables i
where exists (select from collected_data f where f.source = i.source and f.external_key = i.fact_key)"""
WRITTEN = "select count(*) from earth_data_change_events"
WAITING = """select (select count(*) from earth_data_change_events where consumed_at is null)
    + (select count(*) from earth_refresh_hints where consumed_at is null)"""
LOGGED = "select layer, sum((message->>'merged_count')::int) from earth_broadcasts group by layer"


@dataclass
class Relays:
    """One relay after another, killed at one point after the other."""

    dsn: str
    rng: random.Random
    kills: Counter[str] = field(default_factory=Counter)

    async def run(self) -> None:
        """Until cancelled. Most die where they are told to; the last one is killed wherever it is."""
        while True:
            point = POINTS[self.kills.total() % len(POINTS)]
            await self._one(f"{point}:{self.rng.choice((1, 2, 7))}", point)

    async def _one(self, spec: str, name: str) -> None:
        window_ms = str(self.rng.choice((0, 0, 30)))
        process = await asyncio.create_subprocess_exec(sys.executable, RELAY, self.dsn, spec, window_ms)
        try:
            status = await process.wait()
        except asyncio.CancelledError:
            process.kill()
            await process.wait()
            raise
        assert status == -signal.SIGKILL, status
        self.kills[name] += 1


@asynccontextmanager
async def calm_relay(dsn: str) -> AsyncIterator[None]:
    process = await asyncio.create_subprocess_exec(sys.executable, RELAY, dsn, "", "10")
    try:
        yield
    finally:
        process.kill()
        await process.wait()


async def settled(pool: Pool, page: Page) -> None:
    """Nothing waits, and the page heard everything."""
    async with asyncio.timeout(WITHIN_S):
        while await pool.fetchval(WAITING):
            await asyncio.sleep(0.05)
        await page.quiet(await pool.fetchval("select coalesce(max(revision), 0) from earth_broadcasts"))


async def truth(pool: Pool) -> dict[str, dict[str, tuple[Any, ...]]]:
    out = {}
    for layer in ("satellites", "earthquakes"):
        rows = await pool.fetch(FACTS, list(REGISTRY.sources_of(layer)))
        out[layer] = {row[0]: tuple(row)[1:] for row in rows}
    out["interactables"] = {row[0]: tuple(row)[1:] for row in await pool.fetch(THINGS)}
    return out


async def check_counts(pool: Pool) -> None:
    """Each change is in the log of each of its layers: once, or again if it fed several and a relay died between."""
    due: Counter[str] = Counter()
    of_several: Counter[str] = Counter()
    for table, source, skipped, n in await pool.fetch(
        "select table_name, source, skipped_reason, count(*) from earth_data_change_events group by 1, 2, 3"
    ):
        layers = REGISTRY.layers_of(table, source)
        assert (skipped is not None) == (not layers), (table, source, skipped)
        due.update(dict.fromkeys(layers, n))
        if len(layers) > 1:
            of_several.update(dict.fromkeys(layers, n))
    due.update(dict(await pool.fetch("select layer, count(*) from earth_refresh_hints group by layer")))
    logged = dict(await pool.fetch(LOGGED))
    for layer in due:
        assert due[layer] <= logged[layer] <= due[layer] + of_several[layer], (layer, due, of_several, logged)


async def check_order(pool: Pool) -> None:
    """Revisions are dense over all layers, and chained within each."""
    rows = await pool.fetch("select layer, revision, prev_revision from earth_broadcasts order by revision")
    assert [row["revision"] for row in rows] == list(range(1, len(rows) + 1))
    last: dict[str, int] = {}
    for row in rows:
        assert row["prev_revision"] == last.get(row["layer"], 0), row
        last[row["layer"]] = row["revision"]


async def test_the_map_equals_the_database_whatever_is_written_and_wherever_relays_die(
    pg_pool: Pool, pg_dsn: str
) -> None:
    """S16, S17, S22, S31, S32, S79, S80, Q24, Q25; snapshot(t0) + events(t0..t1) = snapshot(t1), for every layer."""
    seed = seed_of("SEED")
    print("seed", seed)
    await pg_pool.execute(FAR)
    writing = await open_pool(pg_dsn, application="test", max_size=WRITERS)
    writers = [Writer(writing, pg_dsn, random.Random(seed + n), n) for n in range(WRITERS)]
    relays = Relays(pg_dsn, random.Random(seed))
    doorbell = PostgresWakeup(pg_dsn, (BROADCASTS_CHANNEL,))
    doorbell.start()
    log = await PostgresEventLog.open(pg_pool)
    try:
        async with Page(log, pg_pool, REGISTRY, doorbell.bell(BROADCASTS_CHANNEL)) as page:
            while (written := await pg_pool.fetchval(WRITTEN)) < CHANGES or set(relays.kills) < set(POINTS):
                await one_round(pg_pool, writers, relays, min(CHANGES, written + ROUND_CHANGES))
                async with calm_relay(pg_dsn):
                    await settled(pg_pool, page)
                expected = await truth(pg_pool)
                for client in page.clients:
                    assert {layer: client.places(layer) for layer in expected} == expected, f"seed {seed}"
            events = len(page.heard)
        await check_counts(pg_pool)
        await check_order(pg_pool)
    finally:
        await doorbell.aclose()
        await writing.close()
    shapes: Counter[str] = sum((writer.done for writer in writers), Counter())
    print(f"{written} changes, {events} events, kills {dict(relays.kills)}, {dict(shapes)}")
    assert set(relays.kills) == set(POINTS)
    assert set(shapes) >= {"plain", "derived", "several", "copy", "far", "job", "as_replica"}


async def one_round(pool: Pool, writers: list[Writer], relays: Relays, changes: int) -> None:
    """Writers and dying relays, until so many changes are there and so many relays dead."""
    reached = False
    before = relays.kills.total()
    dying = asyncio.ensure_future(relays.run())
    writing = [asyncio.ensure_future(writer.run(lambda: reached)) for writer in writers]
    try:
        async with asyncio.timeout(WITHIN_S + changes / 10):
            while await pool.fetchval(WRITTEN) < changes or relays.kills.total() < before + KILLS:
                for task in (dying, *writing):
                    if task.done():
                        task.result()
                await asyncio.sleep(0.05)
    finally:
        reached = True
        ended = await asyncio.gather(*writing, return_exceptions=True)
        dying.cancel()
        await asyncio.gather(dying, return_exceptions=True)
    assert ended == [None] * len(writers), ended
