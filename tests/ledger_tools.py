"""Shorthands for the ledger's tests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg

from planetwire.database.postgres import Pool
from planetwire.jobs.ledger.jobs_postgres import PostgresJobQueue
from planetwire.model import Actor, Fact, JobRequest, JobStatus, Lease, Role, TaskType
from planetwire.settings import JobSettings

ALL_TYPES = [kind.value for kind in TaskType]
WAIT_S = 60.0
SOMEBODY = Actor("somebody", Role.ADMIN, "127.0.0.1")


def queue_on(pool: Pool, *, lease_s: float = 30.0, few_sources: int = 0, **options: Any) -> PostgresJobQueue:
    """`few_sources` 0: jobs of busy sources are parked and woken even with two sources, the more complex way."""
    return PostgresJobQueue(pool, JobSettings(lease_s=lease_s), few_sources=few_sources, **options)


def wish(kind: TaskType = TaskType.COLLECT, source: str | None = "alpha", **options: Any) -> JobRequest:
    return JobRequest(kind, source, **options)


async def claim_one(queue: PostgresJobQueue, worker: str = "w1") -> Lease:
    leases = await queue.claim(worker, ALL_TYPES, 1)
    assert len(leases) == 1
    return leases[0]


async def row_of(pool: Pool, task_id: int) -> asyncpg.Record:
    return await pool.fetchrow("select * from collection_tasks where id = $1", task_id)


async def status_of(pool: Pool, task_id: int) -> JobStatus:
    return JobStatus((await row_of(pool, task_id))["status"])


async def expire(pool: Pool, task_id: int) -> None:
    """Expire the lease, as if its worker had been silent for its duration."""
    await pool.execute(
        "update collection_tasks set lease_until = clock_timestamp() - interval '1 s' where id = $1", task_id
    )


async def until(condition: Callable[[], Awaitable[bool]], within_s: float = WAIT_S) -> None:
    """Poll until the condition holds; fails after `within_s`."""
    async with asyncio.timeout(within_s):
        while not await condition():
            await asyncio.sleep(0.01)


def fact(key: str, value: Any = 1, **options: Any) -> Fact:
    return Fact(key, "thing", f"Thing {key}", {"value": value}, **options)
