"""Limits of connections before their request is handled: time, bytes and descriptors. One per web process.

All deadlines of one kind are equally long, so each kind is a queue in order of its deadlines: entering and leaving are
dictionary operations, and one sweep per process checks the heads of the queues. Live streams are in none.
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
LINGER_S = 2.0  # for a refused client to read the reason before its connection is closed
LOG_EVERY_S = 10.0  # how often closed connections are logged
RECOUNT_S = 1.0  # how often descriptors are counted, once three quarters of them are used
DESCRIPTORS = "/dev/fd"
BODIES: Mapping[bytes, int] = {PUSH_PATH.encode(): PUSH_MAX_BYTES}  # routes with another limit


class Wait(IntEnum):
    """What a connection must do before its deadline."""

    HEAD = 0  # send its headers, counted from the connection or the first byte of a further request
    BODY = 1  # send its body, counted from the end of its headers
    IDLE = 2  # send a further request
    LINGER = 3  # close, after a refusal


class Waiting(Protocol):
    """A connection in the queues."""

    waits: Wait | None
    """Kept by the front."""

    def expire(self, wait: Wait, /) -> None:
        """Its deadline has passed; it is in no queue any more."""

    def drop(self) -> None:
        """Its descriptor is needed; it is in no queue any more. `Front.gone` is called afterwards."""


class Front:
    """Deadlines, bounds, and which connection is closed when descriptors run out."""

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
        self._others = 0  # estimate of descriptors that are not connections
        self._count_at = 0.0
        self._logged = (0, 0.0)

    def body_max(self, path: bytes) -> int:
        """Bytes of a body that this path takes."""
        return BODIES.get(path, self.settings.body_bytes)

    # --- time

    def wait(self, who: Waiting, wait: Wait | None) -> None:
        """Start this deadline in place of the present one; None: no deadline."""
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
        """Expire connections past their deadline; returns how many."""
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
        self._log_shed(now)
        return count

    def _log_shed(self, now: float) -> None:
        logged, at = self._logged
        if self.shed > logged and now - at >= LOG_EVERY_S:
            log.warning("web.connections.shed", connections=self.shed - logged)
            self._logged = (self.shed, now)

    # --- descriptors

    def opened(self, who: Waiting, descriptor: int) -> bool:
        """Register a connection; False: for health checks only, since only the reserve is left and none can be closed.

        The kernel assigns the lowest free number: all below this one are in use, which gives the number of other
        descriptors.
        """
        self.wait(who, Wait.HEAD)
        self._open += 1
        self._others = max(self._others, descriptor + 1 - self._open)
        over = 0 if self._reserve_from is None else self._others + self._open - self._reserve_from
        return self._make_room(over, who)

    def gone(self, *, dropped: bool = False) -> None:
        """Unregister a connection whose descriptor is closed next."""
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
        """The oldest without complete headers: refused ones first, then those without a request, then idle ones."""
        for wait in (Wait.LINGER, Wait.HEAD, Wait.IDLE):
            first = next(iter(self._queues[wait]), None)
            if first is not None and first is not newest:
                return first
        return None

    def _recount(self, now: float) -> None:
        """Count again: other descriptors change unseen, and a connection that cannot be accepted triggers no closing.
        Half of the reserve is left to connections admitted into it.
        """
        if self._reserve_from is None or (self._others + self._open) * 4 < self._reserve_from * 3:
            return
        if now - self._count_at >= RECOUNT_S:
            self._count_at = now
            self._others = max(0, len(os.listdir(DESCRIPTORS)) - 1 - self._open)
            used = self._others + self._open
            self._make_room(used - self._reserve_from - self.settings.reserved_descriptors // 2)
