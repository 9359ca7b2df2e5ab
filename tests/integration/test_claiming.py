"""Claims one ahead of the jobs that start: nothing claimed is lost, never more than there is room for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from ledger_tools import queue_on
from planetwire.database.postgres import Pool
from planetwire.errors import BackendError
from planetwire.jobs.claiming import LEAST, Claiming
from planetwire.jobs.ledger.jobs_postgres import PostgresJobQueue
from planetwire.model import Lease


class _Watched:
    """The queue; claims beyond `allowed` wait for `go_on` after their commit, and the first fails then with `error`.

    The claim with the number `empty` finds nothing.
    """

    def __init__(self, queue: PostgresJobQueue, allowed: int = 100, empty: int = 0) -> None:
        self._empty = empty
        self._waiting = 0
        self._queue = queue
        self._allowed = allowed
        self.asked: list[int] = []
        self.committed = asyncio.Event()
        self.go_on = asyncio.Event()
        self.error: BackendError | None = None

    async def until(self, claims: int) -> None:
        """So many wait."""
        async with asyncio.timeout(60):
            while self._waiting < claims:
                self.committed.clear()
                await self.committed.wait()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)

    async def claim(self, worker_id: str, task_types: Sequence[str], limit: int) -> Sequence[Lease]:
        self.asked.append(limit)
        number = len(self.asked)
        if number == self._empty:
            return []
        leases = await self._queue.claim(worker_id, task_types, limit)
        if number > self._allowed:
            self._waiting += 1
            self.committed.set()
            await self.go_on.wait()
            if self.error is not None and number == self._allowed + 1:
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


@pytest.fixture
def _small_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planetwire.jobs.claiming.MOST", LEAST)


@pytest.mark.usefixtures("_small_claims")
async def test_where_plenty_waits_two_claims_are_under_way_and_never_for_more_than_there_is_room(pg_pool: Pool) -> None:
    await _sources(pg_pool, 8 * LEAST)
    watched = _Watched(queue_on(pg_pool), allowed=1)
    claiming = _claiming(watched)
    assert len(await claiming.next(3 * LEAST - 1)) == LEAST
    await asyncio.sleep(0)
    assert watched.asked == [LEAST, LEAST, LEAST - 1]
    watched.go_on.set()
    assert len(await claiming.next(2 * LEAST - 1)) == LEAST
    await asyncio.sleep(0)
    assert watched.asked == [LEAST, LEAST, LEAST - 1]  # the room is taken by the one that is under way
    await claiming.aclose()
    assert await _claimed(pg_pool) == 2 * LEAST


@pytest.mark.usefixtures("_small_claims")
async def test_a_claim_that_finds_nothing_hides_none_that_is_under_way(pg_pool: Pool) -> None:
    """Whoever is told of no leases waits for a ring, and nothing rings for leases that nobody started."""
    await _sources(pg_pool, 3 * LEAST)
    watched = _Watched(queue_on(pg_pool), empty=2)
    claiming = _claiming(watched)
    assert len(await claiming.next(3 * LEAST)) == LEAST
    assert len(await claiming.next(2 * LEAST)) == LEAST
    await claiming.aclose()


async def test_a_claim_that_was_not_of_full_size_has_one_behind_it(pg_pool: Pool) -> None:
    """Of few sources two claims at once would only take from each other."""
    await _sources(pg_pool, 8 * LEAST)
    watched = _Watched(queue_on(pg_pool))
    claiming = _claiming(watched)
    claiming._most = LEAST
    assert len(await claiming.next(8 * LEAST)) == LEAST
    await asyncio.sleep(0)
    assert watched.asked == [LEAST, 2 * LEAST]
    await claiming.aclose()


@pytest.mark.usefixtures("_small_claims")
async def test_what_the_claims_beside_a_failed_one_bring_is_given_back(pg_pool: Pool) -> None:
    await _sources(pg_pool, 6 * LEAST)
    watched = _Watched(queue_on(pg_pool), allowed=1)
    watched.error = BackendError("the answer was lost")
    claiming = _claiming(watched)
    assert len(await claiming.next(5 * LEAST)) == LEAST
    failing = asyncio.create_task(claiming.next(4 * LEAST))  # type: ignore[arg-type]
    await watched.until(2)
    watched.go_on.set()
    with pytest.raises(BackendError):
        await failing
    assert watched.asked == [LEAST, LEAST, LEAST]
    assert await _claimed(pg_pool) == 2 * LEAST  # the first, and those whose answer was lost


async def test_a_claim_that_took_all_that_was_free_has_one_behind_it(pg_pool: Pool) -> None:
    await _sources(pg_pool, 2 * LEAST)
    watched = _Watched(queue_on(pg_pool), allowed=1)
    claiming = _claiming(watched)
    assert len(await claiming.next(100)) == 2 * LEAST
    await asyncio.wait_for(watched.committed.wait(), 10)
    assert watched.asked == [100, LEAST]
    watched.go_on.set()
    await claiming.aclose()


async def test_a_small_claim_is_followed_by_none(pg_pool: Pool) -> None:
    """Workers that have little to do cost the server no empty claims beside their own."""
    await _sources(pg_pool, LEAST - 1)
    watched = _Watched(queue_on(pg_pool))
    assert len(await _claiming(watched).next(100)) == LEAST - 1
    await asyncio.sleep(0)
    assert watched.asked == [100]


@pytest.mark.usefixtures("_small_claims")
@pytest.mark.parametrize("how", ["closed", "cancelled"])
async def test_claims_under_way_are_given_back(how: str, pg_pool: Pool) -> None:
    await _sources(pg_pool, 4 * LEAST)
    watched = _Watched(queue_on(pg_pool), allowed=1)
    claiming = _claiming(watched)
    assert len(await claiming.next(4 * LEAST)) == LEAST
    await watched.until(2)
    ending = asyncio.create_task(claiming.aclose() if how == "closed" else claiming.next(LEAST))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    if how == "cancelled":
        ending.cancel()
    watched.go_on.set()
    await asyncio.wait({ending}, timeout=60)
    assert ending.done() and ending.cancelled() == (how == "cancelled")
    if how == "cancelled":
        await claiming.aclose()
    assert await _claimed(pg_pool) == LEAST


async def test_a_claim_that_fails_while_its_caller_is_cancelled_does_not_hide_the_cancel(pg_pool: Pool) -> None:
    watched = _Watched(queue_on(pg_pool), allowed=0)
    watched.error = BackendError("the database is away")
    waiting = asyncio.create_task(_claiming(watched).next(1))  # type: ignore[arg-type]
    await asyncio.wait_for(watched.committed.wait(), 60)
    waiting.cancel()
    watched.go_on.set()
    await asyncio.wait({waiting}, timeout=60)
    assert waiting.cancelled()
