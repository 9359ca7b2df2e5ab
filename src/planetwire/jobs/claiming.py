"""How a worker claims: one claim at a time, and while its jobs start the next is under way already."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from planetwire.errors import BackendError
from planetwire.model import Lease
from planetwire.ports import JobQueue, JobUpkeep

MOST = 250  # leases of one claim, so that some jobs run and end while the next are claimed
LEAST = 16  # where a claim brings fewer there is little to win from another beside it


class Claiming:
    """The claims of one worker. Whatever was claimed is either returned by `next` or given back."""

    def __init__(self, queue: JobQueue, upkeep: JobUpkeep, worker_id: str, task_types: Sequence[str]) -> None:
        self._queue = queue
        self._upkeep = upkeep
        self._worker_id = worker_id
        self._task_types = task_types
        self._under_way: asyncio.Task[Sequence[Lease]] | None = None
        self._most = MOST
        self._asked = 0

    async def next(self, free: int, running: int = 0) -> Sequence[Lease]:
        """Leases for at most `free` jobs; the caller has `running` others. Raises BackendError.

        When the caller is cancelled, a claim that may be committed already is waited for and given back.
        """
        claim, self._under_way = self._under_way or self._ask(free), None
        if claim is None:
            return []
        try:
            leases = await asyncio.shield(claim)
        except asyncio.CancelledError:
            await self._give_back_of(claim)
            raise
        self._learn(len(leases), running)
        if len(leases) >= LEAST:
            self._under_way = self._ask(free - len(leases))
        return leases

    def _ask(self, free: int) -> asyncio.Task[Sequence[Lease]] | None:
        if free <= 0:
            return None
        self._asked = min(free, self._most)
        return asyncio.create_task(self._queue.claim(self._worker_id, self._task_types, self._asked))

    def _learn(self, got: int, running: int) -> None:
        """A claim that finds less than asked took every source that was free: the next takes half of all that are in
        hand, so that the ends of one half are written while the other is claimed. Else claims and ends would wait for
        each other in turn.
        """
        self._most = min(2 * self._most, MOST) if got >= self._asked else max(LEAST, (running + got) // 2)

    async def give_back(self, leases: Sequence[Lease]) -> None:
        """Queue them again; raises BackendError."""
        if leases:
            await self._upkeep.release(leases)

    async def aclose(self) -> None:
        """Give back what a claim under way brings."""
        claim, self._under_way = self._under_way, None
        if claim is not None:
            await self._give_back_of(claim)

    async def _give_back_of(self, claim: asyncio.Task[Sequence[Lease]]) -> None:
        with suppress(BackendError):  # where the database is away, the leases run out by themselves
            await self.give_back(await claim)
