"""A worker's network dies inside a batch: what the batch holds is free again after a lease, whoever is told of it."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from cable import Cable
from ledger_tools import claim_one, queue_on, row_of, until, wish
from planetwire.database.postgres import Pool, open_pool
from planetwire.errors import BackendError
from planetwire.model import JobStatus
from planetwire.supervise.embedded_postgres import SOCKET_NAME

TAKE = "insert into scratch values ('same row') on conflict (key) do update set runs = scratch.runs + 1"


async def test_a_batch_whose_client_is_out_of_reach_holds_its_rows_for_a_lease_at_most(
    pg_dsn: str, pg_pool: Pool
) -> None:
    """Q18."""
    await pg_pool.execute("create table scratch (key text primary key, runs integer default 1)")
    address = urlsplit(pg_dsn)
    socket = Path(parse_qs(address.query)["host"][0]) / SOCKET_NAME
    with Cable(f"unix:{socket}") as cable:
        through = f"postgresql://planetwire@127.0.0.1:{cable.port}{address.path}?sslmode=disable"
        far = await open_pool(through, application="work", max_size=1)
        queue, near = queue_on(far, lease_s=1), queue_on(pg_pool, lease_s=1, rescue_retry_s=0)
        await near.submit(wish())
        lease = await claim_one(queue)
        with pytest.raises(BackendError):
            async with queue.batch(lease) as tx:
                await tx.connection.execute(TAKE)
                # As far as the last statement before the commit, which takes the job's own row.
                await tx.connection.execute("update collection_tasks set message = 'x' where id = $1", lease.job.id)
                cable.swallow()

                async def rescued() -> bool:
                    return await near.rescue() == 1

                await until(rescued)
                far.terminate()
        heir = await claim_one(near)
        assert heir.job.id == lease.job.id
        async with near.batch(heir) as tx:
            await tx.connection.execute(TAKE)
            tx.progress(1)
        assert await near.finish(heir, JobStatus.COMPLETED)
    assert await pg_pool.fetchval("select runs from scratch") == 1
    assert (await row_of(pg_pool, lease.job.id))["records_processed"] == 1
