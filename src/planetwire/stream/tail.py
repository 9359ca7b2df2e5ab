"""Follows a log from its head and publishes every event once, in revision order.

A wake-up only saves waiting: without any, the log is polled each second. If events were pruned before they were
published, the process has to restart, and its clients, on reconnecting, are told to fetch a snapshot.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from planetwire.errors import BackendError
from planetwire.log import get_logger
from planetwire.model import LogEvent, ResyncReason
from planetwire.ports import Clock, EventLog, Wakeup
from planetwire.runtime.backoff import Backoff
from planetwire.runtime.forever import run_forever

log = get_logger()

POLL_S = 1.0
PAGE_EVENTS = 500
RETRY_S = 0.25  # wait after the log could not be read …
RETRY_MAX_S = 5.0  # … doubling up to this


class Tail:
    """One per web process. `position` is the last revision published, None until the head is known."""

    def __init__(
        self,
        event_log: EventLog,
        topics: Sequence[str],
        wakeup: Wakeup,
        publish: Callable[[Sequence[LogEvent]], None],
        clock: Clock,
        *,
        before: Callable[[Sequence[LogEvent]], Awaitable[None]] | None = None,
    ) -> None:
        """`before` is awaited with each page before `publish`, to drop cached snapshots that the events made stale."""
        self.position: int | None = None
        self._log = event_log
        self._topics = topics
        self._wakeup = wakeup
        self._publish = publish
        self._clock = clock
        self._before = before

    async def run(self) -> None:
        """Until cancelled. A failed read is retried, and skips nothing.

        Raises BackendError `replay_window_exceeded` when unpublished events have already been pruned.
        """
        backoff = Backoff(RETRY_S, RETRY_MAX_S, self._clock)
        await run_forever(self.step, lambda _: self._wakeup.wait(POLL_S), self._failed, backoff)

    def _failed(self, error: BackendError, _: float) -> None:
        if error.code == ResyncReason.REPLAY_WINDOW_EXCEEDED:
            raise error
        log.warning("stream.tail.failed", error=error.message, position=self.position)

    async def step(self) -> None:
        """Publish new events; the first call only reads the head. Raises BackendError."""
        if self.position is None:
            self.position = await self._log.head()
            return
        while True:
            events = await self._log.page(self._topics, self.position, PAGE_EVENTS)
            if events:
                if self._before is not None:
                    await self._before(events)
                self._publish(events)
                self.position = events[-1].revision
            if len(events) < PAGE_EVENTS:
                return
