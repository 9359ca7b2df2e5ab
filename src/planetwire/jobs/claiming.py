"""How a worker claims jobs: the next claim runs while the jobs of the last one start; with a long queue, two run."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from planetwire.errors import BackendError
from planetwire.model import Lease
from planetwire.ports import JobQueue, JobUpkeep

MOST = 250  # leases of one claim, so that some jobs run and end while the next are claimed
AHEAD = 2  # claims in flight while the queue fills each: one waits for the disk while the server executes the other
LEAST = 16  # jobs; a claim that returns fewer gains little from a second one in parallel


class _Claim(NamedTuple):
    task: asyncio.Task[Sequence[Lease]]
    asked: int


class Claiming:
    """The claims of one worker. Every claimed lease is either returned by `next` or released."""

    def __init__(self, queue: JobQueue, upkeep: JobUpkeep, worker_id: str, task_types: Sequence[str]) -> None:
        self._queue = queue
        self._upkeep = upkeep
        self._worker_id = worker_id
        self._task_types = task_types
        self._under_way: deque[_Claim] = deque()  # oldest first
        self._most = MOST

    async def next(self, free: int, running: int = 0) -> Sequence[Lease]:
        """Leases for at most `free` jobs; the caller has `running` others. Raises BackendError.

        If the caller is cancelled, a claim that may already be committed is awaited and released.
        """
        if not self._under_way:
            self._ask(free, 1)
        leases: Sequence[Lease] = []
        while self._under_way and not leases:  # an empty result would make the caller wait
            leases = await self._answer(free, running)
        return leases

    async def _answer(self, free: int, running: int) -> Sequence[Lease]:
        claim = self._under_way.popleft()
        try:
            leases = await asyncio.shield(claim.task)
        except asyncio.CancelledError:
            await self._give_back_of(claim)
            raise
        except BackendError:
            await self.aclose()  # the caller backs off, and no heartbeat renews leases of jobs that have not started
            raise
        self._adapt(len(leases), running, plenty=len(leases) >= claim.asked)
        if len(leases) >= LEAST:
            self._ask(free - len(leases), AHEAD if len(leases) >= MOST else 1)
        return leases

    def _ask(self, free: int, claims: int) -> None:
        """Start claims until `claims` are in flight, for at most `free` jobs in total."""
        free -= sum(claim.asked for claim in self._under_way)
        while free > 0 and len(self._under_way) < claims:
            asked = min(free, self._most)
            task = asyncio.create_task(self._queue.claim(self._worker_id, self._task_types, asked))
            self._under_way.append(_Claim(task, asked))
            free -= asked

    def _adapt(self, got: int, running: int, *, plenty: bool) -> None:
        """Set the size of the next claim.

        A claim that returns less than asked took every free source. The next one takes half of the jobs in hand, so
        that the results of one half are written while the other half is claimed; else the two would alternate.
        """
        self._most = min(2 * self._most, MOST) if plenty else max(LEAST, (running + got) // 2)

    async def give_back(self, leases: Sequence[Lease]) -> None:
        """Queue them again; raises BackendError."""
        if leases:
            await self._upkeep.release(leases)

    async def aclose(self) -> None:
        """Release the leases of claims in flight."""
        while self._under_way:
            await self._give_back_of(self._under_way.popleft())

    async def _give_back_of(self, claim: _Claim) -> None:
        with suppress(BackendError):  # without a database the leases expire by themselves
            await self.give_back(await claim.task)
