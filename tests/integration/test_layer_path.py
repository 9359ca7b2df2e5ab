"""From a committed row to the snapshot and the event that a browser gets: real facts, outbox, relay, tail, cache."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx
import orjson
from fastapi import FastAPI

from planetwire.database.postgres import Connection, Pool
from planetwire.facts.facts_postgres import PostgresFactStore
from planetwire.facts.objects_postgres import PostgresObjectStore
from planetwire.layers.registry import EarthLayerAdapterRegistry
from planetwire.model import LogEvent
from planetwire.outbox.changelog_postgres import PostgresChangeLog
from planetwire.outbox.wakeup_memory import MemoryWakeup
from planetwire.relay.payload import payload
from planetwire.relay.relay import Relay
from planetwire.runtime.clock import SystemClock
from planetwire.settings import RelaySettings
from planetwire.stream.log_postgres import PostgresEventLog
from planetwire.stream.tail import Tail
from planetwire.web.access.auth import Guard
from planetwire.web.earth.layer_snapshots import LayerSnapshots
from planetwire.web.earth.visualization import router
from planetwire.web.http.problems import install
from planetwire.web.stores.cache_memory import MemoryCache

WITHIN_S = 60.0
ADD = (
    "insert into collected_data (source, external_key, kind, title, data)"
    " values ($1, $2, 'satellite', $3, '{\"NORAD_CAT_ID\": 1}')"
    " on conflict (source, external_key) do update set title = excluded.title"
)


class Earth:
    """One web process's share of the Earth half, without the sockets."""

    def __init__(self, pool: Pool, log: PostgresEventLog) -> None:
        self.pool = pool
        self.events: list[LogEvent] = []
        self.moved = asyncio.Event()
        clock, registry, cache, bell = SystemClock(), EarthLayerAdapterRegistry(), MemoryCache(), MemoryWakeup()
        self.snapshots = LayerSnapshots(
            PostgresFactStore(pool), registry, log, cache, clock, objects=PostgresObjectStore(pool)
        )
        self.tail = Tail(log, ["earth_updates"], bell, self._publish, clock, before=self.snapshots.forget)
        self.relay = Relay(
            PostgresChangeLog(pool, payload),
            registry,
            cache.invalidate,
            MemoryWakeup(),
            RelaySettings(poll_s=0.02, merge_window_ms=20),
            clock,
            lambda events: bell.ring(),
        )
        app = FastAPI()
        install(app)
        app.include_router(router(self.snapshots, Guard("a", "i", b"k")))
        self.http = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test")

    def _publish(self, events: Sequence[LogEvent]) -> None:
        self.events += events
        self.moved.set()

    async def until(self, reached: Callable[[], bool]) -> None:
        async with asyncio.timeout(WITHIN_S):
            while not reached():
                self.moved.clear()
                await self.moved.wait()

    async def quiet(self) -> None:
        """Everything committed so far was published and handed on."""
        async with asyncio.timeout(WITHIN_S):
            while await self.pool.fetchval("select count(*) from earth_data_change_events where consumed_at is null"):
                await asyncio.sleep(0.02)
            head = await self.pool.fetchval("select revision from earth_log_head")
        await self.until(lambda: (self.tail.position or 0) >= head)

    async def layer(self, name: str) -> dict[str, Any]:
        answer = await self.http.get(f"/api/v1/visualization/{name}")
        assert answer.status_code == 200
        body: dict[str, Any] = answer.json()
        return body


@asynccontextmanager
async def running(pool: Pool) -> AsyncIterator[Earth]:
    earth = Earth(pool, await PostgresEventLog.open(pool))
    await earth.tail.step()
    tasks = [asyncio.create_task(earth.relay.run()), asyncio.create_task(earth.tail.run())]
    try:
        yield earth
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        await earth.http.aclose()
        await earth.snapshots.aclose()
    assert all(isinstance(outcome, asyncio.CancelledError) for outcome in ended), ended


async def test_a_delete_typed_by_hand_empties_the_layer(pg_pool: Pool) -> None:
    """S66, S80: insert, snapshot, delete, event, empty snapshot with the event's revision."""
    async with running(pg_pool) as earth:
        for n in range(3):
            await pg_pool.execute(ADD, "celestrak_gp", str(n), f"SAT {n}")
        await earth.quiet()
        full = await earth.layer("satellites")
        assert (full["count"], full["total"]) == (3, 3)
        await pg_pool.execute("delete from collected_data where source = 'celestrak_gp'")
        await earth.until(
            lambda: any(orjson.loads(e.body)["refresh_strategy"] == "clear_then_reload" for e in earth.events)
        )
        empty = await earth.layer("satellites")
        assert (empty["features"], empty["state"], empty["revision"]) == ([], "empty", earth.events[-1].revision)
        assert empty["epoch"] == full["epoch"]


async def test_a_feature_has_the_agreed_shape(pg_pool: Pool) -> None:
    """Contracts §3."""
    async with running(pg_pool) as earth:
        await pg_pool.execute(
            "insert into collected_data (source, external_key, kind, title, data, lat, lon, observed_at)"
            " values ('usgs_quakes', 'us1', 'earthquake', 'off \"Crete\"', '{\"mag\": 4.5}', 35.1, 25.0,"
            " '2026-01-02 03:04:05Z')"
        )
        await earth.quiet()
        (feature,) = (await earth.layer("earthquakes"))["features"]
        observed_at = feature.pop("observed_at")
        assert observed_at.startswith("2026-01-02T03:04:05")
        assert observed_at.endswith("Z")
        assert feature == {
            "id": "usgs_quakes:us1",
            "source": "usgs_quakes",
            "kind": "earthquake",
            "title": 'off "Crete"',
            "lat": 35.1,
            "lon": 25.0,
            "data": {"mag": 4.5},
        }


async def test_a_change_is_seen_while_a_collect_of_the_same_source_runs(pg_pool: Pool) -> None:
    """S33, S34: no job is made for it, and an open batch of the source does not hold it."""
    async with running(pg_pool) as earth, pg_pool.acquire() as collect:
        await pg_pool.execute(
            "insert into collection_tasks (task_type, source, status, worker_id, lease_seq, lease_until, started_at)"
            " values ('collect', 'celestrak_gp', 'running', 'w', 1, clock_timestamp() + interval '1 minute', now())"
        )
        batch = collect.transaction()
        await batch.start()
        await collect.execute(ADD, "celestrak_gp", "of the open batch", "x")
        await pg_pool.execute(ADD, "celestrak_gp", "by hand", "y")
        await earth.until(lambda: len(earth.events) == 1)
        assert (await earth.layer("satellites"))["count"] == 1
        await batch.commit()
        await earth.until(lambda: len(earth.events) == 2)
        assert (await earth.layer("satellites"))["count"] == 2
        assert await pg_pool.fetchval("select count(*) from collection_tasks") == 1


async def _random_write(connection: Connection, dice: random.Random, n: int) -> None:
    source = dice.choice(["celestrak_gp", "celestrak_tle", "usgs_quakes", "nobody"])
    key = str(dice.randrange(12))
    kind = dice.choices(["upsert", "delete", "update", "same", "copy", "truncate"], [60, 10, 10, 5, 10, 2])[0]
    if kind == "copy":
        await connection.copy_records_to_table(
            "collected_data", records=[(source, f"c{n}", "k")], columns=["source", "external_key", "kind"]
        )
        return
    statement, arguments = {
        "upsert": (ADD, (source, key, f"t{n}")),
        "delete": ("delete from collected_data where external_key = $1", (key,)),
        "update": ("update collected_data set title = $2 where source = $1", (source, f"u{n}")),
        "same": ("update collected_data set title = title", ()),
        "truncate": ("truncate collected_data", ()),
    }[kind]
    await connection.execute(statement, *arguments)


async def test_after_any_writes_what_the_browser_holds_equals_sql(pg_pool: Pool) -> None:
    """Snapshot plus events: a client that refetches on each event, however unluckily timed, ends with the truth."""
    dice = random.Random(20261130)
    async with running(pg_pool) as earth:
        held: dict[str, dict[str, Any]] = {}
        applied = 0

        async def follow() -> None:
            """What the page does: refetch a layer when an event says so."""
            nonlocal applied
            while True:
                while applied < len(earth.events):
                    layers = {orjson.loads(e.body)["layers"][0] for e in earth.events[applied:]}
                    applied = len(earth.events)
                    for name in layers:
                        held[name] = await earth.layer(name)
                earth.moved.clear()
                await earth.moved.wait()

        page = asyncio.create_task(follow())

        async def write(first: int) -> None:
            async with pg_pool.acquire() as connection:
                for n in range(first, first + 60):
                    async with connection.transaction():
                        await _random_write(connection, dice, n)

        await asyncio.gather(write(0), write(1000))
        await pg_pool.execute(ADD, "celestrak_gp", "last", "last")
        await pg_pool.execute(ADD, "usgs_quakes", "last", "last")
        await earth.quiet()
        async with asyncio.timeout(WITHIN_S):
            heads = dict(await pg_pool.fetch("select layer, revision from earth_layer_heads"))
            while {name: body["revision"] for name, body in held.items()} != heads:
                await asyncio.sleep(0.02)
        page.cancel()
        await asyncio.gather(page, return_exceptions=True)
        assert page.cancelled()
        for name, sources in {"satellites": ["celestrak_gp", "celestrak_tle"], "earthquakes": ["usgs_quakes"]}.items():
            truth = await pg_pool.fetch(
                "select source || ':' || external_key as id, title from collected_data where source = any ($1)", sources
            )
            shown = {(f["id"], f["title"]) for f in held[name]["features"]}
            assert shown == {(row["id"], row["title"]) for row in truth}


async def test_layers_know_their_counts_and_last_success(pg_pool: Pool) -> None:
    """Contracts §3."""
    async with running(pg_pool) as earth:
        await pg_pool.execute(ADD, "celestrak_gp", "1", "x")
        await pg_pool.execute(
            "insert into datasources (source, last_success_at) values ('celestrak_gp', clock_timestamp())"
            " on conflict (source) do update set last_success_at = excluded.last_success_at"
        )
        await earth.quiet()
        items = (await earth.http.get("/api/v1/layers")).json()["items"]
        satellites, quakes, stations, objects = items
        assert (satellites["count"], satellites["state"]) == (1, "live")
        assert satellites["last_success_at"].endswith("Z")
        assert (quakes["count"], quakes["state"], quakes["last_success_at"]) == (0, "empty", None)
        assert (stations["count"], stations["state"]) == (0, "empty")
        assert (objects["kind"], objects["strategy"], objects["count"]) == ("meta", "delta", 0)


async def test_objects_typed_in_by_hand_reach_the_browser_by_their_ids(pg_pool: Pool) -> None:
    """S65, S79, Q21: a delta names them, and snapshot plus deltas is what the table holds."""
    async with running(pg_pool) as earth:
        await pg_pool.execute(ADD, "celestrak_gp", "1", "x")
        await pg_pool.execute(ADD, "celestrak_gp", "2", "y")
        await earth.quiet()
        told = len(earth.events)
        add = (
            "insert into earth_interactables (id, layer, source, fact_key, title)"
            " values ('satellites:celestrak_gp:' || $1, 'satellites', 'celestrak_gp', $1, 'by hand')"
        )
        await pg_pool.execute(add, "1")
        await pg_pool.execute(add, "2")
        await pg_pool.execute("delete from earth_interactables where fact_key = '2'")
        await pg_pool.execute("update earth_interactables set title = 'renamed' where fact_key = '1'")
        await earth.quiet()
        held: set[str] = set()
        for event in earth.events[told:]:
            body = orjson.loads(event.body)
            assert (body["layers"], body["refresh_strategy"]) == (["interactables"], "delta")
            held = (held | set(body["delta"]["upsert"])) - set(body["delta"]["remove"])
        assert held == {"satellites:celestrak_gp:1"}
        snapshot = await earth.layer("interactables")
        assert [(one["id"], one["title"]) for one in snapshot["features"]] == [("satellites:celestrak_gp:1", "renamed")]
        await pg_pool.execute("truncate collected_data")
        await earth.quiet()
        last = {orjson.loads(e.body)["layers"][0]: orjson.loads(e.body)["refresh_strategy"] for e in earth.events}
        assert last["interactables"] == "clear_then_reload"
        assert (await earth.layer("interactables"))["features"] == []
