"""Observations, their log, and live delivery."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from planetwire.model import Appended, Json, LogEvent, ObservationPatch, ResyncReason


class ObservationStore(Protocol):
    """History and patch events, written in one transaction; an acknowledged revision survives a power cut."""

    async def append(self, patches: Sequence[ObservationPatch]) -> Sequence[Appended]:
        """In order, all or none. Raises BackendError (LogWriteFailed when the log refused); then nothing was stored.

        Listeners get the events in revision order before this returns.
        """

    async def history(self, city: str, since: datetime) -> Sequence[tuple[str, str, datetime, float]]:
        """(series_key, source, obs_time, °C) in order of time."""

    async def latest(self, cities: Iterable[str] | None = None) -> Mapping[str, Sequence[Json]]:
        """Newest stored reading of every series of each city that has any; all cities when None.

        Keys: series_key, source, obs_time (aware UTC), temp, max_so_far, station_code, station_label, revision.
        """

    async def highs(self, since: Mapping[str, datetime]) -> Mapping[str, tuple[float, datetime]]:
        """The highest headline °C of each city since its time, and when it was first reached; absent without one."""

    async def prune(self) -> int:
        """Delete events past the window and history past 14 days; returns the number of events."""

    async def aclose(self) -> None:
        """Commit what was accepted, then close."""


class EventLog(Protocol):
    """Read side of a durable log. Revisions rise in commit order within an epoch and are never reused."""

    epoch: str

    async def head(self) -> int:
        """The latest revision; never decreases, even after everything expired."""

    async def heads(self, topics: Iterable[str]) -> Mapping[str, int]:
        """Latest revision of each topic, 0 if it never had one."""

    async def check(self, topics: Sequence[str], after: int, limit: int) -> ResyncReason | None:
        """Why events after the cursor cannot all be served: pruned, ahead of the head, more than `limit`."""

    async def page(self, topics: Sequence[str], after: int, limit: int) -> Sequence[LogEvent]:
        """Events of these topics above `after`, oldest first, at most `limit`."""


class FrameSink(Protocol):
    """The outgoing side of one connection, for the hub. Called on the event loop; nothing here waits."""

    def write(self, frame: bytes, /) -> None:
        """Write one frame. May call `Subscription.pause` during the call, when the buffer is full."""

    def write_many(self, frames: Sequence[bytes], /) -> None:
        """Write several at once; all are accepted; may then call `Subscription.pause`."""

    def resync(self, reason: ResyncReason, /) -> None:
        """Tell the client that its cursor cannot be served; the stream continues live."""

    def pending_bytes(self) -> int:
        """Bytes in the transport's buffer; falls while the reader makes progress."""

    def cut(self) -> None:
        """Drop the connection and its buffer at once. Idempotent."""


class Subscription(Protocol):
    """One connection's place in a live stream: live, or catching up from its cursor."""

    @property
    def cursor(self) -> int:
        """Every event of this subscription up to this revision was written to the sink."""

    def resume(self) -> None:
        """The sink has room: replay, then live. Also the start; nothing is delivered before it."""

    def pause(self) -> None:
        """The sink is full: nothing more until `resume`; later events are read then, from the cursor."""

    def close(self) -> None:
        """Leave. Idempotent."""


class LiveStream(Protocol):
    """One log fanned out to the connections of this process. No gap and no duplicate between replay and live."""

    @property
    def epoch(self) -> str:
        """The id of the log."""

    @property
    def head(self) -> int:
        """The latest revision that was fanned out."""

    def heads(self, topics: Sequence[str]) -> Mapping[str, int]:
        """Per topic, a revision that is at least its latest fanned-out one and at most `head`."""

    async def locate(
        self, topics: Sequence[str], since: tuple[str | None, int] | None, limit: int
    ) -> int | ResyncReason | None:
        """The start: the revision to replay after, why that is impossible, or None for live only.

        `limit` bounds the replay in events. Raises BackendError only when the log was never reachable.
        """

    def join(self, topics: Sequence[str], start: int | ResyncReason | None, sink: FrameSink) -> Subscription:
        """Register at the start; delivery begins with `resume`, and events published in between are not missed."""
