"""The tail of a log: from the head on, in order, each event once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import pytest

from fakes import MemoryEventLog
from planetwire.errors import BackendError
from planetwire.model import LogEvent
from planetwire.outbox.wakeup_memory import MemoryWakeup
from planetwire.runtime.clock import SystemClock
from planetwire.stream.tail import PAGE_EVENTS, Tail

TOPIC = "layer:satellites"


class Out:
    """Where a tail publishes to."""

    def __init__(self) -> None:
        self.revisions: list[int] = []
        self.came = asyncio.Event()

    def publish(self, events: Sequence[LogEvent]) -> None:
        self.revisions += [event.revision for event in events]
        self.came.set()


def made(
    log: MemoryEventLog, out: Out, *, before: Callable[[Sequence[LogEvent]], Awaitable[None]] | None = None
) -> tuple[Tail, MemoryWakeup]:
    bell = MemoryWakeup()
    return Tail(log, [TOPIC], bell, out.publish, SystemClock(), before=before), bell


@asynccontextmanager
async def running(tail: Tail) -> AsyncIterator[None]:
    task = asyncio.create_task(tail.run())
    yield
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()


async def test_it_begins_at_the_head_and_hands_on_what_comes_after() -> None:
    """Q23: every web process tails the log."""
    log, out = MemoryEventLog(), Out()
    log.append(TOPIC)
    tail, _ = made(log, out)
    await tail.step()
    assert (tail.position, out.revisions) == (1, [])
    log.append(TOPIC)
    log.append("layer:other")
    log.append(TOPIC)
    await tail.step()
    await tail.step()
    assert (tail.position, out.revisions) == (4, [2, 4])


async def test_more_than_a_page_is_handed_on_in_order() -> None:
    log, out = MemoryEventLog(), Out()
    tail, _ = made(log, out)
    await tail.step()
    for _ in range(PAGE_EVENTS + 3):
        log.append(TOPIC)
    await tail.step()
    assert out.revisions == list(range(1, PAGE_EVENTS + 4))


async def test_caches_let_go_before_subscribers_are_told() -> None:
    """S29."""
    log, out = MemoryEventLog(), Out()
    seen: list[tuple[list[int], list[int]]] = []

    async def before(events: Sequence[LogEvent]) -> None:
        seen.append(([event.revision for event in events], list(out.revisions)))

    tail, _ = made(log, out, before=before)
    await tail.step()
    log.append(TOPIC)
    await tail.step()
    assert seen == [([1], [])]
    assert out.revisions == [1]


async def test_a_ring_or_a_second_brings_it_and_a_failing_log_is_tried_again() -> None:
    """S11, S191."""
    log, out = MemoryEventLog(), Out()
    tail, bell = made(log, out)
    log.failing = True
    async with running(tail):
        await asyncio.sleep(0)
        log.failing = False
        while tail.position is None:
            await asyncio.sleep(0.01)
        log.append(TOPIC)
        bell.ring()
        async with asyncio.timeout(60):
            await out.came.wait()
        out.came.clear()
        log.failing = True
        log.append(TOPIC)
        bell.ring()
        await asyncio.sleep(0)
        log.failing = False
        async with asyncio.timeout(60):
            await out.came.wait()
    assert out.revisions == [1, 2]


async def test_rings_between_two_waits_collapse_and_are_not_lost() -> None:
    """S11: a ring carries nothing."""
    bell = MemoryWakeup()
    bell.ring()
    bell.ring()
    assert await bell.wait(10)
    assert not await bell.wait(0)


async def test_what_the_log_has_pruned_cannot_be_handed_on() -> None:
    """Q2: the process has to begin anew, so that its clients come back and are told; never a silent gap."""
    log, out = MemoryEventLog(), Out()
    tail, _ = made(log, out)
    await tail.step()

    async def pruned(*wanted: object) -> Sequence[LogEvent]:
        raise BackendError("events after the cursor were pruned", code="replay_window_exceeded")

    log.page = pruned  # type: ignore[method-assign]
    with pytest.raises(BackendError):
        await tail.run()
    assert out.revisions == []
