"""Eight claimers on one ledger while jobs are cancelled, leases run out, workers vanish and zombies come back."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field

import pytest

import ledger_oracle
from ledger_tools import ALL_TYPES, claim_one, queue_on, row_of, wish
from planetwire.database.postgres import Pool, open_pool
from planetwire.errors import LeaseLost, StateError
from planetwire.jobs.ledger.jobs_postgres import PostgresJobQueue
from planetwire.model import JobStatus, Lease

CLAIMERS, SOURCES, JOBS, BATCHES = 8, 12, 360, 3
WITHIN_S = 90.0

SUBMIT = """
insert into collection_tasks (task_type, source, priority, payload, max_attempts, created_at)
select (array['collect', 'collect', 'clear_data', 'clear_cache'])[1 + n % 4], 's' || (random() * $1)::int,
    (random() * 3)::int, jsonb_build_object('batches', $3::int), 1 + n % 7, clock_timestamp() - interval '1 h'
from generate_series(1, $2) n
"""
SILENCE_ONE = """
update collection_tasks set lease_until = clock_timestamp() - interval '1 s'
where id = (select id from collection_tasks where status in ('running', 'cancelling') order by random() limit 1)
"""
LEFT = "select count(*) from collection_tasks where finished_at is null"


@dataclass
class Stress:
    pool: Pool
    queue: PostgresJobQueue
    done: asyncio.Event = field(default_factory=asyncio.Event)
    seen: dict[str, int] = field(default_factory=dict)

    def note(self, what: str) -> None:
        self.seen[what] = self.seen.get(what, 0) + 1

    async def claimer(self, name: str) -> None:
        while not self.done.is_set():
            leases = await self.queue.claim(name, ALL_TYPES, random.randint(1, 4))
            await asyncio.gather(*(self.run(lease) for lease in leases))
            if not leases and not await self.pool.fetchval(LEFT):
                self.done.set()

    async def run(self, lease: Lease) -> None:
        if random.random() < 0.05:
            return self.note("crash")
        try:
            for batch in await ledger_oracle.batches_left(self.pool, lease):
                await self.batch(lease, batch)
        except LeaseLost:
            self.note("lost")
            await self.queue.finish(lease, JobStatus.CANCELLED)
        else:
            await self.end(lease)

    async def batch(self, lease: Lease, batch: int) -> None:
        if random.random() < 0.03:
            await self.fall_asleep(lease)
        async with self.queue.batch(lease) as tx:
            await ledger_oracle.leave_effect(tx, lease, batch, 5)
            if random.random() < 0.03:  # also in the middle of a batch
                await self.fall_asleep(lease)

    async def fall_asleep(self, lease: Lease) -> None:
        """A zombie: when it wakes up, its job is somebody else's."""
        self.note("zombie")
        await self.pool.execute(
            "update collection_tasks set lease_until = clock_timestamp() - interval '1 s'"
            " where id = $1 and lease_seq = $2 and status in ('running', 'cancelling')",
            lease.job.id,
            lease.seq,
        )
        await self.queue.rescue()
        await asyncio.sleep(random.random() / 20)  # a while in which others may take it

    async def end(self, lease: Lease) -> None:
        kind = random.random()
        if kind < 0.04:
            self.note("released")
            await self.queue.release([lease])
        elif kind < 0.1:
            self.note("failed")
            await self.queue.finish(lease, JobStatus.FAILED, error=("transient", "x"))
        elif await self.queue.finish(lease, JobStatus.COMPLETED):
            self.note("completed")

    async def canceller(self, first: int) -> None:
        while not self.done.is_set():
            try:
                await self.queue.cancel(first + random.randrange(JOBS))
                self.note("cancel")
            except StateError:
                self.note("cancel refused")
            await asyncio.sleep(0.02)

    async def rescuer(self) -> None:
        while not self.done.is_set():
            await self.pool.execute(SILENCE_ONE)
            if await self.queue.rescue():
                self.note("rescue")
            await asyncio.sleep(0.005)


@pytest.mark.parametrize("few_sources", [0, 200], ids=["parking", "looking at each source"])
async def test_eight_claimers_under_trouble_break_no_promise(few_sources: int, pg_dsn: str) -> None:
    """S37, S38, S48, S50, S51, Q16, Q17, Q18: nothing sweeps; a lost wake-up would be a job that never ends."""
    pool = await open_pool(pg_dsn, application="test", max_size=24)
    try:
        await ledger_oracle.install(pool)
        await pool.execute(SUBMIT, SOURCES, JOBS, BATCHES)
        first = await pool.fetchval("select min(id) from collection_tasks")
        stress = Stress(pool, queue_on(pool, retry_s=0.01, rescue_retry_s=0.01, few_sources=few_sources))
        async with asyncio.timeout(WITHIN_S), asyncio.TaskGroup() as group:
            for n in range(CLAIMERS):
                group.create_task(stress.claimer(f"w{n}"))
            group.create_task(stress.canceller(first))
            group.create_task(stress.rescuer())
        assert await ledger_oracle.violations(pool) == []
        assert await pool.fetchval(LEFT) == 0
        assert stress.seen.keys() >= {"crash", "lost", "zombie", "released", "failed", "completed", "cancel", "rescue"}
        assert await stress.queue.sweep() == 0
    finally:
        await pool.close()


@pytest.mark.parametrize(
    ("deed", "words"),
    [
        ("insert into effects select job, batch, lease, source, rows from effects", "twice"),
        ("delete from effects", "completed with batches []"),
        ("update collection_tasks set records_processed = 4", "says 4 rows and committed 5"),
        ("update collection_tasks set status = 'queued', finished_at = null", "went from completed to queued"),
        ("update collection_tasks set status = 'cancelled'", "went from completed to cancelled"),
    ],
)
async def test_the_oracle_sees_what_it_is_there_for(deed: str, words: str, pg_pool: Pool) -> None:
    await ledger_oracle.install(pg_pool)
    queue = queue_on(pg_pool)
    await queue.submit(wish(payload={"batches": 1}))
    lease = await claim_one(queue)
    async with queue.batch(lease) as tx:
        await ledger_oracle.leave_effect(tx, lease, 0, 5)
    assert await queue.finish(lease, JobStatus.COMPLETED)
    assert await ledger_oracle.violations(pg_pool) == []
    await pg_pool.execute(deed)
    assert any(words in violation for violation in await ledger_oracle.violations(pg_pool))


async def test_the_oracle_sees_a_batch_after_its_lease_an_overlap_and_a_job_that_was_passed(pg_pool: Pool) -> None:
    await ledger_oracle.install(pg_pool)
    await pg_pool.execute(SUBMIT, 0, 12, 1)
    await pg_pool.execute("update collection_tasks set priority = 1")
    queue = queue_on(pg_pool)
    lease = await claim_one(queue)
    late = await pg_pool.fetchval(
        "select max(id) from collection_tasks where status = 'queued' and task_type = 'clear_data'"
    )
    assert await queue.finish(lease, JobStatus.COMPLETED)
    await pg_pool.execute(
        "insert into effects (job, batch, lease, source, rows) values ($1, 0, $2, 's0', 0)", lease.job.id, lease.seq
    )
    # As if two had been let in: past the head, and past the index that is the law.
    await pg_pool.execute("drop index collection_tasks_busy")
    start = "update collection_tasks set status = 'running', lease_until = clock_timestamp() where id = $1"
    await pg_pool.execute(start, late)
    await pg_pool.execute(start, (await claim_one_of(pg_pool, late)))
    found = " · ".join(await ledger_oracle.violations(pg_pool))
    assert f"committed outside lease {lease.seq}" in found and "ran at once" in found
    assert f"job {late} of s0 was taken before" in found
    assert (await row_of(pg_pool, late))["status"] == "running"


async def claim_one_of(pool: Pool, but: int) -> int:
    found: int = await pool.fetchval(
        "select min(id) from collection_tasks where status = 'queued' and task_type = 'collect' and id <> $1", but
    )
    return found
