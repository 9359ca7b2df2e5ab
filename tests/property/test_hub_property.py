"""Hub against a model: whatever the order of publishing, connecting, stalling, pruning of nothing and log speed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fakes import MemoryEventLog
from long_form import examples
from planetwire.model import LogEvent, ResyncReason
from planetwire.ports import Subscription
from planetwire.runtime.clock import ManualClock
from planetwire.stream.hub import Hub

TOPICS = [f"city:{name}" for name in "abcd"]


def encode(event: LogEvent) -> bytes:
    return b"%d|" % event.revision


class Reader:
    """A connection with a small buffer that is drained only when told."""

    def __init__(self, topics: tuple[str, ...], after: int, room: int) -> None:
        self.topics = topics
        self.after = after
        self.room = room
        self.frames = b""
        self.pending = 0
        self.open = True
        self.subscription: Subscription

    def write(self, frame: bytes) -> None:
        assert self.open
        self.frames += frame
        self.pending += len(frame)
        assert self.pending <= self.room + (64 << 10) + 64, "holds more than its buffer and a page"
        if self.pending > self.room:
            self.subscription.pause()

    def write_many(self, frames: Sequence[bytes]) -> None:
        self.write(b"".join(frames))

    def drain(self) -> None:
        self.pending = 0
        self.subscription.resume()

    def resync(self, reason: ResyncReason) -> None:
        raise AssertionError(reason)

    def pending_bytes(self) -> int:
        return self.pending

    def cut(self) -> None:
        raise AssertionError("cut")

    def check(self, log: MemoryEventLog, through: int) -> None:
        expected = [e.revision for e in log.events if e.topic in self.topics and self.after < e.revision <= through]
        assert [int(part) for part in self.frames.split(b"|") if part] == expected


topics = st.lists(st.sampled_from(TOPICS), min_size=1, max_size=4, unique=True).map(tuple)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.lists(st.sampled_from(TOPICS), min_size=1, max_size=12)),
        st.tuples(st.just("commit"), st.sampled_from(TOPICS)),  # committed, handed over with the next publish
        st.tuples(st.just("open"), topics, st.one_of(st.none(), st.floats(0, 1)), st.integers(1, 40)),
        st.tuples(st.just("drain"), st.integers(0, 9)),
        st.tuples(st.just("close"), st.integers(0, 9)),
        st.tuples(st.just("gate"), st.booleans()),
        st.tuples(st.just("turn"), st.integers(1, 4)),
    ),
    max_size=60,
)


class World:
    def __init__(self, before: list[str], ring: int) -> None:
        self.log = MemoryEventLog()
        for topic in before:
            self.log.append(topic)
        self.hub = Hub(
            self.log, encode=encode, clock=ManualClock(datetime(2026, 1, 1, tzinfo=UTC)), stall_s=20.0, ring_frames=ring
        )
        self.unpublished: list[LogEvent] = []
        self.readers: list[Reader] = []
        self.closed: list[tuple[Reader, int]] = []
        self.opening: list[asyncio.Task[None]] = []

    def publish(self, names: list[str]) -> None:
        events = self.unpublished + [self.log.append(name) for name in names]
        self.unpublished = []
        self.hub.publish(events)

    def commit(self, name: str) -> None:
        self.unpublished.append(self.log.append(name))

    def open(self, names: tuple[str, ...], share: float | None, room: int) -> None:
        since = None if share is None else int(share * len(self.log.events))
        self.opening.append(asyncio.get_running_loop().create_task(self._open(names, since, room)))

    async def _open(self, names: tuple[str, ...], since: int | None, room: int) -> None:
        start = await self.hub.locate(names, None if since is None else (self.log.epoch, since), 10_000)
        assert start == since
        reader = Reader(names, self.hub.head if since is None else since, room)
        reader.subscription = self.hub.join(names, start, reader)
        self.readers.append(reader)
        reader.subscription.resume()

    def drain(self, number: int) -> None:
        if self.readers:
            self.readers[number % len(self.readers)].drain()

    def close(self, number: int) -> None:
        if self.readers:
            reader = self.readers.pop(number % len(self.readers))
            self.closed.append((reader, reader.subscription.cursor))
            reader.subscription.close()
            reader.open = False

    def gate(self, is_open: bool) -> None:
        if is_open:
            self.log.gate.set()
        else:
            self.log.gate.clear()

    async def turn(self, times: int) -> None:
        for _ in range(times):
            await asyncio.sleep(0)

    async def finish(self) -> None:
        self.gate(True)
        self.publish([])
        await asyncio.gather(*self.opening)
        for _ in range(2000):
            await self.turn(4)
            for reader in self.readers:
                reader.drain()
            if self.hub.live == len(self.readers):
                return
        raise AssertionError("somebody never caught up")


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(st.sampled_from(TOPICS), max_size=8), st.integers(1, 60), st.sampled_from([1, 3, 2048]), steps)
def test_every_connection_gets_exactly_its_topics_events_after_its_cursor(
    pattern: list[str], times: int, ring: int, plan: list[tuple[Any, ...]]
) -> None:
    """S154, S224, S163, S164, Q5, A1–A9 of the field's faults."""

    async def scenario() -> None:
        world = World(pattern * times, ring)
        await world.hub.start()
        for name, *values in plan:
            result = getattr(world, name)(*values)
            if result is not None:
                await result
        await world.finish()
        for reader in world.readers:
            reader.check(world.log, world.hub.head)
        for reader, cursor in world.closed:
            reader.check(world.log, cursor)
        await world.hub.aclose()

    asyncio.run(scenario())
