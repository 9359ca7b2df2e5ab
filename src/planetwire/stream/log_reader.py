"""The hub's access to the log: few reads at once, each with a timeout, and every failure becomes a resync reason."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from planetwire.log import get_logger
from planetwire.model import LogEvent, ResyncReason
from planetwire.ports import EventLog
from planetwire.stream.topic import PAGE_FRAMES

log = get_logger()

LAG_EVENTS_MAX = 10_000  # a reader further behind than this, outside the rings, gets a snapshot instead
LOG_READS_MAX = 8  # reads of the log at once
LOG_TIMEOUT_S = 10.0  # of one read, including the wait for a slot


class LogReader:
    """Bounded reads of an EventLog. Whatever fails in the log, streams still open and continue live."""

    def __init__(self, event_log: EventLog) -> None:
        self._log = event_log
        self._turns = asyncio.Semaphore(LOG_READS_MAX)

    async def heads(self, topics: Sequence[str]) -> Mapping[str, int] | None:
        """Latest revision of each topic; None when the log does not answer."""
        try:
            async with asyncio.timeout(LOG_TIMEOUT_S), self._turns:
                return await self._log.heads(topics)
        except Exception as error:
            log.warning("stream.heads.failed", error=repr(error))
            return None

    async def resync_reason(self, topics: Sequence[str], after: int, limit: int) -> ResyncReason | None:
        """Why the events after the cursor cannot be served."""
        try:
            async with asyncio.timeout(LOG_TIMEOUT_S), self._turns:
                return await self._log.check(topics, after, limit)
        except Exception as error:
            log.warning("stream.replay.failed", error=repr(error))
            return ResyncReason.REPLAY_FAILED

    async def page(self, topics: Sequence[str], after: int) -> Sequence[LogEvent] | ResyncReason:
        """At most PAGE_FRAMES events after the cursor, or why not.

        Pruning is checked after the read: if none had happened by then, the page is complete.
        """
        try:
            async with asyncio.timeout(LOG_TIMEOUT_S), self._turns:
                events = await self._log.page(topics, after, PAGE_FRAMES)
        except Exception as error:
            if getattr(error, "code", None) == ResyncReason.REPLAY_WINDOW_EXCEEDED:  # noticed by the log itself
                return ResyncReason.REPLAY_WINDOW_EXCEEDED
            log.warning("stream.replay.failed", error=repr(error))
            return ResyncReason.REPLAY_FAILED
        reason = await self.resync_reason(topics, after, LAG_EVENTS_MAX)
        return events if reason is None else reason
