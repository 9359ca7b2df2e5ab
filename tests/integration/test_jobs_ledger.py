"""Submitting, cancelling, finishing: the ledger's transitions one by one."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from ledger_tools import ALL_TYPES, SOMEBODY, claim_one, queue_on, row_of, status_of, wish
from planetwire.database.postgres import Pool
from planetwire.errors import LeaseLost, NotFound, StateError
from planetwire.jobs.ledger.board_postgres import PostgresJobBoard
from planetwire.jobs.ledger.desk_postgres import PostgresJobDesk
from planetwire.model import JobStatus, TaskType


async def test_a_plain_insert_is_a_job_that_can_be_claimed_at_once(pg_pool: Pool) -> None:
    """S1, S4, S5, S36."""
    await pg_pool.execute("insert into collection_tasks (task_type, source) values ('clear_data', 'alpha')")
    lease = await claim_one(queue_on(pg_pool))
    assert (lease.job.task_type, lease.job.source, lease.job.priority) == (TaskType.CLEAR_DATA, "alpha", 100)
    assert lease.job.payload == {} and lease.job.records_processed == 0
    assert (lease.job.attempts, lease.job.max_attempts, lease.seq) == (1, 3, 1)
    row = await row_of(pg_pool, lease.job.id)
    assert row["started_at"] is not None and row["lease_until"] is not None


@pytest.mark.parametrize(
    ("columns", "values"),
    [
        ("task_type, source", "'paint', 'alpha'"),
        ("task_type, source, status", "'collect', 'alpha', 'resting'"),
        ("task_type", "'collect'"),
        ("task_type, source, status", "'collect', 'alpha', 'running'"),
        ("task_type, source, progress", "'collect', 'alpha', 1.5"),
        ("task_type, source, payload", "'collect', 'alpha', '[]'"),
    ],
)
async def test_rows_that_no_worker_could_run_are_refused_by_the_table(columns: str, values: str, pg_pool: Pool) -> None:
    """S36."""
    with pytest.raises(asyncpg.CheckViolationError):
        await pg_pool.execute(f"insert into collection_tasks ({columns}) values ({values})")


async def test_two_running_write_jobs_of_a_source_are_refused_by_the_table(pg_pool: Pool) -> None:
    """S38, Q16."""
    running = "insert into collection_tasks (task_type, source, status, lease_until) values ($1, 'alpha', $2, now())"
    await pg_pool.execute(running, "collect", "cancelling")
    with pytest.raises(asyncpg.UniqueViolationError):
        await pg_pool.execute(running, "clear_data", "running")
    await pg_pool.execute(running, "clear_cache", "running")
    await pg_pool.execute(running, "earth_refresh", "running")


async def test_a_queued_job_of_the_same_kind_is_returned_instead_of_a_second(pg_pool: Pool) -> None:
    """S44, Q28."""
    queue = queue_on(pg_pool)
    first, created = await queue.submit(wish())
    again, created_again = await queue.submit(wish(priority=5))
    other, created_other = await queue.submit(wish(TaskType.CLEAR_DATA))
    assert (created, created_again, created_other) == (True, False, True)
    assert again.id == first.id != other.id
    await claim_one(queue)
    behind, created_behind = await queue.submit(wish())
    assert created_behind and behind.id != first.id


async def test_many_clicks_at_once_make_one_job(pg_pool: Pool) -> None:
    """Q28."""
    queue = queue_on(pg_pool)
    answers = await asyncio.gather(*(queue.submit(wish()) for _ in range(10)))
    assert len({job.id for job, _ in answers}) == 1
    assert sum(created for _, created in answers) == 1


async def test_refreshes_of_different_layers_are_different_jobs(pg_pool: Pool) -> None:
    """S43, Q28."""
    queue = queue_on(pg_pool)
    for layer in ("satellites", "earthquakes", "satellites"):
        await queue.submit(wish(TaskType.EARTH_REFRESH, None, payload={"layer": layer}))
    await queue.submit(wish(TaskType.EARTH_REFRESH, None))
    assert await pg_pool.fetchval("select count(*) from collection_tasks") == 3


async def test_an_idempotency_key_gives_the_same_job_also_after_it_ended(pg_pool: Pool) -> None:
    """Q28."""
    queue = queue_on(pg_pool)
    first, _ = await queue.submit(wish(idempotency_key="k-1"))
    await queue.finish(await claim_one(queue), JobStatus.COMPLETED)
    again, created = await queue.submit(wish(idempotency_key="k-1"))
    assert (again.id, again.status, created) == (first.id, JobStatus.COMPLETED, False)
    with pytest.raises(StateError) as refused:
        await queue.submit(wish(source="beta", idempotency_key="k-1"))
    assert refused.value.code == "idempotency_key_reused"


async def test_a_person_brings_a_waiting_job_forward_and_the_schedule_does_not(pg_pool: Pool) -> None:
    """Q28."""
    queue = queue_on(pg_pool, retry_s=600)
    scheduled = {"scheduled": True}
    job, _ = await queue.submit(wish(payload=scheduled))
    await queue.finish(await claim_one(queue), JobStatus.FAILED, error=("transient", "no answer"))
    same, _ = await queue.submit(wish(payload=scheduled))
    assert same.id == job.id and not await queue.claim("w1", ALL_TYPES, 1)
    forward, created = await queue.submit(wish())
    assert (forward.id, created) == (job.id, False)
    lease = await claim_one(queue)
    assert lease.job.id == job.id and lease.job.payload == {}


async def test_cancelling_a_queued_job_ends_it_and_a_final_job_stays_as_it_is(pg_pool: Pool) -> None:
    """S48, Q17."""
    queue = queue_on(pg_pool)
    job, _ = await queue.submit(wish())
    cancelled = await queue.cancel(job.id)
    assert cancelled.status is JobStatus.CANCELLED and cancelled.finished_at is not None
    with pytest.raises(StateError) as refused:
        await queue.cancel(job.id)
    assert refused.value.code == "job_final"
    with pytest.raises(NotFound):
        await queue.cancel(job.id + 1)
    assert not await queue.claim("w1", ALL_TYPES, 1)


async def test_cancelling_a_running_job_twice_asks_once(pg_pool: Pool) -> None:
    """S48, Q17."""
    queue = queue_on(pg_pool)
    await queue.submit(wish())
    lease = await claim_one(queue)
    first = await queue.cancel(lease.job.id)
    again = await queue.cancel(lease.job.id)
    assert first.status is again.status is JobStatus.CANCELLING
    assert first.cancel_requested_at == again.cancel_requested_at is not None
    assert await queue.heartbeat([lease]) == {lease.job.id: JobStatus.CANCELLING}


async def test_a_completed_job_has_full_progress_and_is_final(pg_pool: Pool) -> None:
    """S45, Q17."""
    queue = queue_on(pg_pool)
    await queue.submit(wish())
    lease = await claim_one(queue)
    assert await queue.finish(lease, JobStatus.COMPLETED, message="done")
    assert await queue.finish(lease, JobStatus.COMPLETED, message="done")
    row = await row_of(pg_pool, lease.job.id)
    assert (row["status"], row["progress"], row["message"]) == ("completed", 1.0, "done")
    assert row["finished_at"] >= row["started_at"] and row["lease_until"] is None
    assert await queue.finish(lease, JobStatus.FAILED, error=("internal", "late"))
    assert await status_of(pg_pool, lease.job.id) is JobStatus.COMPLETED
    with pytest.raises(LeaseLost):
        async with queue.batch(lease) as tx:
            tx.progress(1)


async def test_a_failed_job_is_tried_again_later_until_its_attempts_are_used(pg_pool: Pool) -> None:
    """Q18."""
    queue = queue_on(pg_pool, retry_s=40)
    await queue.submit(wish())
    waits = []
    for _ in range(3):
        await pg_pool.execute("update collection_tasks set scheduled_at = null")
        lease = await claim_one(queue)
        assert await queue.finish(lease, JobStatus.FAILED, error=("transient", "no answer"))
        row = await row_of(pg_pool, lease.job.id)
        waits.append(
            await pg_pool.fetchval("select extract(epoch from scheduled_at - clock_timestamp()) from collection_tasks")
        )
    assert (row["status"], row["attempts"], row["error_code"], row["error"]) == (
        "failed",
        3,
        "transient",
        "no answer",
    )
    assert 29 < waits[0] <= 50 and 59 < waits[1] <= 100
    assert row["finished_at"] is not None


async def test_a_provider_that_asks_for_patience_gets_it(pg_pool: Pool) -> None:
    queue = queue_on(pg_pool, retry_s=1)
    await queue.submit(wish())
    await queue.finish(await claim_one(queue), JobStatus.FAILED, error=("transient", "429"), retry_after_s=900)
    wait_s = await pg_pool.fetchval("select extract(epoch from scheduled_at - clock_timestamp()) from collection_tasks")
    assert 890 < wait_s <= 900


@pytest.mark.parametrize("code", ["auth_refused", "not_found", "bad_request"])
async def test_a_hopeless_failure_is_not_tried_again(code: str, pg_pool: Pool) -> None:
    queue = queue_on(pg_pool)
    await queue.submit(wish())
    lease = await claim_one(queue)
    await queue.finish(lease, JobStatus.FAILED, error=(code, "no"))
    assert await status_of(pg_pool, lease.job.id) is JobStatus.FAILED


async def test_a_job_in_back_off_does_not_hold_its_source(pg_pool: Pool) -> None:
    """S38, S39."""
    queue = queue_on(pg_pool, retry_s=600)
    await queue.submit(wish())
    await queue.finish(await claim_one(queue), JobStatus.FAILED, error=("transient", "no answer"))
    behind, _ = await queue.submit(wish(TaskType.CLEAR_DATA))
    assert (await claim_one(queue)).job.id == behind.id


async def test_a_released_job_is_queued_again_and_its_attempt_is_not_counted(pg_pool: Pool) -> None:
    queue = queue_on(pg_pool)
    await queue.submit(wish())
    await queue.submit(wish(source="beta"))
    alpha, beta = await queue.claim("w1", ALL_TYPES, 2)
    await queue.cancel(beta.job.id)
    assert await queue.release([alpha, beta]) == 2
    assert (await row_of(pg_pool, alpha.job.id))["attempts"] == 0
    assert await status_of(pg_pool, alpha.job.id) is JobStatus.QUEUED
    assert await status_of(pg_pool, beta.job.id) is JobStatus.CANCELLED
    assert await queue.release([alpha, beta]) == 0
    with pytest.raises(LeaseLost):
        async with queue.batch(alpha):
            pass


async def test_the_doorbell_rings_only_while_its_gate_is_open(pg_dsn: str, pg_pool: Pool) -> None:
    """S11, Q18."""
    queue = queue_on(pg_pool)
    rings: asyncio.Queue[str] = asyncio.Queue()
    listener = await asyncpg.connect(pg_dsn)
    await listener.add_listener("planet_task_control", lambda *args: rings.put_nowait(args[3]))
    await queue.submit(wish())
    await pg_pool.execute("select pg_notify('planet_task_control', 'fence')")
    assert await asyncio.wait_for(rings.get(), 60) == "fence"
    await queue.open_gate(60)
    await queue.submit(wish(source="beta"))
    assert await asyncio.wait_for(rings.get(), 60) == ""
    leases = await queue.claim("w1", ALL_TYPES, 2)
    await queue.heartbeat(leases)
    await queue.cancel(leases[0].job.id)
    assert await asyncio.wait_for(rings.get(), 60) == ""
    await pg_pool.execute("select pg_notify('planet_task_control', 'fence')")
    assert await asyncio.wait_for(rings.get(), 60) == "fence"
    await listener.close()


async def test_the_board_pages_newest_first_and_shows_what_is_active(pg_pool: Pool) -> None:
    """S45, S46."""
    queue = queue_on(pg_pool)
    board = PostgresJobBoard(pg_pool)
    ids = [(await queue.submit(wish(source=f"s{n}")))[0].id for n in range(5)]
    first, cursor = await board.page(status=None, source=None, cursor=None, limit=3)
    rest, end = await board.page(status=None, source=None, cursor=cursor, limit=3)
    assert [job.id for job in [*first, *rest]] == ids[::-1] and end is None
    await queue.finish(await claim_one(queue), JobStatus.COMPLETED)
    await claim_one(queue)
    assert [job.status.value for job in await board.active()] == [
        "running",
        "queued",
        "queued",
        "queued",
        "completed",
    ]
    only, _ = await board.page(status="running", source="s1", cursor=None, limit=3)
    assert [job.id for job in only] == [ids[1]]
    await pg_pool.execute("update collection_tasks set finished_at = finished_at - interval '1 min'")
    assert len(await board.active()) == 4
    with pytest.raises(NotFound):
        await board.get(10**12)


async def test_a_retry_submits_the_same_work_again_once(pg_pool: Pool) -> None:
    """Q28."""
    queue = queue_on(pg_pool)
    board, desk = PostgresJobBoard(pg_pool), PostgresJobDesk(pg_pool, queue)
    job, _ = await queue.submit(wish(payload={"depth": 2, "scheduled": True}, priority=7))
    with pytest.raises(StateError) as refused:
        await desk.retry(SOMEBODY, [await board.get(job.id)])
    assert refused.value.code == "job_active"
    await queue.cancel(job.id)
    again, created = await desk.retry(SOMEBODY, [await board.get(job.id)])
    assert created and again.id != job.id
    assert (again.payload, again.priority, again.source) == ({"depth": 2}, 7, "alpha")
    assert await desk.retry(SOMEBODY, [await board.get(job.id)]) == (again, False)


async def test_ids_beyond_31_bits_work_everywhere(pg_pool: Pool) -> None:
    queue = queue_on(pg_pool)
    await pg_pool.execute("alter table collection_tasks alter column id restart with 3000000000")
    job, _ = await queue.submit(wish())
    lease = await claim_one(queue)
    assert job.id == lease.job.id == 3_000_000_000
    assert await queue.heartbeat([lease]) == await queue.look([lease]) == {job.id: JobStatus.RUNNING}
    async with queue.batch(lease) as tx:
        tx.progress(1)
    assert (await queue.cancel(job.id)).status is JobStatus.CANCELLING
    assert await queue.finish(lease, JobStatus.CANCELLED)
