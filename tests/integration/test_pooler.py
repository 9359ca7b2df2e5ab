"""Behind PgBouncer in transaction mode: everything works, by polling, and says so.

The pooler has three server connections; the tests have more clients, so that their statements really wander.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from ledger_tools import ALL_TYPES, claim_one, expire, fact, queue_on, row_of, status_of, until, wish
from planetwire.database.postgres import Pool, behind_pooler, connect, open_pool
from planetwire.errors import LeaseLost
from planetwire.facts.facts_postgres import PostgresFactStore
from planetwire.jobs.ledger.jobs_postgres import PostgresJobQueue
from planetwire.jobs.worker import Worker
from planetwire.layers.registry import EarthLayerAdapterRegistry
from planetwire.migrating.migrate import migrate_postgres, migrations
from planetwire.model import Batch, JobStatus, Lease, TaskType
from planetwire.outbox.changelog_postgres import PostgresChangeLog
from planetwire.outbox.upkeep.diagnosis_postgres import examine
from planetwire.outbox.wakeup_memory import MemoryWakeup
from planetwire.outbox.wakeup_postgres import PostgresWakeup
from planetwire.relay.payload import payload
from planetwire.relay.relay import Relay
from planetwire.runtime.clock import SystemClock
from planetwire.settings import JobSettings, RelaySettings
from planetwire.stream.log_postgres import PostgresEventLog
from planetwire.supervise.embedded_postgres import EmbeddedPostgres, dsn_of

CHANNEL = "planet_task_control"
SERVERS = 3  # connections of the pooler
SETTINGS = JobSettings(lease_s=2, heartbeat_s=0.2, poll_s=0.05, concurrency=4)
SOURCES = [f"s{n}" for n in range(12)]


@pytest_asyncio.fixture
async def pooled(pooled_dsn: str) -> AsyncIterator[Pool]:
    """A pool of ten clients of the pooler."""
    pool = await open_pool(pooled_dsn, application="test", min_size=10, max_size=10)
    try:
        yield pool
    finally:
        await pool.close()


async def test_a_pooler_is_noticed_and_a_server_is_not_taken_for_one(pooled_dsn: str, pg_dsn: str) -> None:
    for dsn, expected in ((pooled_dsn, True), (pg_dsn, False)):
        connection = await connect(dsn, application="test")
        assert await behind_pooler(connection) is expected
        await connection.close()


async def test_statements_of_one_client_wander_over_all_server_connections(pooled: Pool) -> None:
    """What the other tests here rely on, and that no statement misses what an earlier one prepared."""

    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(pooled.acquire()) for _ in range(3)]
        holders = [await stack.enter_async_context(pooled.acquire()) for _ in range(SERVERS)]
        for holder in holders:
            await holder.execute("begin")
        for number, client in enumerate(clients):
            servers: set[int] = set()
            for holder in holders:  # its server is the only one that is free
                await holder.execute("rollback")
                row = await client.fetchrow("select pg_backend_pid() as pid, $1::int8 + 0 as value", number)
                await holder.execute("begin")
                assert row["value"] == number
                servers.add(row["pid"])
            assert len(servers) == SERVERS
        for holder in holders:
            await holder.execute("rollback")


async def test_a_job_lives_its_life_behind_a_pooler(pooled: Pool) -> None:
    """Submit, twin, claim, batch, heartbeat, cancel, finish, rescue."""
    queue = queue_on(pooled, rescue_retry_s=0)
    job, created = await queue.submit(wish())
    twin, again = await queue.submit(wish())
    assert (created, again, twin.id) == (True, False, job.id)
    lease = await claim_one(queue)
    async with queue.batch(lease) as tx:
        tx.progress(10, total=20)
    assert await queue.heartbeat([lease]) == {job.id: JobStatus.RUNNING}

    await expire(pooled, job.id)
    assert await queue.rescue() == 1
    with pytest.raises(LeaseLost):
        async with queue.batch(lease) as tx:
            tx.progress(10)
    second = await claim_one(queue, "w2")
    async with queue.batch(second) as tx:
        tx.progress(5)
    assert (await queue.cancel(job.id)).status is JobStatus.CANCELLING
    with pytest.raises(LeaseLost):
        async with queue.batch(second) as tx:
            tx.progress(10)
    assert await queue.finish(second, JobStatus.CANCELLED)
    row = await row_of(pooled, job.id)
    assert (row["status"], row["records_processed"], row["attempts"]) == ("cancelled", 5, 2)

    other, _ = await queue.submit(wish(source="beta"))
    assert await queue.finish(await claim_one(queue), JobStatus.COMPLETED)
    assert await status_of(pooled, other.id) is JobStatus.COMPLETED


async def test_many_claimers_behind_a_pooler_never_share_a_source(pooled: Pool) -> None:
    """The locks of a claim are its transaction's, so they are kept wherever it runs."""
    queue = queue_on(pooled)
    await pooled.execute(
        "insert into collection_tasks (task_type, source) select 'collect', unnest($1::text[])", SOURCES * 3
    )
    running: set[str | None] = set()
    done: list[int] = []

    async def claimer(number: int) -> None:
        while len(done) < 3 * len(SOURCES):
            for lease in await queue.claim(f"w{number}", ALL_TYPES, 2):
                assert lease.job.source not in running
                running.add(lease.job.source)
                async with queue.batch(lease) as tx:
                    tx.progress(1)
                running.discard(lease.job.source)
                assert await queue.finish(lease, JobStatus.COMPLETED)
                done.append(lease.job.id)

    async with asyncio.timeout(60):
        await asyncio.gather(*map(claimer, range(8)))
    assert (
        len(set(done))
        == len(done)
        == await pooled.fetchval(
            "select count(*) from collection_tasks where status = 'completed' and records_processed = 1"
        )
    )
    for source in SOURCES:
        order = [
            row["id"]
            for row in await pooled.fetch(
                "select id from collection_tasks where source = $1 order by started_at", source
            )
        ]
        assert order == sorted(order)


async def test_a_worker_behind_a_pooler_stores_facts_and_drains_its_jobs(pooled: Pool) -> None:
    """COPY, the staging table and the merge meet the same server, whichever it is."""
    queue, facts = queue_on(pooled), PostgresFactStore(pooled)

    async def collect(lease: Lease) -> str | None:
        for start in (0, 20):
            async with queue.batch(lease) as tx:
                batch = Batch([fact(str(n)) for n in range(start, start + 20)])
                written = await facts.upsert(tx, lease.job.source or "", batch, lease.job.id)
                tx.progress(written.inserted)
        return None

    jobs = [(await queue.submit(wish(source=source)))[0] for source in SOURCES]
    async with _running(_worker(queue, collect)):

        async def drained() -> bool:
            return not await pooled.fetchval("select count(*) from collection_tasks where status <> 'completed'")

        await until(drained, within_s=60)
    assert len(jobs) == len(SOURCES)
    assert await pooled.fetchval("select count(*) from collected_data") == 40 * len(SOURCES)
    assert await pooled.fetchval("select sum(records_processed) from collection_tasks") == 40 * len(SOURCES)


async def test_a_stop_behind_a_pooler_is_seen_without_any_wake_up(pooled: Pool) -> None:
    queue = queue_on(pooled)
    begun = asyncio.Event()

    async def endless(lease: Lease) -> str | None:
        begun.set()
        await asyncio.Event().wait()
        return None

    job, _ = await queue.submit(wish())
    async with _running(_worker(queue, endless)):
        await asyncio.wait_for(begun.wait(), 60)
        await queue.cancel(job.id)

        async def stopped() -> bool:
            return await status_of(pooled, job.id) is JobStatus.CANCELLED

        await until(stopped)


async def test_a_worker_behind_a_pooler_survives_the_loss_of_every_server_connection(
    pooled: Pool, pg_pool: Pool
) -> None:
    """The pooler says so with an error of its own, and cuts the clients whose statement was under way."""
    queue = queue_on(pooled, retry_s=0.05)
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def collect(lease: Lease) -> str | None:
        async with queue.batch(lease) as tx:
            tx.progress(1)
            begun.set()
            await go_on.wait()
        return None

    job, _ = await queue.submit(wish())
    async with _running(_worker(queue, collect)):
        await asyncio.wait_for(begun.wait(), 60)
        await pg_pool.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )
        go_on.set()

        async def done() -> bool:
            status = await pg_pool.fetchval("select status from collection_tasks where id = $1", job.id)
            return bool(status == "completed")

        await until(done)
    row = await row_of(pg_pool, job.id)
    assert (row["attempts"], row["records_processed"]) == (2, 1)


async def test_a_relay_behind_a_pooler_publishes_every_change_once(pooled: Pool) -> None:
    published: list[int] = []
    relay = Relay(
        PostgresChangeLog(pooled, payload),
        EarthLayerAdapterRegistry(),
        _nothing,
        MemoryWakeup(),
        RelaySettings(merge_window_ms=0, poll_s=0.05),
        SystemClock(),
        lambda events: published.extend(event.revision for event in events),
    )
    log = await PostgresEventLog.open(pooled)
    task = asyncio.create_task(relay.run())
    try:
        for n in range(5):
            await pooled.execute(
                "insert into collected_data (source, external_key, kind) values ('usgs_quakes', $1, 'quake')", str(n)
            )

            async def told(so_many: int = n + 1) -> bool:
                return len(published) >= so_many

            await until(told)
    finally:
        task.cancel()
        await asyncio.wait({task})
    assert published == sorted(set(published)) and len(published) == 5
    assert await log.head() == published[-1]


async def test_two_processes_behind_a_pooler_share_the_work(pooled: Pool, pooled_dsn: str) -> None:
    await pooled.execute(
        "insert into collection_tasks (task_type, source) select 'collect', unnest($1::text[])", SOURCES * 4
    )
    children = [subprocess.Popen([sys.executable, "-c", CHILD, pooled_dsn]) for _ in range(2)]
    try:

        async def drained() -> bool:
            return not await pooled.fetchval("select count(*) from collection_tasks where status <> 'completed'")

        await until(drained, within_s=60)
    finally:
        for child in children:
            child.kill()
        for child in children:
            await asyncio.to_thread(child.wait, 20)
    rows = await pooled.fetch("select attempts, records_processed, worker_id from collection_tasks")
    assert {(row["attempts"], row["records_processed"]) for row in rows} == {(1, 1)}


CHILD = """
import asyncio, sys
from planetwire.runtime.clock import SystemClock
from planetwire.jobs.ledger.jobs_postgres import PostgresJobQueue
from planetwire.jobs.worker import Worker
from planetwire.model import TaskType
from planetwire.outbox.wakeup_memory import MemoryWakeup
from planetwire.database.postgres import open_pool
from planetwire.settings import JobSettings

async def main(dsn):
    settings = JobSettings(poll_s=0.05, concurrency=4)
    queue = PostgresJobQueue(await open_pool(dsn, application="work"), settings)

    async def collect(lease):
        async with queue.batch(lease) as tx:
            tx.progress(1)

    asyncio.get_running_loop().call_later(90, sys.exit, 3)
    await Worker(queue, queue, {TaskType.COLLECT: collect}, MemoryWakeup(), settings, SystemClock()).run()

asyncio.run(main(sys.argv[1]))
"""


async def test_migrations_that_start_together_behind_a_pooler_run_once(
    pg_cluster: EmbeddedPostgres, pooler: str
) -> None:
    admin = await connect(dsn_of(pg_cluster.socket_dir, "postgres", "postgres"), application="test")
    await admin.execute("create database t_migrated_behind owner planetwire")
    dsn = f"postgresql://planetwire@{pooler}/t_migrated_behind"
    connections = [await connect(dsn, application="migrate") for _ in range(4)]
    try:
        applied = await asyncio.gather(*map(migrate_postgres, connections))
    finally:
        for connection in connections:
            await connection.close()
        await admin.execute("drop database t_migrated_behind with (force)")
        await admin.close()
    assert sorted(name for names in applied for name in names) == [known.name for known in migrations("postgres")]


async def test_behind_a_pooler_the_doorbell_says_that_it_only_polls(pooled_dsn: str) -> None:
    with capture_logs() as logs:
        doorbell = PostgresWakeup(pooled_dsn, [CHANNEL])
        bell = doorbell.bell(CHANNEL)
        doorbell.start()

        async def said() -> bool:
            return any(entry["event"] == "earth.db_changes.poll_only" for entry in logs)

        await until(said)
        assert not await bell.wait(0) and not doorbell.connected
        await doorbell.aclose()
    assert [entry["event"] for entry in logs].count("earth.db_changes.poll_only") == 1


async def test_the_diagnostic_says_poll_only_and_finds_nothing_broken_in_it(pooled: Pool, pg_dsn: str) -> None:
    await PostgresChangeLog(pooled, payload).lead("somebody", 60)
    async with pooled.acquire() as connection:
        step = (await examine(connection))[-1]
        assert step["step"] == "listener" and step["ok"]
        assert "poll" in step["detail"] and "PLANETWIRE_DATABASE_DIRECT_URL" in step["advice"]

        doorbell = PostgresWakeup(pg_dsn, [CHANNEL])  # as with a direct address
        doorbell.start()

        async def listening() -> bool:
            return doorbell.connected

        await until(listening)
        step = (await examine(connection))[-1]
        assert step["ok"] and not step["advice"] and "1 listening" in step["detail"]
        await doorbell.aclose()


async def test_a_ring_from_behind_a_pooler_reaches_who_listens_at_the_server(pooled: Pool, pg_dsn: str) -> None:
    doorbell = PostgresWakeup(pg_dsn, [CHANNEL])
    bell = doorbell.bell(CHANNEL)
    doorbell.start()
    assert await bell.wait(20)  # the ring of the connect
    await pooled.execute("select pg_notify($1, '')", CHANNEL)
    assert await bell.wait(20)
    await doorbell.aclose()


def _worker(queue: PostgresJobQueue, handler: object) -> Worker:
    handlers = {TaskType.COLLECT: handler}
    return Worker(queue, queue, handlers, MemoryWakeup(), SETTINGS, SystemClock(), drain_s=0.05)  # type: ignore[arg-type]


@asynccontextmanager
async def _running(worker: Worker) -> AsyncIterator[None]:
    task = asyncio.create_task(worker.run())
    try:
        yield
    finally:
        worker.stop()
        await asyncio.wait_for(task, 60)


async def _nothing(layer: str) -> None:
    """No cache here."""
