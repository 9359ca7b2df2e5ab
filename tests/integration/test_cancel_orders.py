"""Cancel, end, crash and commit in every order: what becomes of the job, of its batches, and of the next in line."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest

from fix_postgres import database_of
from ledger_tools import ALL_TYPES, claim_one, expire, queue_on, row_of, status_of, wish
from planetwire.database.postgres import Pool, open_pool
from planetwire.errors import BackendError, LeaseLost, StateError
from planetwire.facts.facts_postgres import PostgresFactStore
from planetwire.jobs.ledger.jobs_postgres import PostgresJobQueue
from planetwire.jobs.tasks.clear_data import ClearDataTask
from planetwire.model import JobStatus, Lease, TaskType
from planetwire.ports import JobTx
from planetwire.supervise.embedded_postgres import EmbeddedPostgres


@pytest.fixture(scope="module")
def one_dsn(pg_cluster: EmbeddedPostgres) -> Iterator[str]:
    """One database for all orders: a fresh one each would take longer than they do."""
    with database_of(pg_cluster, "create table effects (who text)") as dsn:
        yield dsn


@pytest.fixture
async def ledger(one_dsn: str) -> AsyncIterator[Pool]:
    """A pool on it, with nothing in the ledger."""
    pool = await open_pool(one_dsn, application="test", max_size=4)
    await pool.execute("truncate collection_tasks, effects")
    yield pool
    await pool.close()


ENDS = {"F": JobStatus.COMPLETED, "X": JobStatus.FAILED, "S": JobStatus.CANCELLED}

# What happens, one letter an event:
#   C a cancel request · R the worker falls silent and is noticed · H another worker claims
#   B the first worker commits a batch · F X S it ends the job: done, failed, stopped
#   b f x s the same of the other worker
# and then: the job's state, and whose batches were committed; every other B or b was refused.
ORDERS = [
    # nobody stops it
    ("BBF", "completed", "BB"),
    ("BX", "queued", "B"),
    ("BXBHbf", "completed", "Bb"),
    ("BRBHbf", "completed", "Bb"),
    ("BRHBbBf", "completed", "Bb"),
    ("BRHFbf", "completed", "Bb"),
    ("RHbFXS", "running", "b"),
    ("BRFXS", "queued", "B"),
    # the cancel comes first
    ("CBS", "cancelled", ""),
    ("CX", "cancelled", ""),
    ("CF", "completed", ""),
    ("CRBF", "cancelled", ""),
    # … in the middle
    ("BCB", "cancelling", "B"),
    ("BCBS", "cancelled", "B"),
    ("BCBX", "cancelled", "B"),
    ("BCBF", "completed", "B"),
    ("BCRB", "cancelled", "B"),
    ("BCRSFX", "cancelled", "B"),
    ("BCRHB", "cancelled", "B"),
    ("BCCBS", "cancelled", "B"),
    ("BCSCBF", "cancelled", "B"),
    # … after an end, which stays
    ("BFCB", "completed", "B"),
    ("BFRCX", "completed", "B"),
    # … when the job waits again
    ("BXCHB", "cancelled", "B"),
    ("BRCHBF", "cancelled", "B"),
    ("BRCCR", "cancelled", "B"),
    # … when another worker has it
    ("BRHCBbs", "cancelled", "B"),
    ("BRHbCBbSs", "cancelled", "Bb"),
    ("BRHbCRbf", "cancelled", "Bb"),
    ("BXHbCFx", "cancelled", "Bb"),
]


class Play:
    """One job of a source with another waiting behind it, and up to two workers who believe that it is theirs."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.queue = queue_on(pool, retry_s=0, rescue_retry_s=0)
        self.leases: dict[bool, Lease] = {}
        self.kept = ""

    async def begin(self, kind: TaskType) -> None:
        self.job, _ = await self.queue.submit(wish(kind))
        self.next, _ = await self.queue.submit(wish(_other(kind)))
        self.leases[True] = await claim_one(self.queue, "first")

    async def step(self, event: str) -> None:
        if event == "C":
            await self._cancel()
        elif event == "R":
            await self._fall_silent()
        elif event == "H":
            for lease in await self.queue.claim("other", ALL_TYPES, 1):
                if lease.job.id == self.job.id:
                    self.leases[False] = lease
        elif event in "Bb":
            await self._batch(event)
        elif lease := self.leases.get(event.isupper()):
            error = ("transient", "x") if event in "Xx" else None
            await self.queue.finish(lease, ENDS[event.upper()], error=error)

    async def _cancel(self) -> None:
        before = await status_of(self.pool, self.job.id)
        if before.is_final:
            with pytest.raises(StateError) as refused:
                await self.queue.cancel(self.job.id)
            assert refused.value.code == "job_final"
            return
        asked = (await row_of(self.pool, self.job.id))["cancel_requested_at"]
        answer = await self.queue.cancel(self.job.id)
        assert answer.status is (JobStatus.CANCELLED if before is JobStatus.QUEUED else JobStatus.CANCELLING)
        assert before is not JobStatus.CANCELLING or answer.cancel_requested_at == asked

    async def _fall_silent(self) -> None:
        if (await row_of(self.pool, self.job.id))["lease_until"] is not None:
            await expire(self.pool, self.job.id)
        await self.queue.rescue()

    async def _batch(self, who: str) -> None:
        lease = self.leases.get(who.isupper())
        if lease is None:
            return
        try:
            async with self.queue.batch(lease) as tx:
                await tx.connection.execute("insert into effects values ($1)", who)
                tx.progress(1)
            self.kept += who
        except LeaseLost:
            pass


def _other(kind: TaskType) -> TaskType:
    return TaskType.COLLECT if kind is TaskType.CLEAR_DATA else TaskType.CLEAR_DATA


@pytest.mark.parametrize("kind", [TaskType.COLLECT, TaskType.CLEAR_DATA])
@pytest.mark.parametrize(("order", "status", "kept"), ORDERS, ids=[order for order, _, _ in ORDERS])
async def test_every_order_of_cancel_end_crash_and_commit_has_one_outcome(
    order: str, status: str, kept: str, kind: TaskType, ledger: Pool
) -> None:
    """S47, S48, S50, S51, Q17, Q18."""
    play = Play(ledger)
    await play.begin(kind)
    for event in order:
        await play.step(event)
    row = await row_of(ledger, play.job.id)
    assert (row["status"], play.kept) == (status, kept)
    assert await ledger.fetchval("select coalesce(string_agg(who, '' order by ctid), '') from effects") == kept
    # A clearing goes on where it was; a collection that was claimed again counts anew.
    claimed_again = False in play.leases
    counted = kept if kind is TaskType.CLEAR_DATA or not claimed_again else kept.replace("B", "")
    assert row["records_processed"] == len(counted)
    assert (row["finished_at"] is not None) == JobStatus(status).is_final

    claimed = [lease.job.id for lease in await play.queue.claim("last", ALL_TYPES, 10)]
    if JobStatus(status).is_final:
        started = (await row_of(ledger, play.next.id))["attempts"]
        assert claimed == [play.next.id] or started == 1  # by an H that found it
    else:
        assert claimed == ([play.job.id] if status == "queued" else [])


async def _cancel(play: Play) -> None:
    await play.queue.cancel(play.job.id)


async def _lose(play: Play) -> None:
    await play.step("R")


async def _lose_to_another(play: Play) -> None:
    await play.step("R")
    await play.step("H")


async def _end(play: Play) -> None:
    await play.step("F")


async def _give_back(play: Play) -> None:
    await play.queue.release([play.leases[True]])


async def _cancel_and_lose(play: Play) -> None:
    await play.step("C")
    await play.step("R")


async def _delete_by_hand(play: Play) -> None:
    await play.pool.execute("delete from collection_tasks where id = $1", play.job.id)


@pytest.mark.parametrize(
    "meanwhile", [_cancel, _lose, _lose_to_another, _end, _give_back, _cancel_and_lose, _delete_by_hand]
)
async def test_a_batch_that_was_open_when_the_job_left_its_worker_commits_nothing(
    meanwhile: Callable[[Play], Awaitable[None]], ledger: Pool
) -> None:
    """S50, S51, Q17, Q18."""
    play = Play(ledger)
    await play.begin(TaskType.COLLECT)
    await play.step("B")
    with pytest.raises(LeaseLost):
        async with play.queue.batch(play.leases[True]) as tx:
            await tx.connection.execute("insert into effects values ('open')")
            tx.progress(1)
            await meanwhile(play)
    assert [row["who"] for row in await ledger.fetch("select who from effects")] == ["B"]


# --- who is next


async def _one_running_two_parked(pool: Pool) -> tuple[PostgresJobQueue, Lease, list[int]]:
    """Everything behind the running job has been taken out of the way of claims."""
    queue = queue_on(pool, retry_s=600, rescue_retry_s=600, few_sources=0)
    await pool.execute(
        "insert into collection_tasks (task_type, source) select 'collect', 'alpha' from generate_series(1, 4)"
    )
    lease = await claim_one(queue)
    assert await queue.claim("w2", ALL_TYPES, 10) == []
    waiting = [row["id"] for row in await pool.fetch("select id from collection_tasks where status = 'queued'")]
    return queue, lease, sorted(waiting)


@pytest.mark.parametrize("end", ["F", "X", "S", "C then S", "R", "C then R", "given back and stopped"])
async def test_however_a_job_leaves_its_source_the_next_in_line_is_found(end: str, ledger: Pool) -> None:
    """S38, S48: nothing sweeps here; who leaves wakes who waits."""
    queue, lease, waiting = await _one_running_two_parked(ledger)
    if end in {"C then S", "C then R", "given back and stopped"}:
        await queue.cancel(lease.job.id)
    if end.endswith("R"):
        await expire(ledger, lease.job.id)
        assert await queue.rescue() == 1
    elif end == "given back and stopped":
        assert await queue.release([lease]) == 1
    else:
        assert await queue.finish(lease, ENDS[end[-1]], error=("transient", "x") if end == "X" else None)
    assert (await claim_one(queue, "w2")).job.id == waiting[0]


async def _cancel_first(queue: PostgresJobQueue, pool: Pool, first: int) -> None:
    assert (await queue.cancel(first)).status is JobStatus.CANCELLED


async def _delete_first(queue: PostgresJobQueue, pool: Pool, first: int) -> None:
    await pool.execute("delete from collection_tasks where id = $1", first)


async def _put_first_off(queue: PostgresJobQueue, pool: Pool, first: int) -> None:
    await pool.execute(
        "update collection_tasks set scheduled_at = clock_timestamp() + interval '1 h' where id = $1", first
    )


async def _move_first_away(queue: PostgresJobQueue, pool: Pool, first: int) -> None:
    await pool.execute("update collection_tasks set source = 'elsewhere' where id = $1", first)


async def _end_first_by_hand(queue: PostgresJobQueue, pool: Pool, first: int) -> None:
    await pool.execute(
        "update collection_tasks set status = 'failed', finished_at = clock_timestamp() where id = $1", first
    )


LEAVE_THE_QUEUE = [_cancel_first, _delete_first, _put_first_off, _move_first_away, _end_first_by_hand]


@pytest.mark.parametrize("leave", LEAVE_THE_QUEUE)
@pytest.mark.parametrize("when", ["while another runs", "when it is at the head"])
async def test_however_a_waiting_job_leaves_the_queue_the_one_behind_it_is_found(
    when: str, leave: Callable[[PostgresJobQueue, Pool, int], Awaitable[None]], ledger: Pool
) -> None:
    """S38, S48."""
    queue, lease, waiting = await _one_running_two_parked(ledger)
    if when == "while another runs":
        await leave(queue, ledger, waiting[0])
        assert await queue.finish(lease, JobStatus.COMPLETED)
    else:
        assert await queue.finish(lease, JobStatus.COMPLETED)
        await leave(queue, ledger, waiting[0])
    found = {lease.job.source: lease.job.id for lease in await queue.claim("w2", ALL_TYPES, 10)}
    assert found.pop("alpha") == waiting[1]
    assert found == ({"elsewhere": waiting[0]} if leave is _move_first_away else {})


@pytest.mark.parametrize("kind", [TaskType.COLLECT, TaskType.CLEAR_CACHE])
async def test_a_stopped_job_that_is_queued_again_by_hand_is_found(kind: TaskType, ledger: Pool) -> None:
    """S38: also one that had been put aside, behind a busy source, when it was stopped."""
    queue, lease, waiting = await _one_running_two_parked(ledger)
    await queue.cancel(waiting[0])
    assert await queue.finish(lease, JobStatus.COMPLETED)
    await ledger.execute("delete from collection_tasks where id = any ($1)", waiting[1:])
    by_hand = "update collection_tasks set status = 'queued', finished_at = null, task_type = $2 where id = $1"
    await ledger.execute(by_hand, waiting[0], kind.value)
    assert (await claim_one(queue)).job.id == waiting[0]


@pytest.mark.parametrize("hold", ["a wish for the same work", "a change by hand"])
async def test_a_job_whose_row_is_held_while_its_source_gets_free_is_found_once_it_is_let_go(
    hold: str, ledger: Pool
) -> None:
    """S38, Q28: whoever frees the source waits for nobody's open transaction, and finds the row held."""
    queue = queue_on(ledger, few_sources=0)
    await queue.submit(wish())
    lease = await claim_one(queue)
    waiting, _ = await queue.submit(wish())
    assert await queue.claim("w2", ALL_TYPES, 10) == []
    async with ledger.acquire() as connection, connection.transaction():
        if hold == "a wish for the same work":
            twin, created = await queue.submit_in(connection, wish())
            assert (twin.id, created) == (waiting.id, False)
        else:
            await connection.execute("update collection_tasks set priority = 1 where id = $1", waiting.id)
        assert await asyncio.wait_for(queue.finish(lease, JobStatus.COMPLETED), 60)
    assert (await claim_one(queue)).job.id == waiting.id


async def test_stopping_a_whole_source_from_the_front_or_the_back_leaves_nothing_behind(ledger: Pool) -> None:
    """S48."""
    queue, lease, waiting = await _one_running_two_parked(ledger)
    for task_id in (waiting[-1], *waiting[:-1], lease.job.id):
        await queue.cancel(task_id)
    assert await queue.finish(lease, JobStatus.CANCELLED)
    assert await queue.claim("w2", ALL_TYPES, 10) == []
    late, _ = await queue.submit(wish())
    assert (await claim_one(queue)).job.id == late.id


# --- a clearing that is cut


class CutShort(PostgresFactStore):
    """A store whose worker vanishes before its n-th delete is committed."""

    deletes_left = 0

    async def clear_chunk(self, tx: JobTx, table: str, source: str, limit: int) -> int:
        gone = await super().clear_chunk(tx, table, source, limit)
        self.deletes_left -= 1
        if self.deletes_left < 0:
            raise ConnectionAbortedError
        return gone


CLEARED = """
create table owned_rows (id bigint generated always as identity primary key, source text, fact_key text);
insert into owned_rows (source) select s from unnest('{alpha,beta}'::text[]) s, generate_series(1, 25);
insert into collected_data (source, external_key, kind)
select s, n::text, 'thing' from unnest('{alpha,beta}'::text[]) s, generate_series(1, 35) n;
create table seen (n serial, what text, facts_left bigint);
create function note() returns trigger language plpgsql as $$ begin
    insert into seen (what, facts_left)
    select tg_table_name, count(*) from collected_data where source = 'alpha';
    return null;
end $$;
create trigger note after delete on owned_rows for each statement execute function note();
create trigger note after delete on collected_data for each statement execute function note();
"""


@pytest.mark.parametrize(
    ("chunks", "how"),
    [
        (0, "crashed"),
        (2, "crashed"),
        (2, "cancelled"),
        (4, "crashed"),
        (6, "crashed"),
        (6, "cancelled"),
        (8, "crashed"),
    ],
)
async def test_a_clearing_cut_anywhere_is_taken_up_where_it_was_and_clears_facts_first(
    chunks: int, how: str, pg_pool: Pool
) -> None:
    """S41, S50, S77, S78: 4 chunks of facts, then 3 of owned rows, each until one is empty."""
    await pg_pool.execute(CLEARED)
    queue = queue_on(pg_pool, rescue_retry_s=0)
    facts = CutShort(pg_pool)
    facts.deletes_left = chunks
    task = ClearDataTask(queue, facts, lambda source: ("owned_rows",), chunk_rows=10)
    job, _ = await queue.submit(wish(TaskType.CLEAR_DATA))
    lease = await claim_one(queue)
    with pytest.raises(BackendError):
        await task(lease)
    kept = sum((10, 10, 10, 5, 0, 10, 10, 5, 0)[:chunks])
    assert (await row_of(pg_pool, job.id))["records_processed"] == kept

    facts.deletes_left = 100
    if how == "cancelled":
        await queue.cancel(job.id)
        with pytest.raises(LeaseLost):
            await task(lease)
        assert await queue.finish(lease, JobStatus.CANCELLED)
        row = await row_of(pg_pool, job.id)
        assert (row["status"], row["records_processed"]) == ("cancelled", kept)
        job, _ = await queue.submit(wish(TaskType.CLEAR_DATA))
        kept = 0
    else:
        await expire(pg_pool, job.id)
        assert await queue.rescue() == 1
    lease = await claim_one(queue)
    assert lease.job.records_processed == kept
    await task(lease)
    assert await queue.finish(lease, JobStatus.COMPLETED)
    await _everything_is_cleared(pg_pool, job.id, 60 if how == "crashed" else None)


async def _everything_is_cleared(pool: Pool, task_id: int, counted: int | None) -> None:
    row = await row_of(pool, task_id)
    assert row["status"] == "completed" and row["records_processed"] == (counted or row["records_processed"])
    assert not await pool.fetchval("select count(*) from seen where what = 'owned_rows' and facts_left > 0")
    for table, left in (("collected_data", 35), ("owned_rows", 25)):
        by_source = await pool.fetch(f"select source, count(*) from {table} group by 1")
        assert [tuple(row) for row in by_source] == [("beta", left)]
