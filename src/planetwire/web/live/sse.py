"""`/api/events`: streams without their transport.

Order on every stream: connected → replay (or one resync_required) → live. The protocol class (`sse_protocol`) and the
plain ASGI route (`sse_route`) differ only in their `Carrier`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from planetwire.log import get_logger
from planetwire.model import Cursor, ResyncReason
from planetwire.ports import Clock, LiveStream
from planetwire.settings import StreamSettings
from planetwire.web.access.auth import Guard
from planetwire.web.access.limits import ConnectionLimits, Slot
from planetwire.web.live import frames
from planetwire.web.live.sse_query import SseQuery, parse_query

log = get_logger()

HEADERS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
RETRY_MS = (1_000, 5_000)  # sent at the start of every stream
DRAIN_RETRY_MS = (500, 10_000)  # sent at shutdown, so that clients do not all reconnect in the same second
BEATS_AT_ONCE = 500  # heartbeats written before yielding to the loop
NO_CITIES = {  # for a page older than `cities`: after an error it would retry for ever
    "code": "no_cities",
    "text": "no city was named, so no patch is sent here: name up to 50, ?cities=seoul,taipei; /api/cities lists them",
}

Headers = Sequence[tuple[bytes, bytes]]


class Carrier(Protocol):
    """The transport of a stream's bytes to the client."""

    def send(self, data: bytes, /) -> int:
        """The bytes that the kernel accepted, if nothing is buffered; see `DirectSink` in stream/subscriber.py."""

    def write(self, data: bytes, /) -> None:
        """Never waits; a full buffer pauses the stream's subscription."""

    def write_many(self, frames: Sequence[bytes], /) -> None:
        """Several frames in one write."""

    def pending_bytes(self) -> int:
        """Bytes not yet taken by the kernel."""

    def is_full(self) -> bool:
        """Whether it is waiting to drain."""

    def finish(self) -> None:
        """Flush, then close."""

    def cut(self) -> None:
        """Drop the connection at once."""


@dataclass(frozen=True, slots=True)
class Opening:
    """A request that was admitted: its slot is taken until the stream is closed, or `slot` released."""

    query: SseQuery
    start: int | ResyncReason | None
    slot: Slot


class SseStream:
    """One open stream; the hub's FrameSink."""

    def __init__(self, endpoint: SseEndpoint, opening: Opening, carrier: Carrier) -> None:
        self._endpoint = endpoint
        self._opening = opening
        self._carrier = carrier
        self.send = carrier.send
        self.write = carrier.write
        self.write_many = carrier.write_many
        self.pending_bytes = carrier.pending_bytes
        self.cut = carrier.cut
        self.closed = False
        self.subscription = endpoint.hub.join(opening.query.topics, opening.start, self)

    def start(self) -> None:
        """Send `retry:` and `connected`, then start the subscription. The head of the response is already sent."""
        hub, query = self._endpoint.hub, self._opening.query
        heads = hub.heads(query.topics)
        frame = frames.connected(
            epoch=hub.epoch,
            revision=max(hub.head, self.subscription.cursor),
            cities={key: heads[topic] for key, topic in zip(query.cities, query.topics, strict=True)},
            unknown=query.unknown,
            heartbeat_s=self._endpoint.heartbeat_s,
            at=self._endpoint.clock.now(),
            hint=None if query.cities else NO_CITIES,
        )
        self.write(frames.sse_retry(random.randint(*RETRY_MS)) + frames.sse_control(frame))
        if not self._carrier.is_full():
            self.subscription.resume()

    def resync(self, reason: ResyncReason, /) -> None:
        """Tell the client to fetch a snapshot of all its cities."""
        hub, query = self._endpoint.hub, self._opening.query
        log.info("stream.resync.required", reason=reason.value, head=hub.head, cities=len(query.cities))
        head = Cursor(hub.epoch, hub.head)
        at = self._endpoint.clock.now()
        self.write(frames.sse_control(frames.resync_required(reason, head, at, cities=list(query.cities))))

    def finish(self) -> None:
        """At shutdown: send when to reconnect, then end the stream."""
        self.subscription.close()
        self.write(frames.sse_retry(random.randint(*DRAIN_RETRY_MS)))
        self._carrier.finish()

    def close(self) -> None:
        """The connection is gone. Idempotent."""
        if not self.closed:
            self.closed = True
            self.subscription.close()
            self._opening.slot.release()
            self._endpoint.streams.discard(self)


class SseEndpoint:
    """Admits, opens, keeps alive and drains streams. One per process."""

    def __init__(
        self,
        hub: LiveStream,
        *,
        resolve_city: Callable[[str], str | None],
        guard: Guard,
        limits: ConnectionLimits,
        clock: Clock,
        settings: StreamSettings,
    ) -> None:
        self.hub = hub
        self.clock = clock
        self.heartbeat_s = settings.heartbeat_s
        self.streams: set[SseStream] = set()
        self.draining = False
        self._resolve_city = resolve_city
        self._guard = guard
        self._limits = limits

    async def admit(self, query_string: bytes, headers: Headers, peer: str | None) -> Opening:
        """Check access, parse, take a slot, find the start. Raises InputError, BackendError; then no slot is held."""
        caller = self._guard.caller_of(headers, peer)
        await self._guard.check_read(caller)
        query = parse_query(query_string, headers, self._resolve_city)
        await self._guard.check_opening(caller.address)
        slot = self._limits.take(caller.address)
        try:
            start = await self.hub.locate(query.topics, query.since, query.limit)
        except BaseException:  # the client may also have gone meanwhile: cancelled
            slot.release()
            raise
        return Opening(query, start, slot)

    def join(self, opening: Opening, carrier: Carrier) -> SseStream:
        """The stream, registered; `start` it once the response's head is written."""
        stream = SseStream(self, opening, carrier)
        self.streams.add(stream)
        return stream

    async def run(self) -> None:
        """Heartbeats on the wall clock, also under load, until cancelled."""
        next_s = self.clock.monotonic()
        while True:
            next_s = max(next_s + self.heartbeat_s, self.clock.monotonic())
            await self.clock.sleep(max(0.0, next_s - self.clock.monotonic()))
            await self.beat()

    async def beat(self) -> None:
        """One heartbeat to every stream, each with its own cursor."""
        shared: dict[int, bytes] = {}
        at, epoch = self.clock.now(), self.hub.epoch
        for number, stream in enumerate(list(self.streams), 1):
            if not stream.closed:
                cursor = stream.subscription.cursor
                if cursor not in shared:
                    shared[cursor] = frames.sse_control(frames.heartbeat(Cursor(epoch, cursor), at))
                stream.write(shared[cursor])
            if number % BEATS_AT_ONCE == 0:
                await asyncio.sleep(0)

    def drain(self) -> None:
        """End all streams, each with its own `retry:`. Idempotent."""
        self.draining = True
        for stream in list(self.streams):
            if not stream.closed:
                stream.finish()
