"""One connection as the hub sees it: live (in its topics' sets), or catching up (one cursor, no queue)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from planetwire.model import ResyncReason
from planetwire.ports import FrameSink

if TYPE_CHECKING:
    from planetwire.stream.hub import Hub
    from planetwire.stream.topic import Topic


class DirectSink(FrameSink, Protocol):
    """A sink that can also send with a single system call, while its buffer is empty."""

    def send(self, frame: bytes, /) -> int:
        """Bytes that the kernel took; pass the rest to `write_many`. Only while live. Raises OSError: it took none."""


class Subscriber:
    """Made by `Hub.join`; the port `Subscription`. It starts paused, at the given cursor."""

    __slots__ = (
        "_hub",
        "at",
        "closed",
        "live",
        "paused",
        "reading",
        "replaying",
        "resync",
        "send",
        "sink",
        "topics",
        "wrote",
    )

    def __init__(
        self, hub: Hub, topics: Sequence[Topic], sink: FrameSink, at: int, resync: ResyncReason | None
    ) -> None:
        self._hub = hub
        self.topics = topics
        self.sink = sink
        direct: Callable[[bytes], int] | None = getattr(sink, "send", None)  # DirectSink; isinstance takes 13 µs
        self.send = direct or _buffered_send(sink.write)
        self.at = at  # the cursor while not live; while live the hub's head is the cursor
        self.resync = resync  # to be sent at the start
        self.live = False
        self.paused = True
        self.closed = False
        self.reading = False  # a page is being fetched from the log
        self.replaying = resync is None  # until it was live once
        self.wrote = False  # part of the replay was written

    @property
    def cursor(self) -> int:
        """Every event up to this revision was written to the sink."""
        return self._hub.head if self.live else self.at

    def resume(self) -> None:
        """Continue from the cursor."""
        if self.closed:
            return
        self.paused = False
        self._hub.resumed(self)

    def pause(self) -> None:
        """Stop; if live, leave the live sets and keep only the cursor."""
        if self.closed or self.paused:
            return
        self.paused = True
        self._hub.paused(self)

    def close(self) -> None:
        """Leave for good. Idempotent."""
        if not self.closed:
            self.closed = True
            self._hub.left(self)


def _buffered_send(write: Callable[[bytes], None]) -> Callable[[bytes], int]:
    """For a sink that buffers what the kernel does not take."""

    def send(frame: bytes) -> int:
        write(frame)
        return len(frame)

    return send
