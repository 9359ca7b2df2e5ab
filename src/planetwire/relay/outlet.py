"""The relay's second output: follows the log of layer events and sends each to a bus, for other services.

At least once: a layer's cursor moves after the bus accepted the event, so a crash in between repeats it with the same
id. Order is kept within a layer; a refused event blocks only its own layer. Nothing is skipped silently: for pruned
events a resync is sent.
"""

from __future__ import annotations

import asyncio
import random
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import orjson

from planetwire.errors import BackendError, BusError, LeaseLost
from planetwire.log import get_logger
from planetwire.model import BusMessage, Cursor, LogEvent, ResyncReason
from planetwire.ports import Clock, DataChangeBus, EventLog, Wakeup
from planetwire.runtime.backoff import Backoff, doubled_s
from planetwire.runtime.failpoint import failpoint
from planetwire.runtime.forever import run_forever

log = get_logger()

POLL_S = 1.0
LAYERS_AT_ONCE = 8
PAGE_EVENTS = 50
TURN_SHARE = 0.15  # of the term: no send starts later in a turn, so that the term is renewed in time
ATTEMPT_SHARE = 0.4  # of the term: the timeout of one event
RENEW_SHARE = 0.3
BACKOFF_S = 1.0
BACKOFF_MAX_S = 60.0
PAUSED_S = 300.0  # retry interval of an event that was refused repeatedly
RETRY_AFTER_MAX_S = 600.0  # a longer Retry-After is cut to this
REFUSALS_MAX = 5
RETRY_S = 0.5  # wait after the database failed …
RETRY_MAX_S = 5.0  # … doubling up to this
RESIGN_TIMEOUT_S = 2.0
RESYNC = "earth.resync_required"


@dataclass(slots=True)
class Place:
    """An outlet's position in a layer, and the log's head. `wait_s`: until the next attempt."""

    layer: str
    sent: Cursor
    head: Cursor
    pruned_through: int
    attempts: int
    wait_s: float
    paused: bool


class OutletBook(Protocol):
    """An outlet's durable state: one cursor per layer, and who may send. Fenced by the sender's term."""

    async def lead(self, holder: str, ttl_s: float) -> int | None:
        """Take or renew the right to send; the term, or None while another holds it."""

    async def resign(self, holder: str, term: int) -> None:
        """Give up the right to send, if still held."""

    async def places(self, layers: Sequence[str]) -> Sequence[Place]:
        """The outlet's position in each layer that has events."""

    async def advance(self, term: int, layer: str, cursor: Cursor) -> None:
        """Record that the receiver has everything up to the cursor. Raises LeaseLost."""

    async def defer(self, term: int, place: Place, error: str, *, wait_s: float, paused: bool) -> None:
        """Record a failure and when to retry. Raises LeaseLost."""


class Outlet:
    """Run one in each process that may send; the one that holds the term sends."""

    def __init__(
        self,
        bus: DataChangeBus,
        book: OutletBook,
        event_log: EventLog,
        layers: Sequence[str],
        wakeup: Wakeup,
        clock: Clock,
        *,
        ttl_s: float,
    ) -> None:
        self.term: int | None = None
        self.sent = self.failed = 0
        self.behind: dict[str, int] = {}
        self.paused: set[str] = set()
        self._bus = bus
        self._book = book
        self._log = event_log
        self._layers = layers
        self._wakeup = wakeup
        self._clock = clock
        self._ttl_s = ttl_s
        self._holder = secrets.token_hex(8)
        self._renew_at = float("-inf")
        self._room = asyncio.Semaphore(LAYERS_AT_ONCE)

    async def run(self) -> None:
        """Send or stand by until cancelled; survives every failure of database and bus."""
        backoff = Backoff(RETRY_S, RETRY_MAX_S, self._clock)
        try:
            await run_forever(self._turn_or_stand_down, self._wakeup.wait, self._failed, backoff)
        finally:
            await self._resign()
            await self._bus.aclose()

    async def _turn_or_stand_down(self) -> float:
        try:
            return await self.turn()
        except LeaseLost:
            self._stand_down()
            return 0.0

    def _failed(self, error: BackendError, retry_s: float) -> None:
        log.warning("earth.outlet.failed", error=error.message, retry_s=retry_s)
        self._stand_down()

    async def turn(self) -> float:
        """Send what is due; returns how long to wait for a wake-up. Raises BackendError, LeaseLost."""
        now = self._clock.monotonic()
        if now >= self._renew_at:
            self.term = await self._book.lead(self._holder, self._ttl_s)
            self._renew_at = now + self._ttl_s * RENEW_SHARE
        if self.term is None:
            return max(0.0, self._renew_at - now)
        places = await self._book.places(list(self._layers))
        behind = [place for place in places if place.sent != place.head]
        self.behind = {place.layer: place.head.revision - place.sent.revision for place in behind}
        self.paused = {place.layer for place in places if place.paused}
        until = now + self._ttl_s * TURN_SHARE
        moved = await asyncio.gather(
            *(self._layer(self.term, place, until) for place in behind if place.wait_s <= 0), return_exceptions=True
        )
        for outcome in moved:
            if isinstance(outcome, BaseException):
                raise outcome
        if any(moved):
            return 0.0
        waits = [place.wait_s for place in behind if place.wait_s > 0]
        return max(0.0, min([POLL_S, self._renew_at - self._clock.monotonic(), *waits]))

    async def _layer(self, term: int, place: Place, until: float) -> bool:
        """Send a layer's next events in order; returns whether more may be due at once."""
        async with self._room:
            try:
                return await self._send_on(term, place, until)
            except BusError as error:
                self.failed += 1
                await self._defer(term, place, error)
                return False

    async def _send_on(self, term: int, place: Place, until: float) -> bool:
        reason = _unservable(place)
        if reason is not None:
            through = _resync_through(place)
            await self._send(term, place, through, _resync(place, through, reason))
            return True
        events = await self._log.page([f"layer:{place.layer}"], place.sent.revision, PAGE_EVENTS)
        last = place.sent.revision
        for event in events:
            if event.prev_revision > last:
                return True  # pruned since the positions were read; the next turn sends a resync
            if self._clock.monotonic() >= until:
                return True
            cursor = Cursor(self._log.epoch, event.revision)
            await self._send(term, place, cursor, _message(place.layer, cursor, event))
            last = event.revision
        return bool(events)

    async def _send(self, term: int, place: Place, cursor: Cursor, message: BusMessage) -> None:
        try:
            async with asyncio.timeout(self._ttl_s * ATTEMPT_SHARE):
                await self._bus.send(message)
        except TimeoutError as error:
            raise BusError(f"no answer within {self._ttl_s * ATTEMPT_SHARE:g} s") from error
        failpoint("outlet.after_send")
        await self._book.advance(term, place.layer, cursor)
        self.sent += 1
        place.sent, place.attempts = cursor, 0

    async def _defer(self, term: int, place: Place, error: BusError) -> None:
        attempts = place.attempts + 1
        paused = error.refused and attempts >= REFUSALS_MAX
        wait_s = PAUSED_S if paused else doubled_s(place.attempts + 1, BACKOFF_S, BACKOFF_MAX_S)
        wait_s = max(wait_s * random.uniform(0.75, 1.25), min(error.retry_after_s or 0.0, RETRY_AFTER_MAX_S))
        await self._book.defer(term, place, error.message, wait_s=wait_s, paused=paused)
        if paused and not place.paused:
            log.error("earth.outlet.paused", layer=place.layer, after=str(place.sent), error=error.message)
        else:
            log.warning("earth.outlet.deferred", layer=place.layer, error=error.message, retry_s=round(wait_s, 1))

    def _stand_down(self) -> None:
        self.term, self._renew_at = None, float("-inf")

    async def _resign(self) -> None:
        term, self.term = self.term, None
        if term is not None:
            with suppress(BackendError, TimeoutError):
                async with asyncio.timeout(RESIGN_TIMEOUT_S):
                    await self._book.resign(self._holder, term)


def _unservable(place: Place) -> ResyncReason | None:
    """Why the log no longer has all events after the cursor."""
    if place.sent.epoch != place.head.epoch:
        return ResyncReason.EPOCH_CHANGED
    if place.sent.revision > place.head.revision:
        return ResyncReason.REVISION_AHEAD
    return ResyncReason.REPLAY_WINDOW_EXCEEDED if place.pruned_through > place.sent.revision else None


def _resync_through(place: Place) -> Cursor:
    """The cursor after a resync: all that the log still has follows."""
    same_log = place.sent.epoch == place.head.epoch and place.sent.revision <= place.head.revision
    return Cursor(place.head.epoch, place.pruned_through) if same_log else place.head


def _message(layer: str, cursor: Cursor, event: LogEvent) -> BusMessage:
    return _envelope(str(cursor), layer, cursor, event.prev_revision, orjson.loads(event.body)["event"], event.body)


def _resync(place: Place, through: Cursor, reason: ResyncReason) -> BusMessage:
    data = {"layers": [place.layer], "reason": str(reason), "after": str(place.sent), "latest": str(place.head)}
    return _envelope(f"{through}-resync", place.layer, through, place.sent.revision, RESYNC, orjson.dumps(data))


def _envelope(id_: str, layer: str, cursor: Cursor, prev_revision: int, kind: str, data: bytes) -> BusMessage:
    """The event's bytes are sent as they are in the log."""
    head = {
        "id": id_,
        "type": kind,
        "key": layer,
        "epoch": cursor.epoch,
        "revision": cursor.revision,
        "prev_revision": prev_revision,
    }
    body = b"".join((orjson.dumps(head)[:-1], b',"data":', data, b"}"))
    return BusMessage(id_, layer, kind, body)
