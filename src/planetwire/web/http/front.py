"""What a connection may take before anybody works for it: time, bytes and descriptors. One for each web process.

Every deadline of one kind is equally long, so each kind is a queue in the order of its deadlines: entering and leaving
cost a step of a dictionary, one sweep of the whole process looks at the heads of the queues, a live stream is in none.
"""

from __future__ import annotations

import asyncio
import os
import resource
import time
from collections import Counter
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Protocol

from planetwire.log import get_logger
from planetwire.model.wire import PUSH_MAX_BYTES, PUSH_PATH
from planetwire.settings import RequestSettings
from planetwire.web.http.hosts import AllowedHosts

log = get_logger()

SWEEP_S = 0.5
LINGER_S = 2.0  # for a refused client to read why, before its connection goes
SAY_EVERY_S = 10.0  # how often closed connections are logged
RECOUNT_S = 1.0  # how often descriptors are counted, once three quarters of them are used
DESCRIPTORS = "/dev/fd"
BODIES: Mapping[bytes, int] = {PUSH_PATH.encode(): PUSH_MAX_BYTES}  # routes that say otherwise


class Wait(IntEnum):
    """What a connection is waited for."""

    HEAD = 0  # the end of its headers, from the connection or from the first byte of a further request
    BODY = 1  # the end of its body, from the end of its headers
    IDLE = 2  # a further request
    LINGER = 3  # its end, after a refusal


class Waiting(Protocol):
    """A connection as it stands in the queues."""

    waits: Wait | None
    """Kept by the front."""

    def expire(self, wait: Wait, /) -> None:
        """Its time is over; it stands in no queue any more."""

    def drop(self) -> None:
        """Its descriptor is needed; it stands in no queue any more. `Front.gone` is told afterwards."""


class Front:
    """Deadlines, bounds, and who has to go when descriptors run out."""

    def __init__(
        self,
        settings: RequestSettings | None = None,
        hosts: AllowedHosts | None = None,
        *,
        now: Callable[[], float] = time.monotonic,
        descriptors: int | None = None,
    ) -> None:
        """`descriptors`: how many there may be; None: this process's soft limit."""
        self.settings = settings or RequestSettings()
        self.hosts = hosts or AllowedHosts()
        self.refused: Counter[str] = Counter()
        self.shed = 0
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0] if descriptors is None else descriptors
        self._reserve_from = limit - self.settings.reserved_descriptors if limit > 0 else None
        self._queues: tuple[dict[Waiting, float], ...] = tuple({} for _ in Wait)
        self._after_s = (self.settings.header_s, self.settings.body_s, self.settings.idle_s, LINGER_S)
        self._now = now
        self._timer: asyncio.TimerHandle | None = None
        self._open = self._closing = 0
        self._others = 0  # descriptors that are no connections, as far as known
        self._count_at = 0.0
        self._said = (0, 0.0)

    def body_max(self, path: bytes) -> int:
        """Bytes of a body that this path takes."""
        return BODIES.get(path, self.settings.body_bytes)

    # --- time

    def wait(self, who: Waiting, wait: Wait | None) -> None:
        """From now on it is waited for this; None: for nothing."""
        if who.waits is not None:
            self._queues[who.waits].pop(who, None)
        who.waits = wait
        if wait is not None:
            self._queues[wait][who] = self._now() + self._after_s[wait]
            if self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(SWEEP_S, self._tick)

    def _tick(self) -> None:
        self.sweep()
        waiting = any(self._queues)
        self._timer = asyncio.get_running_loop().call_later(SWEEP_S, self._tick) if waiting else None

    def sweep(self) -> int:
        """Expire whose time is over; how many there were."""
        now, count = self._now(), 0
        for wait in Wait:
            queue = self._queues[wait]
            over = []
            for who, deadline in queue.items():
                if deadline > now:
                    break
                over.append(who)
            for who in over:
                self.wait(who, None)
                who.expire(wait)
            count += len(over)
        self._recount(now)
        self._say(now)
        return count

    def _say(self, now: float) -> None:
        said, at = self._said
        if self.shed > said and now - at >= SAY_EVERY_S:
            log.warning("web.connections.shed", connections=self.shed - said)
            self._said = (self.shed, now)

    # --- descriptors

    def opened(self, who: Waiting, descriptor: int) -> bool:
        """Take a connection in; False: only for health, since nothing that could be closed stands before the reserve.

        The kernel gives out the lowest free number: with this one all below it are taken, which says how many others
        there are.
        """
        self.wait(who, Wait.HEAD)
        self._open += 1
        self._others = max(self._others, descriptor + 1 - self._open)
        over = 0 if self._reserve_from is None else self._others + self._open - self._reserve_from
        return self._make_room(over, who)

    def gone(self, *, dropped: bool = False) -> None:
        """One that was opened; its descriptor is given back next."""
        self._open -= 1
        self._closing -= dropped

    def _make_room(self, over: int, newest: Waiting | None = None) -> bool:
        while self._closing < over:
            oldest = self._oldest(newest)
            if oldest is None:
                return False
            self._closing += 1
            self.shed += 1
            self.wait(oldest, None)
            oldest.drop()
        return True

    def _oldest(self, newest: Waiting | None) -> Waiting | None:
        """Without complete headers: who was refused, who has not said what it wants, who may want something more."""
        for wait in (Wait.LINGER, Wait.HEAD, Wait.IDLE):
            first = next(iter(self._queues[wait]), None)
            if first is not None and first is not newest:
                return first
        return None

    def _recount(self, now: float) -> None:
        """Others come and go unseen; and who cannot be accepted at all makes no room. Half of the reserve is left to
        those who were let into it.
        """
        if self._reserve_from is None or (self._others + self._open) * 4 < self._reserve_from * 3:
            return
        if now - self._count_at >= RECOUNT_S:
            self._count_at = now
            self._others = max(0, len(os.listdir(DESCRIPTORS)) - 1 - self._open)
            used = self._others + self._open
            self._make_room(used - self._reserve_from - self.settings.reserved_descriptors // 2)
