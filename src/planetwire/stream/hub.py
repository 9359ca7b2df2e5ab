"""Fans one log out to the connections of this process, without a queue per connection.

Invariants: a subscriber is live (in its topics' sets) or catching up (one cursor); nothing is awaited between
"nothing newer" and "joined", so no event is lost or sent twice; an event is encoded once; a slow reader costs its
transport's buffer and a cursor, and delays no other. The log decides what can be replayed; the rings are its cache.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from planetwire.log import get_logger
from planetwire.model import LogEvent, ResyncReason
from planetwire.ports import Clock, EventLog, FrameSink
from planetwire.stream.log_reader import LogReader
from planetwire.stream.rings import Rings, own_topic
from planetwire.stream.stalls import Stalls
from planetwire.stream.subscriber import Subscriber
from planetwire.stream.topic import PAGE_FRAMES, RING_BYTES, RING_FRAMES, Topic, cut_page, new_chunks, ring_page

log = get_logger()

SWEEP_S = 1.0  # how often stalled readers are checked


class Hub:
    """The port `LiveStream` over one EventLog.

    `encode` makes the frame of an event; `topic_of` names the topic it is fanned out on. `delivered`, `lagged`, `cut`
    and `resyncs` are counters; `connections`, `live` and `lagging` are gauges.
    """

    def __init__(
        self,
        event_log: EventLog,
        *,
        encode: Callable[[LogEvent], bytes],
        clock: Clock,
        stall_s: float,
        topic_of: Callable[[LogEvent], str] = own_topic,
        ring_frames: int = RING_FRAMES,
        ring_bytes: int = RING_BYTES,
    ) -> None:
        self._log = event_log
        self._encode = encode
        self._clock = clock
        self._rings = Rings(encode, topic_of, max_frames=ring_frames, max_bytes=ring_bytes)
        self._subscribers: set[Subscriber] = set()
        self._ahead: set[Subscriber] = set()  # their cursor is above the head: committed, but not yet fanned out
        self._full = Stalls(clock.monotonic, stall_s)
        self._reader = LogReader(event_log)
        self._tasks: set[asyncio.Task[None]] = set()
        self.live = 0
        self.delivered = 0
        self.lagged = 0
        self.cut = 0
        self.resyncs: Counter[str] = Counter()

    @property
    def epoch(self) -> str:
        """The id of the log."""
        return self._log.epoch

    @property
    def head(self) -> int:
        """The latest revision fanned out here."""
        return self._rings.head

    @property
    def connections(self) -> int:
        """The number of subscribers, live or not."""
        return len(self._subscribers)

    @property
    def lagging(self) -> int:
        """The number of subscribers whose transport is full."""
        return len(self._full)

    # --- life

    async def start(self) -> int:
        """Read the log's head; every event above it has to be published here. Raises BackendError.

        Idempotent. The tail that feeds this hub has to begin at the same head, else events in between are lost.
        """
        if not self._rings.begun:
            self._rings.begin(await self._log.head())
        return self.head

    async def run(self) -> None:
        """Cut stalled readers, until cancelled."""
        while True:
            await self._clock.sleep(SWEEP_S)
            self.sweep()

    async def aclose(self) -> None:
        """Drop all subscribers and cancel their reads. The connections themselves belong to the web."""
        for subscriber in list(self._subscribers):
            subscriber.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- fan-out

    def publish(self, events: Sequence[LogEvent]) -> None:
        """Deliver committed events, in revision order. Those at or below the head are repeats and ignored."""
        if events:
            self._rings.begin(events[0].revision - 1)
        for chunk in new_chunks(events, self.head):
            if len(chunk) == 1:
                self._deliver_one(chunk[0])
            else:
                self._deliver_many(chunk)
        for subscriber in [each for each in self._ahead if each.at <= self.head]:
            self._ahead.discard(subscriber)
            self._pump(subscriber)

    def _deliver_one(self, event: LogEvent) -> None:
        topic, frame = self._rings.keep(event)
        self._write_all(topic, frame)

    def _deliver_many(self, chunk: Sequence[LogEvent]) -> None:
        """One write per subscriber, however many its events; all are in their rings before the first write."""
        kept = [self._rings.keep(event) for event in chunk]
        events = Counter(topic for topic, _ in kept)
        mixed: dict[Subscriber, list[bytes]] = {}
        alone = []
        for topic, frame in kept:
            if events[topic] == 1 and not topic.shared:
                alone.append((topic, frame))
            else:
                for subscriber in topic.live:
                    mixed.setdefault(subscriber, []).append(frame)
        for topic, frame in alone:
            self._write_all(topic, frame)
        for subscriber, frames in mixed.items():
            self._write(subscriber, frames)
            self.delivered += len(frames)

    def _write_all(self, topic: Topic, frame: bytes) -> None:
        """Calls only the send functions: with thousands of subscribers, touching each object is a cache miss."""
        size = len(frame)
        self.delivered += len(topic.live)
        for send in topic.senders():
            try:
                taken = send(frame)
            except OSError:  # full or closed: the transport will notice
                taken = 0
            except Exception as error:
                self._broken(topic.subscriber_of(send), error)
                continue
            if taken != size:
                self._write_rest(topic.subscriber_of(send), frame[taken:])

    def _write_rest(self, subscriber: Subscriber | None, rest: bytes) -> None:
        """The kernel's buffer is full: the transport buffers the rest, and pauses the subscriber."""
        if subscriber is not None:
            self._write(subscriber, [rest])

    def _write(self, subscriber: Subscriber, frames: list[bytes]) -> None:
        try:
            subscriber.sink.write_many(frames)
        except Exception as error:
            self._broken(subscriber, error)

    def _broken(self, subscriber: Subscriber | None, error: Exception) -> None:
        """One broken transport must not cost the others their event. None: it has already left."""
        log.warning("stream.sink.failed", error=repr(error))
        if subscriber is not None:
            self._drop(subscriber)

    # --- where a connection begins

    def heads(self, topics: Sequence[str]) -> Mapping[str, int]:
        """Per topic at least its latest fanned-out revision, and at most `head`."""
        return self._rings.heads(topics)

    async def locate(
        self, topics: Sequence[str], since: tuple[str | None, int] | None, limit: int
    ) -> int | ResyncReason | None:
        """See the port. The log is asked only if one of the topics has anything newer."""
        await self._learn(topics)
        if since is None:
            return None
        epoch, revision = since
        if epoch is not None and epoch != self.epoch:
            return ResyncReason.EPOCH_CHANGED
        if revision <= self.head and max(self.heads(topics).values()) <= revision:
            return revision  # an old cursor with no newer event has no gap
        reason = await self._reader.resync_reason(topics, revision, limit)
        return revision if reason is None else reason

    async def _learn(self, topics: Sequence[str]) -> None:
        await self.start()
        missing = self._rings.unknown(topics)
        known = await self._reader.heads(missing) if missing else None
        if known is not None:
            for name in missing:  # committed but not yet fanned out: our head bounds it as well (see the port)
                self._rings.topic(name, known.get(name, 0))

    @staticmethod
    def _behind(topics: Sequence[Topic], revision: int) -> list[Topic]:
        return [topic for topic in topics if topic.head > revision]

    def join(self, topics: Sequence[str], start: int | ResyncReason | None, sink: FrameSink) -> Subscriber:
        """See the port. The topics are those given to `locate`."""
        reason = start if isinstance(start, ResyncReason) else None
        at = start if isinstance(start, int) else self.head
        subscriber = Subscriber(self, [self._rings.topic(name) for name in topics], sink, at, reason)
        self._subscribers.add(subscriber)
        return subscriber

    # --- catching up

    def resumed(self, subscriber: Subscriber) -> None:
        """The sink has room."""
        self._full.discard(subscriber)
        if subscriber.resync is not None:
            reason, subscriber.resync = subscriber.resync, None
            self._resync(subscriber, reason)
        self._pump(subscriber)

    def _pump(self, subscriber: Subscriber) -> None:
        while not (subscriber.paused or subscriber.closed or subscriber.reading or subscriber.live):
            if subscriber.at > self.head:
                self._ahead.add(subscriber)
                return
            behind = self._behind(subscriber.topics, subscriber.at)
            if not behind:
                self._go_live(subscriber)
            elif any(subscriber.at < topic.floor for topic in behind):
                self._read_log(subscriber, [topic.name for topic in behind])
            else:
                frames, subscriber.at = ring_page(behind, subscriber.at, self.head)
                self._write_page(subscriber, frames)

    def _write_page(self, subscriber: Subscriber, frames: list[bytes]) -> None:
        if frames:
            subscriber.wrote = True
            self.delivered += len(frames)
            self._write(subscriber, frames)

    def _go_live(self, subscriber: Subscriber) -> None:
        for topic in subscriber.topics:
            topic.enter(subscriber, shared=len(subscriber.topics) > 1)
        subscriber.live = True
        subscriber.replaying = False
        self.live += 1

    def _read_log(self, subscriber: Subscriber, topics: list[str]) -> None:
        subscriber.reading = True
        task = asyncio.get_running_loop().create_task(self._page(subscriber, topics, self.head))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _page(self, subscriber: Subscriber, topics: list[str], head: int) -> None:
        """`head`: the head when `topics` were behind; all up to it is committed, later events may have other topics."""
        found = await self._reader.page(topics, subscriber.at)
        subscriber.reading = False
        if subscriber.closed:
            return
        if isinstance(found, ResyncReason):
            self._lost(subscriber, found)
        else:
            bound = min(found[-1].revision, head) if len(found) >= PAGE_FRAMES else head
            numbered = ((event.revision, self._encode(event)) for event in found)
            frames, subscriber.at = cut_page(numbered, bound)
            self._write_page(subscriber, frames)
        self._pump(subscriber)

    def _lost(self, subscriber: Subscriber, reason: ResyncReason) -> None:
        """The log can no longer serve the cursor. After a partial replay the connection is cut instead of resynced."""
        if subscriber.replaying and subscriber.wrote:
            self._drop(subscriber)
            return
        if not subscriber.replaying and reason is not ResyncReason.REPLAY_FAILED:
            reason = ResyncReason.SLOW_CONSUMER
        subscriber.at = self.head
        subscriber.replaying = False
        self._resync(subscriber, reason)

    def _resync(self, subscriber: Subscriber, reason: ResyncReason) -> None:
        self.resyncs[reason.value] += 1
        subscriber.sink.resync(reason)

    # --- slow readers

    def paused(self, subscriber: Subscriber) -> None:
        """The sink is full. A live subscriber's cursor becomes the head: all up to it is in the sink."""
        if subscriber.live:
            subscriber.at = self.head
            self._leave(subscriber)
            self.lagged += 1
        self._full.add(subscriber)

    def sweep(self) -> None:
        """Cut readers that took no byte for `stall_s`."""
        for subscriber in self._full.stalled():
            log.info("stream.subscriber.cut", cursor=subscriber.at, head=self.head)
            self._drop(subscriber)

    def _drop(self, subscriber: Subscriber) -> None:
        self.cut += 1
        subscriber.close()
        subscriber.sink.cut()

    def _leave(self, subscriber: Subscriber) -> None:
        for topic in subscriber.topics:
            topic.leave(subscriber, shared=len(subscriber.topics) > 1)
        subscriber.live = False
        self.live -= 1

    def left(self, subscriber: Subscriber) -> None:
        """Closed by its connection."""
        if subscriber.live:
            subscriber.at = self.head
            self._leave(subscriber)
        self._subscribers.discard(subscriber)
        self._full.discard(subscriber)
        self._ahead.discard(subscriber)
