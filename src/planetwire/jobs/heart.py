"""What keeps leases alive and takes back those of others: heartbeats and rescue, on a clock of their own.

A worker beats from a thread with its own event loop and its own connection. A parser that blocks the worker's loop
for longer than a lease then costs no lease, and a pool that is full of batches delays no heartbeat.

Who keeps others alive is watched too: a part of the thread that fails is logged and started again, and a worker whose
heart has stood still for most of a lease ends while its jobs are still its own to give back.
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
STALL_S = 1.0  # a worker's loop that does not answer for so long is worth a line in the log
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
                    self._pulse.went_on()
            except BackendError as error:
                log.warning("data_job.upkeep.failed", what=what, error=error.message)
            except Exception:
                log.exception("data_job.upkeep.crashed", what=what)


class HeartThread:
    """Runs a heart in a thread, with a queue opened there, and watches whether the worker's loop still turns."""

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
        """Returns when the thread runs; whether the database answers is seen with the first beat."""
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
        except BaseException:  # nobody joins us to hear of it; the worker sees that we stand still
            log.exception("data_job.heart.ended")

    async def _live(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._ready.set()
        parts = [
            asyncio.create_task(self._always("beat", self._beat)),
            asyncio.create_task(self._always("watch", self._watch)),
        ]
        await self._stop.wait()
        for part in parts:
            part.cancel()
        await asyncio.wait(parts, timeout=END_S)

    async def _always(self, part: str, run: Callable[[], Awaitable[None]]) -> None:
        """Again whatever ended it: while the database cannot be reached, and when an error of ours did."""
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
        """A loop that stalls is a handler that blocks it: heartbeats go on, but nothing else does."""
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
