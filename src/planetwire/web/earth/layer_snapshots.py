"""Snapshots of layers, encoded once per revision and kept in the cache.

A snapshot's cursor is read before its rows: they may be newer than the cursor, never older, and applying an event
twice is harmless.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import orjson

from planetwire.errors import BackendError
from planetwire.log import get_logger
from planetwire.model import Cursor, Json, LayerAdapter, LogEvent
from planetwire.model.cache_names import is_meant, layer_body
from planetwire.model.presentation.wire import look_on_wire, plain
from planetwire.ports import Cache, Clock, EventLog, FactStore, LayerRegistry, ObjectStore
from planetwire.web.snapshots.encoded import Encoded
from planetwire.web.snapshots.encodings import Encoding
from planetwire.web.snapshots.single_flight import SingleFlight
from planetwire.web.stores.cache_memory import MemoryCache

log = get_logger()

FRESHNESS_GOOD_FOR_S = 5.0
HEADER_MAX_BYTES = 256
CUTS_MAX = 32  # cached bodies with a limit …
CUT_BYTES_MAX = 32 * 1024 * 1024  # … and their total size


@dataclass(frozen=True, slots=True)
class Cursors:
    """`own`: the cursor in the body. `stamp`: the newest event, of any layer, whose cache patterns match the body."""

    own: Cursor
    stamp: Cursor


class LayerSnapshots:
    """Reads through the cache; a miss is built once for all concurrent requests."""

    def __init__(
        self,
        facts: FactStore,
        registry: LayerRegistry,
        event_log: EventLog,
        cache: Cache,
        clock: Clock,
        *,
        objects: ObjectStore | None = None,
        simulated: bool = False,
    ) -> None:
        """`objects`: rows of layers without a source. `simulated`: the feeds are, and live layers are labelled so."""
        self._facts = facts
        self._objects = objects
        self._registry = registry
        self._log = event_log
        self._cache = cache
        self._clock = clock
        self._live = "simulated" if simulated else "live"
        self._flights = SingleFlight[bytes]()
        self._cuts = MemoryCache(CUT_BYTES_MAX, CUTS_MAX)
        self._cutting = asyncio.Semaphore(1)
        self._freshness: dict[str, tuple[float, str, str | None]] = {}
        self._counts: dict[str, tuple[int, int]] = {}
        self.read_s: dict[str, float] = {}  # by layer, the duration of its last read

    async def get(self, layer: str, encoding: Encoding, limit: int | None = None) -> Encoded:
        """The body of a layer. Raises NotFound for an unknown one, BackendError on a miss without a database."""
        adapter = self._registry.adapter(layer)
        state, _ = await self._fresh(adapter)
        if limit is None:
            return _unpack(await self._stored(adapter, state, encoding))
        return _unpack(await self._limited(adapter, state, limit, encoding))

    async def forget(self, events: Sequence[LogEvent]) -> None:
        """Drop the bodies that match the patterns of the events' layers, in every process."""
        layers = {layer for event in events for layer in orjson.loads(event.body)["layers"]}
        await self.drop([adapter for adapter in self._registry.all() if adapter.id in layers])

    async def drop(self, changed: Iterable[LayerAdapter]) -> None:
        """Drop the bodies that match the patterns of these layers."""
        await self._cache.invalidate(sorted({pattern for adapter in changed for pattern in adapter.cache_patterns}))

    async def aclose(self) -> None:
        """Cancel running builds."""
        await self._flights.aclose()

    # --- bodies

    async def _limited(self, adapter: LayerAdapter, state: str, limit: int, encoding: Encoding) -> bytes:
        """A small separate cache, one read at a time: every limit makes another body, and none of them may evict a
        whole layer from the main cache.
        """
        whole = layer_body(adapter.id, f"{state}|{encoding}|")
        name = f"{whole}{limit}|{self._cache.generation(whole)}"
        found = await self._cuts.get(name)
        if found is not None:
            return found
        return await self._flights.share((name,), lambda: self._cut(adapter, state, limit, encoding, name))

    async def _cut(self, adapter: LayerAdapter, state: str, limit: int, encoding: Encoding, name: str) -> bytes:
        async with self._cutting:
            cursors = await self._cursors(adapter, name)
            packed = await _recoded(await self._read(adapter, state, limit, cursors), encoding)
        await self._cuts.put(name, self._cuts.generation(name), cursors.stamp, packed)
        return packed

    async def _stored(self, adapter: LayerAdapter, state: str, encoding: Encoding) -> bytes:
        name = layer_body(adapter.id, f"{state}|{encoding}|")
        generation = self._cache.generation(name)
        found = await self._cache.get(name)
        if found is not None:
            return found
        # The generation is in the key: a request after an invalidation never joins an older build.
        return await self._flights.share(
            (name, generation), lambda: self._fill(adapter, state, encoding, name, generation)
        )

    async def _fill(self, adapter: LayerAdapter, state: str, encoding: Encoding, name: str, generation: int) -> bytes:
        """The body of the same revision from another process, or a new one."""
        cursors = await self._cursors(adapter, name)  # before the rows
        packed = await self._cache.find(name, cursors.stamp)
        if packed is None and encoding == "identity":
            packed = await self._read(adapter, state, None, cursors)
        elif packed is None:
            packed = await _recoded(await self._stored(adapter, state, "identity"), encoding)
        if not await self._cache.put(name, generation, _stamp_of(packed), packed):
            log.debug("web.snapshot.outdated", layer=adapter.id, name=name)
        return packed

    async def _cursors(self, adapter: LayerAdapter, name: str) -> Cursors:
        """Both from one query of the log."""
        own = f"layer:{adapter.id}"
        meaning = {f"layer:{other.id}" for other in self._registry.all() if is_meant(name, other.cache_patterns)}
        heads = await self._log.heads(sorted({own, *meaning}))
        epoch = self._log.epoch
        return Cursors(Cursor(epoch, heads[own]), Cursor(epoch, max(heads.values())))

    async def _read(self, adapter: LayerAdapter, state: str, limit: int | None, cursors: Cursors) -> bytes:
        began = self._clock.monotonic()
        features, total = await self._features(adapter, limit)
        self.read_s[adapter.id] = self._clock.monotonic() - began
        head = {
            "layer": adapter.id,
            "epoch": cursors.own.epoch,
            "revision": cursors.own.revision,
            "generated_at": self._clock.now(),
            "state": state if total else "empty",
            "count": len(features),
            "total": total,
            "truncated": len(features) < total,
        }
        return await asyncio.to_thread(_joined, cursors, head, features)

    async def _features(self, adapter: LayerAdapter, limit: int | None) -> tuple[Sequence[bytes], int]:
        if adapter.sources or self._objects is None:
            # Of the adapter itself: its layer may have been removed from the registry since it was looked up.
            return await self._facts.features((*adapter.sources, *adapter.aliases), limit)
        return await self._objects.features(None, limit)

    # --- states

    async def layers(self) -> list[Json]:
        """Every layer with its state; also before any feed succeeded, and without a database."""
        return [await self._entry(adapter) for adapter in self._registry.all()]

    async def _entry(self, adapter: LayerAdapter) -> Json:
        count: int | None
        try:
            count = await self._count(adapter)
            state, last_success_at = await self._fresh(adapter)
            state = state if count else "empty"
        except BackendError:
            count, state, last_success_at = None, "unavailable", None
        return listed(adapter) | {"count": count, "state": state, "last_success_at": last_success_at}

    async def _count(self, adapter: LayerAdapter) -> int:
        generation = self._cache.generation(layer_body(adapter.id, "count"))
        known = self._counts.get(adapter.id)
        if known is None or known[0] != generation:
            _, total = await self._features(adapter, 0)
            known = self._counts[adapter.id] = (generation, total)
        return known[1]

    async def _fresh(self, adapter: LayerAdapter) -> tuple[str, str | None]:
        """`live` (or `simulated`) or `stale`, and the newest success; looked up again after 5 s.

        A collect without changes updates the success but causes no event, so no invalidation either.
        """
        now = self._clock.monotonic()
        known = self._freshness.get(adapter.id)
        if known is None or now - known[0] >= FRESHNESS_GOOD_FOR_S:
            known = self._freshness[adapter.id] = (now, *await self._look_up(adapter, known))
        return known[1], known[2]

    async def _look_up(
        self, adapter: LayerAdapter, known: tuple[float, str, str | None] | None
    ) -> tuple[str, str | None]:
        try:
            every = [source for other in self._registry.all() for source in other.sources]
            successes = await self._facts.last_success(adapter.sources or every)
        except BackendError:
            if known is None:
                raise
            return known[1], known[2]  # a cached body can still be served
        newest = max(successes.values(), default=None)
        if newest is None or (self._clock.now() - newest).total_seconds() > adapter.stale_after_s:
            return "stale", newest.isoformat().replace("+00:00", "Z") if newest else None
        return self._live, newest.isoformat().replace("+00:00", "Z")


def listed(adapter: LayerAdapter) -> Json:
    """The part of a layer's entry that does not depend on its state."""
    return {
        "id": adapter.id,
        "title": adapter.title,
        "title_zh": adapter.title_zh,
        "group": adapter.group,
        "kind": adapter.kind,
        "strategy": adapter.default_strategy.value,
        "sources": adapter.sources,
        "provenance": adapter.provenance,
        "stale_after_s": adapter.stale_after_s,
        "look": look_on_wire(adapter.look),
        "card": plain(adapter.card),
    }


def _joined(cursors: Cursors, head: Json, features: Sequence[bytes]) -> bytes:
    text = orjson.dumps(head, option=orjson.OPT_UTC_Z)
    body = b"".join((text[:-1], b',"features":[', b",".join(features), b"]}"))
    return _packed(Encoded.of(cursors.own, body), cursors.stamp)


def _packed(encoded: Encoded, stamp: Cursor) -> bytes:
    """The body behind a line with its ETag and stamp: one value in the cache holds all three."""
    return b"".join((f"{encoded.etag} {stamp.revision}\n".encode(), encoded.body))


async def _recoded(packed: bytes, encoding: Encoding) -> bytes:
    """Another coding keeps the stamp of its original."""
    return _packed(await _unpack(packed).compressed(encoding), _stamp_of(packed))


def _unpack(packed: bytes) -> Encoded:
    end = packed.index(b"\n", 0, HEADER_MAX_BYTES)
    return Encoded(packed[:end].decode().partition(" ")[0], memoryview(packed)[end + 1 :])


def _stamp_of(packed: bytes) -> Cursor:
    revision = packed[: packed.index(b"\n", 0, HEADER_MAX_BYTES)].decode().partition(" ")[2]
    return Cursor(_unpack(packed).cursor.epoch, int(revision))
