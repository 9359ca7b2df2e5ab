"""How a worker claims: while the jobs of one claim start the next is under way already; where plenty wait, two are."""

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
AHEAD = 2  # claims under way while so many are there for each: one is at the disk while the other is worked at
LEAST = 16  # where a claim brings fewer there is little to win from another beside it


class _Claim(NamedTuple):
    task: asyncio.Task[Sequence[Lease]]
    asked: int


class Claiming:
    """The claims of one worker. Whatever was claimed is either returned by `next` or given back."""

    def __init__(self, queue: JobQueue, upkeep: JobUpkeep, worker_id: str, task_types: Sequence[str]) -> None:
        self._queue = queue
        self._upkeep = upkeep
        self._worker_id = worker_id
        self._task_types = task_types
        self._under_way: deque[_Claim] = deque()  # oldest first
        self._most = MOST

    async def next(self, free: int, running: int = 0) -> Sequence[Lease]:
        """Leases for at most `free` jobs; the caller has `running` others. Raises BackendError.

        When the caller is cancelled, a claim that may be committed already is waited for and given back.
        """
        if not self._under_way:
            self._ask(free, 1)
        leases: Sequence[Lease] = []
        while self._under_way and not leases:  # who gets none waits, and must not while another brings some
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
            await self.aclose()  # the caller will wait a while, and leases that are not started are renewed by nobody
            raise
        self._learn(len(leases), running, plenty=len(leases) >= claim.asked)
        if len(leases) >= LEAST:
            self._ask(free - len(leases), AHEAD if len(leases) >= MOST else 1)
        return leases

    def _ask(self, free: int, claims: int) -> None:
        """Up to so many under way, for no more jobs than there is room for."""
        free -= sum(claim.asked for claim in self._under_way)
        while free > 0 and len(self._under_way) < claims:
            asked = min(free, self._most)
            task = asyncio.create_task(self._queue.claim(self._worker_id, self._task_types, asked))
            self._under_way.append(_Claim(task, asked))
            free -= asked

    def _learn(self, got: int, running: int, *, plenty: bool) -> None:
        """A claim that finds less than asked took every source that was free: the next takes half of all that are in
        hand, so that the ends of one half are written while the other is claimed. Else claims and ends would wait for
        each other in turn.
        """
        self._most = min(2 * self._most, MOST) if plenty else max(LEAST, (running + got) // 2)

    async def give_back(self, leases: Sequence[Lease]) -> None:
        """Queue them again; raises BackendError."""
        if leases:
            await self._upkeep.release(leases)

    async def aclose(self) -> None:
        """Give back what claims under way bring."""
        while self._under_way:
            await self._give_back_of(self._under_way.popleft())

    async def _give_back_of(self, claim: _Claim) -> None:
        with suppress(BackendError):  # where the database is away, the leases run out by themselves
            await self.give_back(await claim.task)
