"""All topics of one log with their ring buffers, and how far it was fanned out.

Invariant: once begun, the rings together hold every event above `base` that their limits have not evicted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from planetwire.model import LogEvent
from planetwire.stream.topic import RING_BYTES, RING_FRAMES, Topic


def own_topic(event: LogEvent) -> str:
    """The event's own topic."""
    return event.topic


class Rings:
    """Topics by name. `head` is the latest revision kept; revisions rise strictly."""

    def __init__(
        self,
        encode: Callable[[LogEvent], bytes],
        topic_of: Callable[[LogEvent], str],
        *,
        max_frames: int = RING_FRAMES,
        max_bytes: int = RING_BYTES,
    ) -> None:
        self.head = 0
        self._base: int | None = None
        self._encode = encode
        self._topic_of = topic_of
        self._max_frames = max_frames
        self._max_bytes = max_bytes
        self._topics: dict[str, Topic] = {}

    @property
    def begun(self) -> bool:
        """Whether the log's head at the start is known."""
        return self._base is not None

    def begin(self, head: int) -> None:
        """Everything above `head` will be kept. Only the first call has an effect."""
        if self._base is None:
            self._base = self.head = head

    def keep(self, event: LogEvent) -> tuple[Topic, bytes]:
        """Encode the event, once, and add it to its topic's ring."""
        frame = self._encode(event)
        topic = self.topic(self._topic_of(event))
        topic.add(event.revision, frame)
        self.head = event.revision
        return topic, frame

    def unknown(self, topics: Sequence[str]) -> list[str]:
        """The names without a topic yet."""
        return [name for name in topics if name not in self._topics]

    def topic(self, name: str, head: int | None = None) -> Topic:
        """The topic; created if there is none, with a head that is never above our own."""
        topic = self._topics.get(name)
        if topic is None:
            known = self.head if head is None else min(head, self.head)
            topic = Topic(name, known, self._base or 0, max_frames=self._max_frames, max_bytes=self._max_bytes)
            self._topics[name] = topic
        return topic

    def heads(self, topics: Sequence[str]) -> Mapping[str, int]:
        """Per topic at least its latest kept revision, and at most `head`."""
        return {name: self._topics[name].head if name in self._topics else self.head for name in topics}
