"""What is published between the wish to read the log and the reading itself."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from fakes import MemoryEventLog
from live_streams import eventually
from planetwire.model import LogEvent, ResyncReason
from planetwire.ports import Subscription
from planetwire.runtime.clock import ManualClock
from planetwire.stream.hub import Hub


def encode(event: LogEvent) -> bytes:
    return b"%d|" % event.revision


class Sink:
    """Takes everything."""

    def __init__(self) -> None:
        self.taken = b""
        self.subscription: Subscription

    def write(self, frame: bytes) -> None:
        self.taken += frame

    def write_many(self, frames: Sequence[bytes]) -> None:
        self.taken += b"".join(frames)

    def resync(self, reason: ResyncReason) -> None:
        raise AssertionError(reason)

    def pending_bytes(self) -> int:
        return 0

    def cut(self) -> None:
        raise AssertionError("cut")


async def test_an_event_of_another_topic_before_the_log_is_read_is_not_skipped() -> None:
    """F8, Q5: only one topic was behind when the page was asked for; the other's event of that moment still comes."""
    log = MemoryEventLog()
    for _ in range(3):
        log.append("city:a")
    hub = Hub(log, encode=encode, clock=ManualClock(datetime(2026, 1, 1, tzinfo=UTC)), stall_s=20.0, ring_frames=1)
    topics = ("city:a", "city:b")
    start = await hub.locate(topics, (log.epoch, 1), 100)
    sink = Sink()
    sink.subscription = hub.join(topics, start, sink)
    sink.subscription.resume()  # b has nothing; a is to be read from the log, in the loop's next turn
    hub.publish([log.append("city:b")])
    await eventually(lambda: hub.live == 1, "never caught up")
    assert sink.taken == b"2|3|4|"
    await hub.aclose()
