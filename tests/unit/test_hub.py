"""The hub alone: no sockets, a log in memory, time moved by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime

import pytest
import pytest_asyncio

from fakes import MemoryEventLog
from planetwire.errors import BackendError
from planetwire.model import LogEvent, ResyncReason
from planetwire.ports import Subscription
from planetwire.runtime.clock import ManualClock
from planetwire.stream.hub import Hub

START = datetime(2026, 5, 1, tzinfo=UTC)
A, B = "city:a", "city:b"


class RecordingSink:
    """Keeps what it is given; full once `room` bytes are pending."""

    def __init__(self, room: int = 1 << 30) -> None:
        self.room = room
        self.frames = b""
        self.pending = 0
        self.writes = 0
        self.resyncs: list[ResyncReason] = []
        self.was_cut = False
        self.subscription: Subscription | None = None

    @property
    def revisions(self) -> list[int]:
        return [int(part) for part in self.frames.split(b"|") if part]

    def write(self, frame: bytes) -> None:
        assert not self.was_cut
        self.frames += frame
        self.pending += len(frame)
        self.writes += 1
        if self.pending > self.room and self.subscription is not None:
            self.subscription.pause()

    def write_many(self, frames: Sequence[bytes]) -> None:
        self.write(b"".join(frames))

    def drain(self) -> None:
        self.pending = 0
        assert self.subscription is not None
        self.subscription.resume()

    def resync(self, reason: ResyncReason) -> None:
        self.resyncs.append(reason)

    def pending_bytes(self) -> int:
        return self.pending

    def cut(self) -> None:
        self.was_cut = True


class KernelSink(RecordingSink):
    """One that can be sent to: `kernel` bytes are taken, what is written beyond them is pending and pauses."""

    def __init__(self, kernel: int = 1 << 30) -> None:
        super().__init__(room=0)
        self.kernel = kernel
        self.sends = 0
        self.error: OSError | None = None

    def send(self, frame: bytes) -> int:
        assert not self.pending, "it would overtake what is pending"
        self.sends += 1
        if self.error is not None:
            raise self.error
        taken = frame[: self.kernel]
        self.kernel -= len(taken)
        self.frames += taken
        return len(taken)


def encode(event: LogEvent) -> bytes:
    return b"%d|" % event.revision


class Bench:
    """A hub over a log, and short words for what tests do with them."""

    def __init__(self, **options: int) -> None:
        self.log = MemoryEventLog()
        self.clock = ManualClock(START)
        self.hub = Hub(self.log, encode=encode, clock=self.clock, stall_s=20.0, **options)

    def publish(self, *topics: str) -> list[int]:
        events = [self.log.append(topic) for topic in topics]
        self.hub.publish(events)
        return [event.revision for event in events]

    async def open(
        self,
        topics: tuple[str, ...] = (A,),
        since: int | None = None,
        *,
        limit: int = 500,
        sink: RecordingSink | None = None,
    ) -> RecordingSink:
        sink = sink or RecordingSink()
        start = await self.hub.locate(topics, None if since is None else (None, since), limit)
        sink.subscription = self.hub.join(topics, start, sink)
        sink.subscription.resume()
        return sink

    async def settle(self) -> None:
        """Let reads of the log that can finish do so."""
        for _ in range(20):
            await asyncio.sleep(0)


@pytest_asyncio.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    yield made
    await made.hub.aclose()


async def test_only_topics_asked_for_are_delivered_in_order(bench: Bench) -> None:
    """S154, S224."""
    await bench.hub.start()
    sink = await bench.open((A,))
    bench.publish(A, B, A)
    bench.publish(B)
    bench.publish(A)
    assert sink.revisions == [1, 3, 5]


async def test_a_live_reader_is_sent_to_without_the_transport(bench: Bench) -> None:
    """An event alone in its turn: the kernel's call and nothing around it."""
    sink = await bench.open(sink=KernelSink())
    assert (bench.publish(A), bench.publish(A)) == ([1], [2])
    assert (sink.revisions, sink.writes) == ([1, 2], 0)


@pytest.mark.parametrize("kernel", range(1, 9))
async def test_what_the_kernel_does_not_take_is_written_and_never_overtaken(bench: Bench, kernel: int) -> None:
    """Cut anywhere: the rest goes to the transport, which pauses; what comes meanwhile is caught up with."""
    sink, other = KernelSink(kernel), KernelSink()
    await bench.open(sink=sink)
    await bench.open(sink=other)
    for _ in range(6):
        bench.publish(A)
    assert (bench.hub.lagging, bench.hub.lagged) == (1, 1)
    sink.kernel = 1 << 30
    while sink.pending:
        sink.drain()
    bench.publish(A)
    assert sink.revisions == other.revisions == list(range(1, 8))
    assert (bench.hub.live, bench.hub.lagging, bench.hub.delivered) == (2, 0, 14)


async def test_a_socket_that_fails_is_its_transports_business(bench: Bench) -> None:
    """Full, reset or closed already: the transport is given the event and finds out; the others have theirs."""
    sink = KernelSink()
    await bench.open(sink=sink)
    other = await bench.open(sink=KernelSink())
    sink.error = BlockingIOError()
    bench.publish(A)
    assert (sink.revisions, sink.writes, sink.was_cut) == ([1], 1, False)
    assert (other.revisions, bench.hub.cut) == ([1], 0)


async def test_a_reader_that_left_is_sent_nothing(bench: Bench) -> None:
    """Whoever is left is."""
    gone, stays = KernelSink(), KernelSink()
    await bench.open(sink=gone)
    await bench.open(sink=stays)
    bench.publish(A)
    assert gone.subscription is not None
    gone.subscription.close()
    bench.publish(A)
    assert (gone.sends, stays.sends) == (1, 2)


async def test_events_of_one_turn_are_one_write(bench: Bench) -> None:
    sink = await bench.open((A, B))
    bench.publish(A, B, A, B)
    assert (sink.revisions, sink.writes) == ([1, 2, 3, 4], 1)


async def test_an_echo_of_the_bus_is_ignored(bench: Bench) -> None:
    """A revision that was handed out already is not handed out again."""
    sink = await bench.open()
    events = [bench.log.append(A), bench.log.append(A)]
    bench.hub.publish(events)
    bench.hub.publish(events)
    bench.hub.publish(events[1:])
    assert sink.revisions == [1, 2]


async def test_replay_and_live_meet_without_gap_or_double(bench: Bench) -> None:
    """Q5: events published while the log is read reach the connection exactly once."""
    for _ in range(300):
        bench.log.append(A)
    await bench.hub.start()
    bench.log.gate.clear()
    opening = asyncio.ensure_future(bench.open((A,), since=10))
    await bench.log.waiting.wait()
    bench.publish(A, B, A)
    bench.log.gate.set()
    sink = await opening
    for _ in range(10):
        bench.publish(A)
        await bench.settle()
    assert sink.revisions == [*range(11, 302), 303, *range(304, 314)]
    assert bench.hub.live == 1


async def test_ring_filled_without_listeners_serves_a_later_cursor(bench: Bench) -> None:
    """C10 of the field's faults: what was published while nobody listened is replayed."""
    await bench.hub.start()
    bench.publish(A, B, A, A)
    sink = await bench.open((A,), since=1)
    assert sink.revisions == [3, 4]


async def test_old_cursor_without_a_newer_event_is_no_gap(bench: Bench) -> None:
    """Q2: other cities' events, even pruned ones, do not matter; the log is not even asked."""
    bench.log.append(A)
    for _ in range(50):
        bench.log.append(B)
    bench.log.prune(40)
    await bench.hub.start()
    await bench.hub.locate((A,), None, 1)
    reads = bench.log.reads
    sink = await bench.open((A,), since=1)
    assert (sink.revisions, sink.resyncs, bench.log.reads) == ([], [], reads)
    assert bench.publish(A) == sink.revisions


@pytest.mark.parametrize(
    ("since", "limit", "reason"),
    [
        ((None, 3), 500, ResyncReason.REPLAY_WINDOW_EXCEEDED),
        ((None, 10), 4, ResyncReason.REPLAY_WINDOW_EXCEEDED),
        ((None, 21), 500, ResyncReason.REVISION_AHEAD),
        (("zzzzzzzzzzzz", 20), 500, ResyncReason.EPOCH_CHANGED),
    ],
)
async def test_a_cursor_that_cannot_be_served_is_told_and_live_goes_on(
    bench: Bench, since: tuple[str | None, int], limit: int, reason: ResyncReason
) -> None:
    """S156, Q2, Q4: no event of the past is sent before the resync."""
    for _ in range(20):
        bench.log.append(A)
    bench.log.prune(5)
    start = await bench.hub.locate((A,), since, limit)
    sink = RecordingSink()
    sink.subscription = bench.hub.join((A,), start, sink)
    sink.subscription.resume()
    live = bench.publish(A)
    assert (start, sink.resyncs, sink.revisions) == (reason, [reason], live)
    assert bench.hub.resyncs == {reason.value: 1}


@pytest.mark.parametrize("since", [5, 15, 20])
async def test_window_boundaries_are_exact(bench: Bench, since: int) -> None:
    """Q2: the cursor just left of the oldest kept event is still good, and so is the head."""
    for _ in range(20):
        bench.log.append(A)
    bench.log.prune(5)
    sink = await bench.open((A,), since=since)
    await bench.settle()
    assert (sink.revisions, sink.resyncs) == (list(range(since + 1, 21)), [])


async def test_failing_log_asks_for_a_resync_and_live_goes_on(bench: Bench) -> None:
    """S191."""
    for _ in range(20):
        bench.log.append(A)
    await bench.hub.start()
    bench.log.failing = True
    sink = await bench.open((A,), since=3)
    bench.log.failing = False
    live = bench.publish(A)
    assert (sink.resyncs, sink.revisions) == ([ResyncReason.REPLAY_FAILED], live)


async def test_log_that_fails_in_the_middle_of_a_replay_cuts_instead_of_a_resync(bench: Bench) -> None:
    """Never a partial replay before a resync: the client comes back with its cursor."""
    for _ in range(300):
        bench.log.append(A)
    await bench.hub.start()
    sink = await bench.open((A,), since=0, sink=RecordingSink(room=100))
    await bench.settle()
    assert sink.revisions
    bench.log.failing = True
    sink.drain()
    await bench.settle()
    assert (sink.was_cut, sink.resyncs, bench.hub.cut, bench.hub.connections) == (True, [], 1, 0)


async def test_log_never_reached_refuses_the_connection(bench: Bench) -> None:
    bench.log.failing = True
    with pytest.raises(BackendError):
        await bench.hub.locate((A,), None, 1)


async def test_slow_reader_leaves_live_and_catches_up_from_the_ring(bench: Bench) -> None:
    """S154: it misses nothing, gets nothing twice, and holds no more than its buffer."""
    slow = await bench.open(sink=RecordingSink(room=40))
    quick = await bench.open()
    for _ in range(200):
        bench.publish(A)
    assert quick.revisions == list(range(1, 201))
    assert (bench.hub.live, bench.hub.lagging, bench.hub.lagged) == (1, 1, 1)
    assert slow.pending < 50
    assert slow.subscription is not None
    assert slow.subscription.cursor == slow.revisions[-1]
    while slow.pending > 40:
        slow.drain()
    assert (slow.revisions, bench.hub.lagging) == (list(range(1, 201)), 0)
    bench.publish(A)
    assert slow.revisions[-1] == 201


async def test_slow_reader_beyond_the_ring_reads_the_log() -> None:
    bench = Bench(ring_frames=8)
    slow = await bench.open(sink=RecordingSink(room=10))
    for _ in range(500):
        bench.publish(A)
    for _ in range(20):
        slow.drain()
        await bench.settle()
    assert slow.revisions == list(range(1, 501))
    await bench.hub.aclose()


async def test_a_reader_ten_thousand_events_behind_is_sent_for_a_snapshot() -> None:
    """S156: also where the page's own limit would let it read on."""
    bench = Bench(ring_frames=1)
    for _ in range(10_002):
        bench.log.append(A)
    sink = await bench.open((A,), since=1, limit=20_000)
    await bench.settle()
    assert sink.resyncs == [ResyncReason.REPLAY_WINDOW_EXCEEDED]
    await bench.hub.aclose()


async def test_slow_reader_whose_events_were_pruned_is_told(bench: Bench) -> None:
    """Q4: `slow_consumer`; nothing is dropped silently, and live goes on."""
    bench = Bench(ring_frames=8)
    slow = await bench.open(sink=RecordingSink(room=10))
    for _ in range(100):
        bench.publish(A)
    got = slow.revisions
    bench.log.prune(60)
    slow.drain()
    await bench.settle()
    live = bench.publish(A)
    assert slow.resyncs == [ResyncReason.SLOW_CONSUMER]
    assert slow.revisions == got + live
    await bench.hub.aclose()


async def test_reader_without_progress_is_cut_and_others_are_not(bench: Bench) -> None:
    stalled = await bench.open(sink=RecordingSink(room=10))
    slow = await bench.open(sink=RecordingSink(room=10))
    quick = await bench.open()
    for _ in range(50):
        bench.publish(A)
    bench.hub.sweep()
    bench.clock.advance(15)
    slow.pending -= 1  # took one byte
    bench.hub.sweep()
    bench.clock.advance(6)
    bench.hub.sweep()
    assert (stalled.was_cut, slow.was_cut, quick.was_cut, bench.hub.cut) == (True, False, False, 1)
    bench.publish(A)
    assert quick.revisions == list(range(1, 52))


async def test_stalls_are_swept_by_the_running_hub(bench: Bench) -> None:
    stalled = await bench.open(sink=RecordingSink(room=10))
    for _ in range(50):
        bench.publish(A)
    running = asyncio.ensure_future(bench.hub.run())
    for _ in range(25):
        await bench.settle()
        bench.clock.advance(1)
    await bench.settle()
    assert stalled.was_cut
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_cursor_committed_but_not_yet_published_waits_for_it(bench: Bench) -> None:
    """Q3: a snapshot may know a revision a moment before the hub does; it is not sent again."""
    await bench.hub.start()
    events = [bench.log.append(A) for _ in range(3)]
    sink = await bench.open((A,), since=2)
    assert sink.resyncs == []
    bench.hub.publish(events)
    assert sink.revisions == [3]
    assert bench.hub.live == 1


async def test_heads_never_exceed_what_was_fanned_out(bench: Bench) -> None:
    """`connected.cities` may not promise an event that is still to come, or the client would ignore it."""
    await bench.hub.start()
    event = bench.log.append(A)
    await bench.hub.locate((A,), None, 1)
    assert bench.hub.heads((A,)) == {A: 0}
    bench.hub.publish([event])
    assert bench.hub.heads((A,)) == {A: 1}


async def test_publish_right_after_join_is_received(bench: Bench) -> None:
    """S154: between `join` and `resume`, too."""
    sink = RecordingSink()
    start = await bench.hub.locate((A,), None, 1)
    sink.subscription = bench.hub.join((A,), start, sink)
    bench.publish(A)
    assert sink.revisions == []
    sink.subscription.resume()
    assert sink.revisions == [1]


async def test_one_broken_sink_costs_the_others_nothing(bench: Bench) -> None:
    class Broken(RecordingSink):
        def write(self, frame: bytes) -> None:
            raise OSError("gone")

        write_many = write  # type: ignore[assignment]

    broken = await bench.open(sink=Broken())
    sink = await bench.open()
    bench.publish(A)
    bench.publish(A, A)
    assert (sink.revisions, broken.was_cut, bench.hub.connections) == ([1, 2, 3], True, 1)


async def test_closed_subscription_is_forgotten(bench: Bench) -> None:
    sink = await bench.open((A, B))
    assert sink.subscription is not None
    sink.subscription.close()
    sink.subscription.close()
    bench.publish(A, B)
    assert (sink.revisions, bench.hub.connections, bench.hub.live) == ([], 0, 0)


async def test_who_follows_several_topics_gets_them_in_order_also_after_others_left(bench: Bench) -> None:
    """S154: events of one turn are one write in revision order, whoever else came and went."""
    await bench.hub.start()
    alone, both = await bench.open((A,)), await bench.open((A, B))
    assert alone.subscription is not None
    alone.subscription.close()
    bench.publish(B, A)
    assert (both.revisions, both.writes) == ([1, 2], 1)


async def test_ring_is_bounded_by_bytes() -> None:
    bench = Bench(ring_bytes=100)
    await bench.hub.start()
    for _ in range(1000):
        bench.publish(A)
    reads = bench.log.reads
    await bench.open((A,), since=990)
    assert bench.log.reads == reads + 1  # the check alone: the page came from the ring
    sink = await bench.open((A,), since=600)
    await bench.settle()
    assert sink.revisions == list(range(601, 1001))
    assert bench.log.reads > reads + 2
    await bench.hub.aclose()


async def test_event_is_encoded_once_for_all(bench: Bench) -> None:
    made: list[int] = []

    def counting(event: LogEvent) -> bytes:
        made.append(event.revision)
        return encode(event)

    hub = Hub(bench.log, encode=counting, clock=bench.clock, stall_s=20.0)
    await hub.start()
    sinks = [RecordingSink() for _ in range(10)]
    for sink in sinks:
        hub.join((A,), None, sink).resume()
    hub.publish([bench.log.append(A)])
    assert made == [1]
    assert all(sink.revisions == [1] for sink in sinks)
