"""Heartbeats renew this worker's leases; rescue takes back expired ones of others. Both run in a thread of their own.

A worker beats from a thread with its own event loop and its own connection. A parser that blocks the worker's loop
for longer than a lease then costs no lease, and a pool that is full of batches delays no heartbeat.

The thread is supervised too: a part of it that fails is logged and restarted, and a worker that has sent no heartbeat
for most of a lease stops while it can still release its jobs.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias

from planetwire.errors import BackendError, PlanetwireError
from planetwire.jobs.pulse import Pulse
from planetwire.log import get_logger
from planetwire.model import JobStatus, Lease
from planetwire.ports import Clock, JobQueue

log = get_logger()

OpenQueue: TypeAlias = Callable[[], AbstractAsyncContextManager[JobQueue]]
OnStates: TypeAlias = Callable[[Sequence[Lease], Mapping[int, JobStatus]], object]

RESCUE_S = 2.0  # lease 30 s + rescue + first back-off 1 s + poll 1 s stays below lease + 5 s
STALL_S = 1.0  # a worker's event loop that is blocked for longer is logged
REOPEN_S = 1.0
END_S = 3.0
BEAT = "heartbeat"


class Heart:
    """Renews the leases that `held` names and calls `on_states` with their states; takes back what others lost."""

    def __init__(
        self,
        queue: JobQueue,
        held: Callable[[], Sequence[Lease]],
        on_states: OnStates,
        rescued: Callable[[], object],
        heartbeat_s: float,
        clock: Clock,
        pulse: Pulse,
    ) -> None:
        self._pulse = pulse
        self._queue = queue
        self._held = held
        self._on_states = on_states
        self._rescued = rescued
        self._heartbeat_s = heartbeat_s
        self._clock = clock

    async def run(self) -> None:
        """Until cancelled."""
        await asyncio.gather(
            self._forever(BEAT, self._heartbeat_s, self._beat), self._forever("rescue", RESCUE_S, self._rescue)
        )

    async def _beat(self) -> None:
        leases = self._held()
        if leases:
            self._on_states(leases, await self._queue.heartbeat(leases))

    async def _rescue(self) -> None:
        if await self._queue.rescue():
            self._rescued()

    async def _forever(self, what: str, period_s: float, step: Callable[[], Awaitable[None]]) -> None:
        """Each `period_s` ± 20 %; a failing step is logged and does not end the loop."""
        while True:
            await self._clock.sleep(period_s * random.uniform(0.8, 1.2))
            try:
                await step()
                if what == BEAT:
                    self._pulse.beat()
            except BackendError as error:
                log.warning("data_job.upkeep.failed", what=what, error=error.message)
            except Exception:
                log.exception("data_job.upkeep.crashed", what=what)


class HeartThread:
    """Runs a heart in a thread, with a queue opened there, and detects a blocked worker loop."""

    def __init__(self, open_queue: OpenQueue, make: Callable[[JobQueue], Heart], pulse: Pulse) -> None:
        self._pulse = pulse
        self._open_queue = open_queue
        self._make = make
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._worker_loop = asyncio.get_running_loop()
        self._answered = time.monotonic()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="job-heart", daemon=True)

    async def start(self) -> None:
        """Returns when the thread runs; the first heartbeat shows whether the database answers."""
        self._thread.start()
        await asyncio.to_thread(self._ready.wait, END_S)

    async def stop(self) -> None:
        """Ends the thread; idempotent."""
        if self._loop is not None and self._stop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            await asyncio.to_thread(self._thread.join, END_S)

    def _run(self) -> None:
        try:
            asyncio.run(self._live())
        except BaseException:  # no caller joins the thread; the worker notices the missing heartbeats
            log.exception("data_job.heart.ended")

    async def _live(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._ready.set()
        parts = [
            asyncio.create_task(self._restart_forever("beat", self._beat)),
            asyncio.create_task(self._restart_forever("watch", self._watch)),
        ]
        await self._stop.wait()
        for part in parts:
            part.cancel()
        await asyncio.wait(parts, timeout=END_S)

    async def _restart_forever(self, part: str, run: Callable[[], Awaitable[None]]) -> None:
        """Restart it whatever ended it: an unreachable database, or a bug."""
        while True:
            try:
                await run()
                log.error("data_job.heart.failed", part=part, error="it ended by itself")
            except PlanetwireError as error:
                log.warning("data_job.upkeep.failed", what="heart", error=error.message)
            except Exception:
                log.exception("data_job.heart.failed", part=part)
            await asyncio.sleep(REOPEN_S)

    async def _beat(self) -> None:
        async with self._open_queue() as queue:
            await self._make(queue).run()

    async def _watch(self) -> None:
        """Log a blocked worker loop: a handler blocks it, and only the heartbeats still run."""
        asked = time.monotonic()
        while True:
            self._worker_loop.call_soon_threadsafe(self._answer)
            await asyncio.sleep(STALL_S)
            if self._answered >= asked:
                stalled_s = self._answered - asked
                if stalled_s >= STALL_S:
                    log.warning("data_job.loop.stalled", seconds=round(stalled_s, 1))
                asked = time.monotonic()

    def _answer(self) -> None:
        self._answered = time.monotonic()
