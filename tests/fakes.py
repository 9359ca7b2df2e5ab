"""Fakes for tests without I/O: an in-memory log that satisfies the port's contract."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from planetwire.errors import BackendError
from planetwire.model import LogEvent, ResyncReason


class MemoryEventLog:
    """The port EventLog, plus `append`, `prune`, and switches to fail or to block reads."""

    def __init__(self, epoch: str = "abcdef012345") -> None:
        self.epoch = epoch
        self.events: list[LogEvent] = []
        self.failing = False
        self.reads = 0
        self.gate = asyncio.Event()  # while cleared, `page` and `check` wait
        self.gate.set()
        self.waiting = asyncio.Event()  # set when a read waits at the gate
        self._head = 0
        self._heads: dict[str, int] = defaultdict(int)
        self._pruned: dict[str, int] = defaultdict(int)

    def append(self, topic: str, **payload: Any) -> LogEvent:
        """Commit one event; the caller publishes it to the hub."""
        prev, self._head = self._heads[topic], self._head + 1
        body = {**payload, "topic": topic, "revision": self._head, "prev_revision": prev, "epoch": self.epoch}
        event = LogEvent(topic, self._head, prev, orjson.dumps(body))
        self._heads[topic] = self._head
        self.events.append(event)
        return event

    def prune(self, through: int) -> None:
        """Forget events up to the revision; the mark is per topic."""
        for event in self.events:
            if event.revision <= through:
                self._pruned[event.topic] = max(self._pruned[event.topic], event.revision)
        self.events = [event for event in self.events if event.revision > through]

    async def _read(self) -> None:
        self.reads += 1
        if self.failing:
            raise BackendError("the log is away")
        if not self.gate.is_set():
            self.waiting.set()
            await self.gate.wait()
            if self.failing:
                raise BackendError("the log went away")

    async def head(self) -> int:
        if self.failing:
            raise BackendError("the log is away")
        return self._head

    async def heads(self, topics: Iterable[str]) -> Mapping[str, int]:
        if self.failing:
            raise BackendError("the log is away")
        return {topic: self._heads[topic] for topic in topics}

    async def check(self, topics: Sequence[str], after: int, limit: int) -> ResyncReason | None:
        await self._read()
        if after > self._head:
            return ResyncReason.REVISION_AHEAD
        missed = sum(event.topic in topics and event.revision > after for event in self.events)
        if any(self._pruned[topic] > after for topic in topics) or missed > limit:
            return ResyncReason.REPLAY_WINDOW_EXCEEDED
        return None

    async def page(self, topics: Sequence[str], after: int, limit: int) -> Sequence[LogEvent]:
        await self._read()
        return [event for event in self.events if event.topic in topics and event.revision > after][:limit]
