"""Runs jobs: claims, heartbeats, notices cancels, rescues what others lost, stops softly.

The row is the truth. Cancelling the coroutine is only the fast way to make it stop; a coroutine that does not
stop cannot commit, because every batch checks its lease.
"""

from __future__ import annotations

import asyncio
import random
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence

from planetwire.errors import BackendError
from planetwire.jobs.running import Handler, Outcome, Running
from planetwire.log import get_logger
from planetwire.model import JobStatus, Lease, TaskType
from planetwire.ports import Clock, JobQueue, JobUpkeep, Wakeup
from planetwire.settings import JobSettings

log = get_logger()

LOOK_S = 1.0  # a cancel is seen within two seconds also when no doorbell rings
RESCUE_S = 2.0  # lease 30 s + rescue + first back-off 1 s + poll 1 s stays below lease + 5 s
GATE_S = 10.0  # how long writers are asked to ring while we are idle
FINISH_TRIES = 8  # about a lease; after that another worker's rescue ends the job
FINISH_DELAY_MAX_S = 5.0
DRAIN_S = 10.0  # what running jobs get to end by themselves when we are told to stop


class Worker:
    """Runs up to `settings.concurrency` jobs of the task types it has handlers for, until stopped."""

    def __init__(
        self,
        queue: JobQueue,
        upkeep: JobUpkeep,
        handlers: Mapping[TaskType, Handler],
        wakeup: Wakeup,
        settings: JobSettings,
        clock: Clock,
        *,
        drain_s: float = DRAIN_S,
        worker_id: str | None = None,
    ) -> None:
        self.worker_id = worker_id or f"work-{secrets.token_hex(6)}"  # never reused: a restart is another worker
        self._queue = queue
        self._upkeep = upkeep
        self._handlers = handlers
        self._wakeup = wakeup
        self._settings = settings
        self._clock = clock
        self._drain_s = drain_s
        self._running: dict[int, Running] = {}
        self._stopping = False
        self._gate_s = max(GATE_S, 2 * settings.poll_s)
        self._gate_until = clock.monotonic()

    def stop(self) -> None:
        """Claim nothing more; `run` returns when the running jobs ended or were given back."""
        self._stopping = True
        self._wakeup.ring()

    async def run(self) -> None:
        """Work until `stop` or cancellation. Heartbeats last until the last job has ended."""
        loops = [
            asyncio.create_task(self._forever("heartbeat", self._settings.heartbeat_s, self._beat)),
            asyncio.create_task(self._forever("rescue", RESCUE_S, self._rescue)),
        ]
        try:
            while not self._stopping:
                await self._turn()
            await self._drain()
        finally:
            await self._end_all()
            for loop in loops:
                loop.cancel()
            await asyncio.gather(*loops, return_exceptions=True)

    # --- the main loop

    async def _turn(self) -> None:
        """Look at what runs, claim, start, wait. Trouble with the database costs one wait."""
        try:
            await self._look()
            if await self._claim():
                return
        except BackendError as error:
            log.warning("data_job.claim.failed", worker=self.worker_id, error=error.message)
        timeout_s = min(self._settings.poll_s, LOOK_S) if self._running else self._settings.poll_s
        await self._wakeup.wait(timeout_s)

    async def _claim(self) -> bool:
        """True when there may be more to claim at once."""
        free = self._settings.concurrency - len(self._running)
        if free <= 0 or self._stopping:
            return False
        # Shielded: a claim that was committed must reach `_start` or `release`, whoever cancels us.
        leases = await _finish_first(self._queue.claim(self.worker_id, list(self._handlers), free), self._give_back)
        if self._stopping:
            await self._give_back(leases)
            return False
        for lease in leases:
            self._start(lease)
        return bool(leases) or await self._open_gate()

    async def _give_back(self, leases: Sequence[Lease]) -> None:
        if leases:
            await self._upkeep.release(leases)

    async def _open_gate(self) -> bool:
        """Only while idle: a ring costs every writer of the server. True when the gate was shut until now:
        what was written before it opened did not ring, so look once more.
        """
        left_s = self._gate_until - self._clock.monotonic()
        if left_s > self._gate_s / 2:
            return False
        await self._upkeep.open_gate(self._gate_s)
        self._gate_until = self._clock.monotonic() + self._gate_s
        return left_s <= 0

    def _start(self, lease: Lease) -> None:
        entry = self._running[lease.job.id] = Running(lease)
        entry.task = asyncio.create_task(self._work(entry), name=f"job-{lease.job.id}")
        entry.task.add_done_callback(lambda _: self._ended(entry))

    def _ended(self, entry: Running) -> None:
        self._running.pop(entry.lease.job.id, None)
        self._wakeup.ring()

    # --- one job

    async def _work(self, entry: Running) -> None:
        job = entry.lease.job
        facts = {"task_id": job.id, "task_type": job.task_type.value, "source": job.source, "attempt": job.attempts}
        log.info("data_job.started", **facts, worker=self.worker_id)
        outcome = await entry.handle(self._handlers[job.task_type])
        status = await self._write_end(entry.lease, outcome)
        code, error = outcome.error or (None, None)
        log.info("data_job.completed", **facts, status=status, code=code, error=error)

    async def _write_end(self, lease: Lease, outcome: Outcome) -> str:
        """Again while the database is away; the status, or why none was written."""
        delay_s = 0.2
        for _ in range(FINISH_TRIES):
            try:
                return await self._write_end_once(lease, outcome)
            except BackendError as error:
                log.warning("data_job.finish.repeated", task_id=lease.job.id, error=error.message)
            await self._clock.sleep(delay_s)
            delay_s = min(delay_s * 2, FINISH_DELAY_MAX_S)
        return "unknown"

    async def _write_end_once(self, lease: Lease, outcome: Outcome) -> str:
        if outcome.release:
            return "released" if await self._upkeep.release([lease]) else "lost"
        if outcome.status is None:
            return "lost"
        written = await self._queue.finish(
            lease,
            outcome.status,
            message=outcome.message,
            error=outcome.error,
            retry_after_s=outcome.retry_after_s,
        )
        return outcome.status.value if written else "lost"

    # --- what goes on beside

    async def _look(self) -> None:
        leases = [entry.lease for entry in self._running.values()]
        if leases:
            self._heed(leases, await self._upkeep.look(leases))

    async def _beat(self) -> None:
        leases = [entry.lease for entry in self._running.values()]
        if leases:
            self._heed(leases, await self._queue.heartbeat(leases))

    def _heed(self, leases: Sequence[Lease], owned: Mapping[int, JobStatus]) -> None:
        for lease in leases:
            entry = self._running.get(lease.job.id)
            if entry is None or entry.lease.seq != lease.seq:
                continue
            status = owned.get(lease.job.id)
            if status is None:
                entry.end("lost")
            elif status is JobStatus.CANCELLING:
                entry.end("cancel")

    async def _rescue(self) -> None:
        if await self._queue.rescue():
            self._wakeup.ring()

    async def _forever(self, what: str, period_s: float, step: Callable[[], Awaitable[None]]) -> None:
        """Each `period_s` ± 20 %; a failing step is logged and does not end the loop."""
        while True:
            await self._clock.sleep(period_s * random.uniform(0.8, 1.2))
            try:
                await step()
            except BackendError as error:
                log.warning("data_job.upkeep.failed", what=what, error=error.message)
            except Exception:
                log.exception("data_job.upkeep.crashed", what=what)

    # --- the end

    def _tasks(self) -> list[asyncio.Task[None]]:
        return [entry.task for entry in self._running.values() if entry.task is not None]

    async def _drain(self) -> None:
        if self._running:
            await asyncio.wait(self._tasks(), timeout=self._drain_s)

    async def _end_all(self) -> None:
        tasks = self._tasks()
        for entry in self._running.values():
            entry.end("stop")
        await asyncio.gather(*tasks, return_exceptions=True)


async def _finish_first(
    claim: Awaitable[Sequence[Lease]], give_back: Callable[[Sequence[Lease]], Awaitable[None]]
) -> Sequence[Lease]:
    """Await a claim; if we are cancelled meanwhile, let it end and give its jobs back."""
    task = asyncio.ensure_future(claim)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await give_back(await task)
        raise
