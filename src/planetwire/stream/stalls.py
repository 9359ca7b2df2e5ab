"""Readers whose transport is full, and which of them have stalled."""

from __future__ import annotations

from collections.abc import Callable

from planetwire.stream.subscriber import Subscriber


class Stalls:
    """Full sinks with their last sign of progress. `now_s` is a monotonic clock."""

    def __init__(self, now_s: Callable[[], float], stall_s: float) -> None:
        self._now_s = now_s
        self._stall_s = stall_s
        self._full: dict[Subscriber, tuple[int, float]] = {}  # bytes pending at the last check, time of progress

    def __len__(self) -> int:
        return len(self._full)

    def add(self, subscriber: Subscriber) -> None:
        """The subscriber's sink has just become full."""
        self._full[subscriber] = (subscriber.sink.pending_bytes(), self._now_s())

    def discard(self, subscriber: Subscriber) -> None:
        """The subscriber's sink has room again, or it has left."""
        self._full.pop(subscriber, None)

    def stalled(self) -> list[Subscriber]:
        """Those that took no byte for `stall_s`; call it regularly, since progress is measured here."""
        now_s = self._now_s()
        found: list[Subscriber] = []
        for subscriber, (before, since_s) in self._full.items():
            pending = subscriber.sink.pending_bytes()
            since_s = now_s if pending < before else since_s
            self._full[subscriber] = (pending, since_s)
            if now_s - since_s >= self._stall_s:
                found.append(subscriber)
        return found
