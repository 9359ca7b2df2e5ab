"""Claims one ahead of the jobs that start: nothing claimed is lost, never more than there is room for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from ledger_tools import queue_on
from planetwire.errors import BackendError
from planetwire.jobs.claiming import LEAST, Claiming
from planetwire.jobs.jobs_postgres import PostgresJobQueue
from planetwire.model import Lease
from planetwire.postgres import Pool


class _Watched:
    """The queue; a claim beyond `allowed` waits for `go_on` after it was committed, and fails there with `error`."""

    def __init__(self, queue: PostgresJobQueue, allowed: int = 100) -> None:
        self._queue = queue
        self._allowed = allowed
        self.asked: list[int] = []
        self.committed = asyncio.Event()
        self.go_on = asyncio.Event()
        self.error: BackendError | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)

    async def claim(self, worker_id: str, task_types: Sequence[str], limit: int) -> Sequence[Lease]:
        self.asked.append(limit)
        leases = await self._queue.claim(worker_id, task_types, limit)
        if len(self.asked) > self._allowed:
            self.committed.set()
            await self.go_on.wait()
            if self.error is not None:
                raise self.error
        return leases


async def _sources(pool: Pool, count: int) -> None:
    await pool.execute(
        "insert into collection_tasks (task_type, source) select 'collect', 's' || n from generate_series(1, $1) n",
        count,
    )


async def _claimed(pool: Pool) -> int:
    count: int = await pool.fetchval("select count(*) from collection_tasks where status = 'running' or attempts > 0")
    return count


def _claiming(watched: _Watched) -> Claiming:
    return Claiming(watched, watched, "w", ["collect"])  # type: ignore[arg-type]


async def test_all_is_claimed_once_and_never_more_than_there_is_room_for(pg_pool: Pool) -> None:
    await _sources(pg_pool, 3 * LEAST)
    watched = _Watched(queue_on(pg_pool))
    claiming = _claiming(watched)
    room, claimed = 2 * LEAST, set[int]()
    while leases := await claiming.next(room - len(claimed)):
        claimed |= {lease.job.id for lease in leases}
        assert await _claimed(pg_pool) <= room
    assert (len(claimed), await _claimed(pg_pool)) == (room, room)
    while leases := await claiming.next(room):
        assert claimed.isdisjoint(lease.job.id for lease in leases)
        claimed |= {lease.job.id for lease in leases}
    assert len(claimed) == 3 * LEAST


async def test_the_next_claim_is_under_way_when_the_leases_of_a_large_one_are_handed_out(pg_pool: Pool) -> None:
    await _sources(pg_pool, LEAST)
    watched = _Watched(queue_on(pg_pool), allowed=1)
    claiming = _claiming(watched)
    assert len(await claiming.next(3 * LEAST)) == LEAST
    await asyncio.wait_for(watched.committed.wait(), 60)
    watched.go_on.set()
    await claiming.aclose()
    assert len(watched.asked) == 2 and watched.asked[1] <= 2 * LEAST


async def test_a_small_claim_is_followed_by_none(pg_pool: Pool) -> None:
    """Workers that have little to do cost the server no empty claims beside their own."""
    await _sources(pg_pool, LEAST - 1)
    watched = _Watched(queue_on(pg_pool))
    assert len(await _claiming(watched).next(100)) == LEAST - 1
    await asyncio.sleep(0)
    assert watched.asked == [100]


@pytest.mark.parametrize("how", ["closed", "cancelled"])
async def test_a_claim_under_way_is_given_back(how: str, pg_pool: Pool) -> None:
    await _sources(pg_pool, 2 * LEAST)
    watched = _Watched(queue_on(pg_pool), allowed=1)
    claiming = _claiming(watched)
    claiming._most = LEAST
    assert len(await claiming.next(3 * LEAST)) == LEAST
    await asyncio.wait_for(watched.committed.wait(), 60)
    assert await _claimed(pg_pool) == 2 * LEAST
    ending = asyncio.create_task(claiming.aclose() if how == "closed" else claiming.next(LEAST))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    if how == "cancelled":
        ending.cancel()
    watched.go_on.set()
    await asyncio.wait({ending}, timeout=10)
    assert ending.done() and ending.cancelled() == (how == "cancelled")
    assert await _claimed(pg_pool) == LEAST


async def test_a_claim_that_fails_while_its_caller_is_cancelled_does_not_hide_the_cancel(pg_pool: Pool) -> None:
    watched = _Watched(queue_on(pg_pool), allowed=0)
    watched.error = BackendError("the database is away")
    waiting = asyncio.create_task(_claiming(watched).next(1))  # type: ignore[arg-type]
    await asyncio.wait_for(watched.committed.wait(), 60)
    waiting.cancel()
    watched.go_on.set()
    await asyncio.wait({waiting}, timeout=10)
    assert waiting.cancelled()
