"""Runs jobs: claims, starts, notices cancels, writes how they end, stops softly. Leases are the heart's.

The row is the truth. Cancelling the coroutine is only the fast way to make it stop; a coroutine that does not
stop cannot commit, because every batch checks its lease.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack

from planetwire.errors import BackendError, StateError
from planetwire.jobs.claiming import Claiming
from planetwire.jobs.heart import Heart, HeartThread, OpenQueue
from planetwire.jobs.pulse import Pulse, until_silent
from planetwire.jobs.running import Handler, Outcome, Running
from planetwire.jobs.telling import Tell, end_line, silent
from planetwire.log import get_logger
from planetwire.model import ClaimedJob, JobStatus, Lease, TaskType
from planetwire.ports import Clock, JobQueue, JobUpkeep, Wakeup
from planetwire.runtime.backoff import Backoff
from planetwire.runtime.ending import end_all
from planetwire.settings import JobSettings

log = get_logger()

LOOK_S = 1.0  # a cancel is seen within two seconds also when no doorbell rings
ANSWER_S = 3.0  # for the database, before a silent heart is held to be at fault
LOOK_LEAST_S = 0.2  # jobs that end ring too; not every ring is a cancel
GATE_S = 10.0  # how long writers are asked to ring while we are idle
FINISH_TRIES = 8  # about a lease; after that another worker's rescue ends the job
FINISH_DELAY_S = 0.2  # between two of them …
FINISH_DELAY_MAX_S = 5.0  # … doubling up to this
DRAIN_S = 10.0  # what running jobs get to end by themselves when we are told to stop


class Worker:
    """Runs up to `settings.concurrency` jobs of the task types it has handlers for, until stopped.

    `heart` opens the queue that heartbeats use, in a thread of its own; without it they share our loop and queue.
    `tell` takes lines for the job's log.
    """

    def __init__(
        self,
        queue: JobQueue,
        upkeep: JobUpkeep,
        handlers: Mapping[TaskType, Handler],
        wakeup: Wakeup,
        settings: JobSettings,
        clock: Clock,
        *,
        heart: OpenQueue | None = None,
        tell: Tell = silent,
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
        # A logger that is bound already costs a third, and one that writes nothing is not called.
        self._log = log.bind()
        self._logs = self._log.is_enabled_for(logging.INFO)
        self._deadlines = {kind: settings.deadline_s(kind) for kind in handlers}
        self._open_heart = heart
        self._tell = tell
        self._drain_s = drain_s
        self._claiming = Claiming(queue, upkeep, self.worker_id, list(handlers))
        self._running: dict[int, Running] = {}
        self._stopping = False
        self._pulse = Pulse()
        self._heartless = False
        self._gate_s = max(GATE_S, 2 * settings.poll_s)
        self._gate_until = self._looked_at = clock.monotonic()

    def stop(self) -> None:
        """Claim nothing more; `run` returns when the running jobs ended or were given back."""
        self._stopping = True
        self._wakeup.ring()

    async def run(self) -> None:
        """Work until `stop` or cancellation. Heartbeats last until the last job has ended.

        Raises StateError when they have stopped: the jobs were given back, and only another process can do better.
        """
        async with AsyncExitStack() as stack:
            await self._start_heart(stack)
            try:
                while not self._stopping:
                    await self._turn()
                await self._claiming.aclose()
                await self._drain()
            finally:
                await self._end_all()
                await self._claiming.aclose()
        if self._heartless:
            raise StateError("the heart of the worker stopped; its jobs were given back", code="heart_stopped")

    async def _start_heart(self, stack: AsyncExitStack) -> None:
        loop = asyncio.get_running_loop()
        stack.push_async_callback(end_all, [asyncio.create_task(self._guard_heart())])
        if self._open_heart is None:
            beating = asyncio.create_task(self._heart(self._queue, _call).run())
            stack.push_async_callback(end_all, [beating])
            return
        thread = HeartThread(self._open_heart, lambda queue: self._heart(queue, loop.call_soon_threadsafe), self._pulse)
        stack.push_async_callback(thread.stop)
        await thread.start()

    async def _guard_heart(self) -> None:
        """Nobody renews our leases while the heart stands still: end in time, rather than run what others run too."""
        silent_s = await until_silent(self._pulse, self._settings, self._clock, self._database_answers)
        log.error("data_job.heart.stopped", worker=self.worker_id, seconds=round(silent_s, 1), jobs=len(self._running))
        self._heartless = True
        self.stop()
        for entry in list(self._running.values()):
            entry.end("stop")

    async def _database_answers(self) -> bool:
        try:
            async with asyncio.timeout(ANSWER_S):
                await self._upkeep.look(self._leases())
        except Exception:  # whatever it is, the heart may have met it too
            return False
        return True

    def _heart(self, queue: JobQueue, post: Callable[..., object]) -> Heart:
        """`post` calls a function of ours in our loop."""
        return Heart(
            queue,
            self._leases,
            lambda leases, owned: post(self._apply_states, leases, owned),
            lambda: post(self._wakeup.ring),
            self._settings.heartbeat_s,
            self._clock,
            self._pulse,
        )

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
        if await self._wakeup.wait(timeout_s) and self._running:
            self._looked_at = min(self._looked_at, self._clock.monotonic() - LOOK_S + LOOK_LEAST_S)

    async def _claim(self) -> bool:
        """True when there may be more to claim at once."""
        free = self._settings.concurrency - len(self._running)
        if free <= 0 or self._stopping:
            return False
        leases = await self._claiming.next(free, len(self._running))
        if self._stopping:
            await self._claiming.give_back(leases)
            return False
        for lease in leases:
            self._start(lease)
        return bool(leases) or await self._upkeep.park() > 0 or await self._open_gate()

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
        ends_at = self._clock.monotonic() + self._deadlines[lease.job.task_type]
        entry = self._running[lease.job.id] = Running(lease, ends_at, self._ended)
        entry.task = asyncio.get_running_loop().create_task(self._work(entry))
        entry.task.add_done_callback(entry.gone)

    def _ended(self, entry: Running) -> None:
        self._running.pop(entry.lease.job.id, None)
        self._wakeup.ring()

    # --- one job

    async def _work(self, entry: Running) -> None:
        job = entry.lease.job
        if self._logs:
            self._log.info("data_job.started", worker=self.worker_id, **_facts(job))
        self._tell(job.id, "started", f"attempt {job.attempts} of {job.max_attempts}, by {self.worker_id}")
        outcome = await entry.handle(self._handlers[job.task_type])
        status = await self._write_end(entry.lease, outcome)
        if self._logs:
            code, error = outcome.error or (None, None)
            self._log.info("data_job.completed", status=status, code=code, error=error, **_facts(job))
        self._tell(job.id, *end_line(job, status, outcome))

    async def _write_end(self, lease: Lease, outcome: Outcome) -> str:
        """Again while the database is away; the status, or why none was written."""
        backoff = Backoff(FINISH_DELAY_S, FINISH_DELAY_MAX_S, self._clock)
        for _ in range(FINISH_TRIES):
            try:
                return await self._write_end_once(lease, outcome)
            except BackendError as error:
                log.warning("data_job.finish.repeated", task_id=lease.job.id, error=error.message)
            await backoff.pause()
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
            sample=outcome.sample,
        )
        return outcome.status if written else "lost"

    # --- what becomes of leases

    def _leases(self) -> list[Lease]:
        """May be called from the heart's thread."""
        return [entry.lease for entry in list(self._running.values())]

    async def _look(self) -> None:
        """At most every second, a moment after a ring: what rang may have been a cancel."""
        now = self._clock.monotonic()
        if not self._running or now - self._looked_at < LOOK_S:
            return
        self._looked_at = now
        for entry in self._running.values():
            if now >= entry.ends_at:
                entry.end("deadline")
        leases = self._leases()
        self._apply_states(leases, await self._upkeep.look(leases))

    def _apply_states(self, leases: Sequence[Lease], owned: Mapping[int, JobStatus]) -> None:
        for lease in leases:
            entry = self._running.get(lease.job.id)
            if entry is None or entry.lease.seq != lease.seq:
                continue
            status = owned.get(lease.job.id)
            if status is None:
                entry.end("lost")
            elif status is JobStatus.CANCELLING:
                entry.end("cancel")

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


def _facts(job: ClaimedJob) -> dict[str, object]:
    return {"task_id": job.id, "task_type": job.task_type, "source": job.source, "attempt": job.attempts}


def _call(function: Callable[..., object], *arguments: object) -> None:
    function(*arguments)
