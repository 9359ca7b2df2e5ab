"""Who may still commit: fences, cancels, crashes and rescues in every order."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from ledger_tools import claim_one, expire, queue_on, row_of, status_of, until, wish
from planetwire.database.postgres import Pool
from planetwire.errors import BackendError, LeaseLost
from planetwire.jobs.ledger.jobs_postgres import PostgresJobQueue
from planetwire.model import JobStatus, Lease


@pytest.fixture
async def scratch(pg_pool: Pool) -> Pool:
    await pg_pool.execute("create table scratch (batch text)")
    return pg_pool


async def _batch(queue: PostgresJobQueue, lease: Lease, name: str, rows: int = 1) -> None:
    async with queue.batch(lease) as tx:
        await tx.connection.execute("insert into scratch select $1 from generate_series(1, $2)", name, rows)
        tx.progress(rows)


async def _committed(pool: Pool) -> list[str]:
    return [row["batch"] for row in await pool.fetch("select distinct batch from scratch order by 1")]


async def test_rows_and_progress_commit_together_or_not_at_all(scratch: Pool) -> None:
    """S45, S50, S51."""
    queue = queue_on(scratch)
    await queue.submit(wish())
    lease = await claim_one(queue)
    async with queue.batch(lease) as tx:
        await tx.connection.execute("insert into scratch select 'a' from generate_series(1, 30)")
        tx.progress(10, total=100)
        tx.progress(20, message="thirty")
    with pytest.raises(ValueError, match="bad row"):
        async with queue.batch(lease) as tx:
            await tx.connection.execute("insert into scratch values ('b')")
            tx.progress(1)
            raise ValueError("bad row")
    row = await row_of(scratch, lease.job.id)
    assert (row["records_processed"], row["records_total"], row["message"]) == (30, 100, "thirty")
    assert row["progress"] == pytest.approx(0.3)
    assert await _committed(scratch) == ["a"]


async def test_the_last_commit_of_a_dead_worker_stands(pg_pool: Pool) -> None:
    """Q18: what the server still has in hand is waited for, and a job that it ends is not touched."""
    queue = queue_on(pg_pool)
    await queue.submit(wish())
    lease = await claim_one(queue, "dead")
    async with pg_pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        ids, seqs = f"{{{lease.job.id}}}", f"{{{lease.seq}}}"
        await connection.execute("select planet_complete_jobs($1::text::bigint[], $2::text::bigint[])", ids, seqs)
        ended = await connection.fetchrow("select * from collection_tasks where id = $1", lease.job.id)
        taking = asyncio.create_task(queue.take_back(["dead"]))

        async def waits() -> bool:
            return bool(await pg_pool.fetchval("select count(*) from pg_stat_activity where wait_event_type = 'Lock'"))

        await until(waits)
        await transaction.commit()
    assert await taking == 0
    assert await row_of(pg_pool, lease.job.id) == ended


async def test_a_total_that_was_too_small_grows_with_the_rows(scratch: Pool) -> None:
    queue = queue_on(scratch)
    await queue.submit(wish())
    lease = await claim_one(queue)
    async with queue.batch(lease) as tx:
        tx.progress(30, total=20)
    row = await row_of(scratch, lease.job.id)
    assert (row["records_processed"], row["records_total"], row["progress"]) == (30, 30, 1.0)


async def test_a_zombie_cannot_commit_after_its_job_was_taken(scratch: Pool) -> None:
    """S38, Q18."""
    queue = queue_on(scratch, rescue_retry_s=0)
    await queue.submit(wish())
    zombie = await claim_one(queue, "zombie")
    await _batch(queue, zombie, "before")
    await expire(scratch, zombie.job.id)
    assert await queue.rescue() == 1
    heir = await claim_one(queue, "heir")
    assert heir.job.id == zombie.job.id and heir.seq > zombie.seq and heir.job.attempts == 2
    with pytest.raises(LeaseLost):
        await _batch(queue, zombie, "late")
    await _batch(queue, heir, "heir")
    assert await queue.heartbeat([zombie, heir]) == {heir.job.id: JobStatus.RUNNING}
    assert await queue.heartbeat([zombie]) == {}
    assert not await queue.finish(zombie, JobStatus.COMPLETED)
    assert await status_of(scratch, heir.job.id) is JobStatus.RUNNING
    assert await queue.finish(heir, JobStatus.COMPLETED)
    assert await _committed(scratch) == ["before", "heir"]
    # What the first attempt did is not counted twice.
    assert (await row_of(scratch, heir.job.id))["records_processed"] == 1


async def test_a_batch_that_was_open_when_the_job_was_taken_is_rolled_back(scratch: Pool) -> None:
    """S51, Q18."""
    queue = queue_on(scratch, rescue_retry_s=0)
    await queue.submit(wish())
    lease = await claim_one(queue)
    with pytest.raises(LeaseLost):
        async with queue.batch(lease) as tx:
            await tx.connection.execute("insert into scratch values ('open')")
            await expire(scratch, lease.job.id)
            assert await queue.rescue() == 1
    assert await _committed(scratch) == []


async def test_no_batch_commits_once_a_cancel_is_visible_and_earlier_ones_stay(scratch: Pool) -> None:
    """S47, S48, S50, S51, Q17."""
    queue = queue_on(scratch)
    await queue.submit(wish())
    lease = await claim_one(queue)
    await _batch(queue, lease, "kept", 7)
    with pytest.raises(LeaseLost):
        async with queue.batch(lease) as tx:
            await tx.connection.execute("insert into scratch values ('open')")
            tx.progress(1)
            await queue.cancel(lease.job.id)
    assert await queue.finish(lease, JobStatus.CANCELLED)
    row = await row_of(scratch, lease.job.id)
    assert (row["status"], row["records_processed"]) == ("cancelled", 7)
    assert await _committed(scratch) == ["kept"]


async def test_a_cancel_waits_for_the_commit_in_flight_and_that_batch_counts(scratch: Pool) -> None:
    """S50."""
    queue = queue_on(scratch)
    await queue.submit(wish())
    lease = await claim_one(queue)
    committing = asyncio.Event()
    go_on = asyncio.Event()

    async def slow_commit() -> None:
        # A deferred constraint trigger that waits stands for a commit that takes its time.
        async with scratch.acquire() as connection, connection.transaction():
            await connection.execute("insert into scratch values ('in flight')")
            await connection.execute(
                "update collection_tasks set records_processed = 1 where id = $1 and status = 'running'", lease.job.id
            )
            committing.set()
            await go_on.wait()

    commit = asyncio.create_task(slow_commit())
    await committing.wait()
    cancel = asyncio.create_task(queue.cancel(lease.job.id))
    await asyncio.wait({cancel}, timeout=0.1)
    assert not cancel.done()
    go_on.set()
    await commit
    assert (await cancel).records_processed == 1


# Every order of a cancel (C), the worker's own end (F: finished, X: failed, S: stopped), a crash noticed by the
# rescue (R): the state after each, and the final one never changes.
ORDERS = [
    ("CF", ["cancelling", "completed"]),
    ("CX", ["cancelling", "cancelled"]),
    ("CS", ["cancelling", "cancelled"]),
    ("CR", ["cancelling", "cancelled"]),
    ("FC", ["completed", "completed"]),
    ("FR", ["completed", "completed"]),
    ("XC", ["queued", "cancelled"]),
    ("XR", ["queued", "queued"]),
    ("RC", ["queued", "cancelled"]),
    ("RF", ["queued", "queued"]),
    ("RX", ["queued", "queued"]),
    ("RS", ["queued", "queued"]),
    ("CRF", ["cancelling", "cancelled", "cancelled"]),
    ("CFR", ["cancelling", "completed", "completed"]),
    ("CSC", ["cancelling", "cancelled", "cancelled"]),
    ("CCX", ["cancelling", "cancelling", "cancelled"]),
    ("RCF", ["queued", "cancelled", "cancelled"]),
    ("FXS", ["completed", "completed", "completed"]),
]


@pytest.mark.parametrize(("order", "states"), ORDERS, ids=[order for order, _ in ORDERS])
async def test_cancel_finish_and_crash_in_any_order_agree(order: str, states: list[str], pg_pool: Pool) -> None:
    """S48, Q17, Q18."""
    queue = queue_on(pg_pool)
    await queue.submit(wish())
    lease = await claim_one(queue)
    for step, state in zip(order, states, strict=True):
        final = (await status_of(pg_pool, lease.job.id)).is_final
        if step == "C":
            try:
                await queue.cancel(lease.job.id)
            except Exception as error:
                assert final and getattr(error, "code", None) == "job_final"
        elif step == "R":
            if (await row_of(pg_pool, lease.job.id))["lease_until"] is not None:
                await expire(pg_pool, lease.job.id)
            await queue.rescue()
        else:
            outcome = {"F": JobStatus.COMPLETED, "X": JobStatus.FAILED, "S": JobStatus.CANCELLED}[step]
            await queue.finish(lease, outcome, error=("transient", "x") if step == "X" else None)
        assert (await row_of(pg_pool, lease.job.id))["status"] == state
    row = await row_of(pg_pool, lease.job.id)
    assert (row["finished_at"] is not None) == JobStatus(row["status"]).is_final
    assert row["lease_until"] is None


async def test_a_lost_job_runs_again_soon_and_fails_after_its_last_attempt(pg_pool: Pool) -> None:
    """Q18: lease + 5 s includes the first back-off, which is 1 s."""
    queue = queue_on(pg_pool)
    await queue.submit(wish())
    for attempt in (1, 2, 3):
        await pg_pool.execute("update collection_tasks set scheduled_at = null")
        lease = await claim_one(queue)
        assert lease.job.attempts == attempt
        assert await queue.rescue() == 0
        await expire(pg_pool, lease.job.id)
        assert await queue.rescue() == 1
        if attempt == 1:
            wait_s = await pg_pool.fetchval(
                "select extract(epoch from scheduled_at - clock_timestamp()) from collection_tasks"
            )
            assert 0 < wait_s <= 1
    row = await row_of(pg_pool, lease.job.id)
    assert (row["status"], row["error_code"]) == ("failed", "worker_lost")


async def test_two_rescuers_at_once_take_a_lost_job_back_once(pg_pool: Pool) -> None:
    queue = queue_on(pg_pool)
    for n in range(20):
        await queue.submit(wish(source=f"s{n}"))
    leases = await queue.claim("w1", ["collect"], 20)
    for lease in leases:
        await expire(pg_pool, lease.job.id)
    counts = await asyncio.gather(*(queue.rescue() for _ in range(4)))
    assert sum(counts) == 20


async def test_a_heartbeat_extends_the_lease_by_the_database_clock(pg_pool: Pool) -> None:
    queue = queue_on(pg_pool, lease_s=30)
    await queue.submit(wish())
    lease = await claim_one(queue)
    await pg_pool.execute("update collection_tasks set lease_until = clock_timestamp() + interval '1 s'")
    await queue.heartbeat([lease])
    left_s = await pg_pool.fetchval("select extract(epoch from lease_until - clock_timestamp()) from collection_tasks")
    assert 29 < left_s <= 30


async def test_heartbeats_and_progress_touch_no_index(pg_pool: Pool) -> None:
    """They stay HOT updates, so a long job does not bloat the ledger."""
    queue = queue_on(pg_pool)
    await queue.submit(wish())
    lease = await claim_one(queue)
    async with pg_pool.acquire() as connection, connection.transaction():
        hot = "select n_tup_upd, n_tup_hot_upd from pg_stat_xact_user_tables where relname = 'collection_tasks'"
        before = await connection.fetchrow(hot)
        for _ in range(5):
            await connection.execute(
                "update collection_tasks set lease_until = clock_timestamp(), heartbeat_at = clock_timestamp(),"
                " records_processed = records_processed + 1 where id = $1",
                lease.job.id,
            )
        after = await connection.fetchrow(hot)
        assert (after[0] - before[0], after[1] - before[1]) == (5, 5)


async def test_a_deadlock_with_somebodys_own_sql_says_that_the_batch_may_be_repeated(scratch: Pool) -> None:
    queue = queue_on(scratch)
    await scratch.execute("create table pair (id int primary key, n int); insert into pair values (1, 0), (2, 0)")
    await queue.submit(wish())
    lease = await claim_one(queue)

    async def theirs(locked: asyncio.Event, go: asyncio.Event) -> None:
        async with scratch.acquire() as connection, connection.transaction():
            await connection.execute("update pair set n = 1 where id = 1")
            locked.set()
            await go.wait()

            async def ours_waits() -> bool:  # who waits first is who finds the deadlock
                waiting = "select count(*) from pg_stat_activity where datname = current_database()"
                return bool(await scratch.fetchval(f"{waiting} and wait_event_type = 'Lock'"))

            await until(ours_waits)
            await connection.execute("update pair set n = 1 where id = 2")

    locked, go = asyncio.Event(), asyncio.Event()
    other = asyncio.create_task(theirs(locked, go))
    await asyncio.wait_for(locked.wait(), 60)
    with pytest.raises(BackendError) as refused:
        async with queue.batch(lease) as tx:
            await tx.connection.execute("update pair set n = 2 where id = 2")
            go.set()
            await tx.connection.execute("update pair set n = 2 where id = 1")
    assert refused.value.code == "deadlock"
    await other
    async with queue.batch(lease) as tx:
        await tx.connection.execute("update pair set n = 2")


async def test_a_broken_connection_in_a_batch_is_a_backend_error_and_commits_nothing(scratch: Pool) -> None:
    queue = queue_on(scratch)
    await queue.submit(wish())
    lease = await claim_one(queue)
    with pytest.raises(BackendError):
        async with queue.batch(lease) as tx:
            await tx.connection.execute("insert into scratch values ('open')")
            tx.progress(1)
            pid = tx.connection.get_server_pid()
            assert await scratch.fetchval("select pg_terminate_backend($1, 5000)", pid)
    assert await _committed(scratch) == []
    assert (await row_of(scratch, lease.job.id))["records_processed"] == 0
    await _batch(queue, lease, "again")
    assert isinstance(await scratch.fetchval("select count(*) from scratch"), int)


async def test_a_unique_violation_from_outside_makes_the_claim_look_again(pg_pool: Pool) -> None:
    queue = queue_on(pg_pool)
    await queue.submit(wish())
    await queue.submit(wish(source="beta"))
    async with pg_pool.acquire() as connection:
        outside = connection.transaction()
        await outside.start()
        await connection.execute(
            "insert into collection_tasks (task_type, source, status, lease_until)"
            " values ('collect', 'alpha', 'running', clock_timestamp() + interval '1 min')"
        )
        claim = asyncio.create_task(queue.claim("w1", ["collect"], 10))
        await asyncio.wait({claim}, timeout=0.2)
        assert not claim.done()
        await outside.commit()
    assert [lease.job.source for lease in await claim] == ["beta"]


async def test_a_violation_is_what_the_index_raises(pg_pool: Pool) -> None:
    """S38: the index, not the claim, is the authority."""
    await pg_pool.execute("insert into collection_tasks (task_type, source) values ('collect', 'a'), ('collect', 'a')")
    with pytest.raises(asyncpg.UniqueViolationError):
        await pg_pool.execute("update collection_tasks set status = 'running', lease_until = now()")
