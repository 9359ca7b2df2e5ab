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

        Events reach whoever listens in revision order before this returns.
        """

    async def history(self, city: str, since: datetime) -> Sequence[tuple[str, str, datetime, float]]:
        """(series_key, source, obs_time, °C) rising by time."""

    async def latest(self, cities: Iterable[str] | None = None) -> Mapping[str, Sequence[Json]]:
        """Newest stored reading of every series of each city that has any; all cities when None.

        Keys: series_key, source, obs_time (aware UTC), temp, max_so_far, station_code, station_label, revision.
        """

    async def highs(self, since: Mapping[str, datetime]) -> Mapping[str, tuple[float, datetime]]:
        """Highest headline °C of each city from its time on, and when it was first reached; absent without one."""

    async def prune(self) -> int:
        """Drop events past the window and history past 14 days; returns how many events went."""

    async def aclose(self) -> None:
        """Finish what was accepted, then close."""


class EventLog(Protocol):
    """Read side of a durable log. Revisions rise in commit order within an epoch and are never reused."""

    epoch: str

    async def head(self) -> int:
        """The latest revision; never decreases, also after everything expired."""

    async def heads(self, topics: Iterable[str]) -> Mapping[str, int]:
        """Latest revision of each topic, 0 when it never had one."""

    async def check(self, topics: Sequence[str], after: int, limit: int) -> ResyncReason | None:
        """Why events after the cursor cannot all be served: pruned, ahead of the head, more than `limit`."""

    async def page(self, topics: Sequence[str], after: int, limit: int) -> Sequence[LogEvent]:
        """Events of these topics above `after`, oldest first, at most `limit`."""


class FrameSink(Protocol):
    """The outgoing side of one connection, as the hub sees it. Called on the event loop; nothing here waits."""

    def write(self, frame: bytes, /) -> None:
        """Hand over one frame. May call `Subscription.pause` from within, when the buffer is full."""

    def write_many(self, frames: Sequence[bytes], /) -> None:
        """Hand over several at once, all of them taken; may then call `Subscription.pause`."""

    def resync(self, reason: ResyncReason, /) -> None:
        """Tell the client that its cursor cannot be served; the stream goes on live."""

    def pending_bytes(self) -> int:
        """Bytes the transport still holds; a reader that makes progress lets this fall."""

    def cut(self) -> None:
        """Drop the connection and what it still holds, at once. Idempotent."""


class Subscription(Protocol):
    """One connection's place in a live stream: live, or catching up from its cursor."""

    @property
    def cursor(self) -> int:
        """Every event of this subscription up to this revision was handed to the sink."""

    def resume(self) -> None:
        """The sink has room: replay, then live. Also the start; nothing is delivered before it."""

    def pause(self) -> None:
        """The sink is full: nothing more until `resume`; what comes meanwhile is read later, from the cursor."""

    def close(self) -> None:
        """Leave. Idempotent."""


class LiveStream(Protocol):
    """One log fanned out to the connections of this process. No gap and no double between replay and live."""

    @property
    def epoch(self) -> str:
        """The log's life."""

    @property
    def head(self) -> int:
        """The latest revision that was fanned out."""

    def heads(self, topics: Sequence[str]) -> Mapping[str, int]:
        """Per topic, a revision that is at least its latest fanned-out one and at most `head`."""

    async def locate(
        self, topics: Sequence[str], since: tuple[str | None, int] | None, limit: int
    ) -> int | ResyncReason | None:
        """Where to begin: the revision to replay after, why that is impossible, or None for live only.

        `limit` bounds the replay in events. Raises BackendError only when the log was never reachable.
        """

    def join(self, topics: Sequence[str], start: int | ResyncReason | None, sink: FrameSink) -> Subscription:
        """Register at the start; delivery begins with `resume`, and what is published in between is not missed."""
