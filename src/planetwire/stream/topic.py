"""One topic: its live subscribers, and a ring buffer of its newest encoded frames.

Invariant: the ring holds every event of the topic above `floor`, oldest first, each encoded once and shared by all.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from planetwire.model import LogEvent

if TYPE_CHECKING:
    from planetwire.stream.subscriber import Subscriber

RING_FRAMES = 2048  # maximum frames per topic …
RING_BYTES = 1 << 20  # … and bytes, whichever is reached first
PAGE_FRAMES = 96  # frames written at once to a connection that catches up …
PAGE_BYTES = 64 << 10  # … and their bytes; a page may exceed it by its last frame

Numbered = list[tuple[int, bytes]]
Send = Callable[[bytes], int]


class Topic:
    """Live subscribers and recent frames. `head` is at least the latest fanned-out revision of the topic."""

    __slots__ = (
        "_bytes",
        "_ends",
        "_first",
        "_frames",
        "_revisions",
        "_senders",
        "floor",
        "head",
        "live",
        "max_bytes",
        "max_frames",
        "name",
        "shared",
    )

    def __init__(
        self, name: str, head: int, floor: int, *, max_frames: int = RING_FRAMES, max_bytes: int = RING_BYTES
    ) -> None:
        self.name = name
        self.head = head
        self.floor = floor
        self.max_frames = max_frames
        self.max_bytes = max_bytes
        self.live: dict[Subscriber, Send] = {}  # with the send function of each
        self.shared = 0  # how many of them have other topics too
        self._senders: tuple[Send, ...] | None = None  # of the live ones; None: outdated
        self._revisions: list[int] = []
        self._frames: list[bytes] = []
        self._ends: list[int] = []  # running total of bytes through each frame: a page is cut by bisection
        self._first = 0  # index of the oldest frame kept; entries before it await compaction
        self._bytes = 0

    def enter(self, subscriber: Subscriber, *, shared: bool) -> None:
        """The subscriber becomes live; it was not."""
        self.live[subscriber] = subscriber.send
        self._senders = None
        self.shared += shared

    def leave(self, subscriber: Subscriber, *, shared: bool) -> None:
        """The subscriber is no longer live; it was."""
        del self.live[subscriber]
        self._senders = None
        self.shared -= shared

    def senders(self) -> tuple[Send, ...]:
        """The send functions of the live subscribers. The tuple does not change when one of them leaves."""
        if self._senders is None:
            self._senders = tuple(self.live.values())
        return self._senders

    def subscriber_of(self, send: Send) -> Subscriber | None:
        """The subscriber with this send function, unless it has left."""
        return next((each for each, its in self.live.items() if its is send), None)

    def add(self, revision: int, frame: bytes) -> None:
        """Add the newest frame and evict the oldest once the ring is full. Revisions rise."""
        self._revisions.append(revision)
        self._frames.append(frame)
        self._ends.append((self._ends[-1] if self._ends else 0) + len(frame))
        self._bytes += len(frame)
        self.head = revision
        while len(self._frames) - self._first > self.max_frames or self._bytes > self.max_bytes:
            self._evict()
        if self._first > self.max_frames:
            del self._revisions[: self._first], self._frames[: self._first], self._ends[: self._first]
            self._first = 0

    def _evict(self) -> None:
        self.floor = self._revisions[self._first]
        self._bytes -= len(self._frames[self._first])
        self._frames[self._first] = b""
        self._first += 1

    def page(self, cursor: int, head: int) -> tuple[list[bytes], int]:
        """The next frames, and the cursor after them (`head` if none is left). `cursor` is at least `floor`."""
        start = bisect_right(self._revisions, cursor, lo=self._first)
        if start == len(self._frames):
            return [], head
        full = self._ends[start] - len(self._frames[start]) + PAGE_BYTES
        stop = min(bisect_left(self._ends, full, lo=start) + 1, start + 2 * PAGE_FRAMES)
        return self._frames[start:stop], head if stop >= len(self._frames) else self._revisions[stop - 1]

    def after(self, revision: int, limit: int) -> Numbered:
        """At most `limit` frames above `revision`, oldest first. `revision` is at least `floor`."""
        start = bisect_right(self._revisions, revision, lo=self._first)
        stop = start + limit
        return list(zip(self._revisions[start:stop], self._frames[start:stop], strict=True))


def ring_page(topics: list[Topic], cursor: int, head: int) -> tuple[list[bytes], int]:
    """The next frames of these topics in revision order, and the cursor after them (`head` when none is left)."""
    if len(topics) == 1:
        return topics[0].page(cursor, head)
    share = max(4, 2 * PAGE_FRAMES // len(topics))
    pool: Numbered = []
    bound = head
    for topic in topics:
        part = topic.after(cursor, share)
        pool += part
        if len(part) == share:  # the topic may have more frames: none beyond its last one may be sent yet
            bound = min(bound, part[-1][0])
    pool.sort()
    return cut_page(pool, bound)


def cut_page(frames: Iterable[tuple[int, bytes]], bound: int) -> tuple[list[bytes], int]:
    """As many frames up to `bound` as fit one page, and the cursor after them (`bound` if all fitted)."""
    page: list[bytes] = []
    size = last = 0
    for revision, frame in frames:
        if revision > bound:
            break
        if size >= PAGE_BYTES or len(page) >= 2 * PAGE_FRAMES:
            return page, last
        page.append(frame)
        size += len(frame)
        last = revision
    return page, bound


def new_chunks(events: Sequence[LogEvent], head: int) -> Iterator[list[LogEvent]]:
    """The events above the head, in chunks of about one page of bytes, each written to a transport at once."""
    chunk: list[LogEvent] = []
    size = 0
    for event in events:
        if event.revision <= head:
            continue
        if chunk and size + len(event.body) > PAGE_BYTES:
            yield chunk
            chunk, size = [], 0
        chunk.append(event)
        size += len(event.body)
        head = event.revision
    if chunk:
        yield chunk
