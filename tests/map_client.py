"""A browser's state of each layer, by the rules of `frontend/src/data/layer_core.ts`, over the real snapshots."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from planetwire.database.postgres import Pool
from planetwire.errors import BackendError
from planetwire.facts.facts_postgres import PostgresFactStore
from planetwire.facts.objects_postgres import PostgresObjectStore
from planetwire.layers.registry import EarthLayerAdapterRegistry
from planetwire.model import LogEvent
from planetwire.runtime.clock import SystemClock
from planetwire.stream.log_postgres import PostgresEventLog
from planetwire.stream.tail import Tail
from planetwire.web.earth.layer_snapshots import LayerSnapshots
from planetwire.web.stores.cache_memory import MemoryCache

SETTLE_TRIES = 50
FAILED = (BackendError,)  # a deadlock lost twice: the page gets an error, and retries


@dataclass
class Layer:
    """Revisions: `shown` of the objects, `need` of the newest event, `floor` of the last clear."""

    objects: dict[str, Any] = field(default_factory=dict)
    shown: int = -1
    need: int = 0
    floor: int = 0


@dataclass
class MapClient:
    """`careless`: applies every event, also already known ones, and twice."""

    snapshots: LayerSnapshots
    objects: PostgresObjectStore
    layers: dict[str, Layer]
    careless: bool = False

    async def take(self, event: LogEvent) -> None:
        """Apply one event; a required fetch is left to `settle`."""
        body = orjson.loads(event.body)
        for name in body["layers"]:
            layer = self.layers[name]
            known = max(layer.need, layer.shown)
            if event.revision <= known and not self.careless:
                continue
            for _ in range(2 if self.careless else 1):
                await self._apply(layer, event, body, unbroken=event.prev_revision <= known == layer.shown)

    async def _apply(self, layer: Layer, event: LogEvent, body: dict[str, Any], *, unbroken: bool) -> None:
        strategy = body["refresh_strategy"]
        layer.need = max(layer.need, event.revision)
        if strategy == "clear_then_reload":
            layer.objects.clear()
            layer.shown, layer.floor = -1, event.revision
        # A delta applies only to a complete state; an already known one may be applied again.
        if strategy == "delta" and unbroken and await self._delta(layer, body["delta"]):
            layer.shown = max(layer.shown, event.revision)

    async def _delta(self, layer: Layer, delta: dict[str, list[str]]) -> bool:
        named = [*delta["upsert"], *delta["remove"]]
        try:
            found, _ = await self.objects.features(named, None)
        except FAILED:
            return False
        for name in named:
            layer.objects.pop(name, None)
        layer.objects |= {feature["id"]: feature for feature in map(orjson.loads, found)}
        return True

    async def settle(self) -> None:
        """Fetch the layers that are behind their newest event."""
        for name, layer in self.layers.items():
            for _ in range(SETTLE_TRIES):
                if layer.shown >= layer.need:
                    break
                try:
                    body = orjson.loads((await self.snapshots.get(name, "identity")).body)
                except FAILED:
                    continue
                if body["revision"] >= max(layer.floor, layer.shown):
                    layer.objects = {feature["id"]: feature for feature in body["features"]}
                    layer.shown = body["revision"]
            else:
                raise AssertionError(f"{name}: no snapshot holds event {layer.need}, the last one {layer.shown}")

    def places(self, name: str) -> dict[str, tuple[Any, ...]]:
        """The objects on the map: id → title, place, value."""
        return {
            key: (feature["title"], feature["lat"], feature["lon"], feature["data"].get("v"))
            for key, feature in self.layers[name].objects.items()
        }


class Page:
    """Clients of one web process, fed by its tail. They may disconnect, and get known events again."""

    def __init__(self, log: PostgresEventLog, pool: Pool, registry: EarthLayerAdapterRegistry, bell: Any) -> None:
        facts, objects = PostgresFactStore(pool), PostgresObjectStore(pool)
        self.snapshots = LayerSnapshots(facts, registry, log, MemoryCache(), SystemClock(), objects=objects)
        self.clients = [
            MapClient(self.snapshots, objects, {a.id: Layer() for a in registry.all()}, careless)
            for careless in (False, True)
        ]
        self.heard: list[LogEvent] = []
        self._queue: asyncio.Queue[LogEvent] = asyncio.Queue()
        self._tail = Tail(log, ["earth_updates"], bell, self._hear, SystemClock(), before=self.snapshots.forget)
        self._tasks: list[asyncio.Future[None]] = []

    async def __aenter__(self) -> Page:
        await self._tail.step()
        for client in self.clients:
            await self._open(client)
        self._tasks = [asyncio.ensure_future(self._tail.run()), asyncio.ensure_future(self._follow())]
        return self

    async def __aexit__(self, *error: object) -> None:
        for task in self._tasks:
            task.cancel()
        ended = await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.snapshots.aclose()
        faults = [outcome for outcome in ended if not isinstance(outcome, asyncio.CancelledError)]
        assert not faults, faults

    @staticmethod
    async def _open(client: MapClient) -> None:
        for name in client.layers:
            client.layers[name].need = 0
        await client.settle()

    def _hear(self, events: Sequence[LogEvent]) -> None:
        self.heard += events
        for event in events:
            self._queue.put_nowait(event)

    async def _follow(self) -> None:
        """One event and all further ones available, then one fetch: like a busy page."""
        while True:
            batch = [await self._queue.get()]
            while not self._queue.empty():
                batch.append(self._queue.get_nowait())
            for client in self.clients:
                again = self.heard[-len(batch) - 3 : -len(batch)] if client.careless else []
                for event in (*again, *batch):
                    await client.take(event)
                await client.settle()
            for _ in batch:
                self._queue.task_done()

    async def quiet(self, revision: int) -> None:
        """Wait until everything up to the revision was received and applied."""
        while not (self.heard and self.heard[-1].revision >= revision):
            if any(task.done() for task in self._tasks):
                raise AssertionError(self._tasks)
            await asyncio.sleep(0.02)
        joined = asyncio.ensure_future(self._queue.join())
        await asyncio.wait([joined, *self._tasks], return_when=asyncio.FIRST_COMPLETED)
        joined.cancel()
        assert not any(task.done() for task in self._tasks), self._tasks
