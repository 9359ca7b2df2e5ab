"""The port `JobLog`, the same over every backend: a table without a journal, and Redis."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
import pytest_asyncio

from planetwire.database.postgres import Pool
from planetwire.errors import BackendError
from planetwire.jobs.ledger.joblog_postgres import PostgresJobLog
from planetwire.model import JobLine
from planetwire.ports import JobLog
from planetwire.web.stores.joblog_redis import RedisJobLog
from planetwire.web.stores.link_redis import RedisLink

KEEP_S = 600.0
LEAST = 5  # jobs, or lines, that a log with a small bound keeps


@dataclass
class Kept:
    """A log, one with a small bound over the same store, and how time passes for them."""

    log: JobLog
    small: JobLog
    passes: Callable[[float], Awaitable[None]]


def in_database(pool: Pool) -> Kept:
    async def passes(seconds: float) -> None:
        await pool.execute("update job_log_lines set at = at - make_interval(secs => $1)", seconds)

    return Kept(PostgresJobLog(pool, KEEP_S), PostgresJobLog(pool, KEEP_S, lines_max=LEAST), passes)


def in_redis(link: RedisLink) -> Kept:
    async def passes(seconds: float) -> None:
        async for key in link._client.scan_iter(f"{link.prefix}:*"):
            if (left := await link._client.pttl(key)) > 0:
                await link._client.pexpire(key, left - int(seconds * 1000))

    return Kept(RedisJobLog(link, KEEP_S), RedisJobLog(link, KEEP_S, jobs_kept=LEAST), passes)


@pytest_asyncio.fixture(params=["postgres", "redis"])
async def kept(request: pytest.FixtureRequest, pg_pool: Pool, link_to: Callable[..., RedisLink]) -> AsyncIterator[Kept]:
    yield in_database(pg_pool) if request.param == "postgres" else in_redis(link_to())


def line(number: int) -> JobLine:
    return JobLine(datetime.now(UTC), "batch", f"line {number}")


async def test_lines_come_back_in_order_and_each_job_has_its_own(kept: Kept) -> None:
    first = [JobLine(datetime(2026, 5, 4, 3, 2, 1, 987_000, UTC).replace(year=2100), "started", "第 1 次"), line(2)]
    await kept.log.append({7: first, 2**40: [line(1)]})
    await kept.log.append({7: [line(3)]})
    assert list(await kept.log.read(7))[:2] == first
    assert [each.text for each in await kept.log.read(7)] == ["第 1 次", "line 2", "line 3"]
    assert [each.text for each in await kept.log.read(2**40)] == ["line 1"]
    assert list(await kept.log.read(8)) == []


async def test_of_each_job_the_newest_two_hundred_stay(kept: Kept) -> None:
    """S13: temporary logs."""
    for start in range(0, 450, 50):
        await kept.log.append({7: [line(n) for n in range(start, start + 50)], 8: [line(start)]})
    assert [each.text for each in await kept.log.read(7)] == [f"line {n}" for n in range(250, 450)]
    assert len(await kept.log.read(8)) == 9
    await kept.log.append({7: [line(n) for n in range(1_000)]})
    assert [each.text for each in await kept.log.read(7)] == [f"line {n}" for n in range(800, 1_000)]


async def test_lines_go_by_themselves_when_their_time_is_over(kept: Kept) -> None:
    await kept.log.append({7: [line(1)]})
    await kept.passes(KEEP_S - 60)
    assert len(await kept.log.read(7)) == 1
    await kept.passes(61)
    assert list(await kept.log.read(7)) == []
    await kept.log.prune()
    assert await kept.log.prune() == 0


async def test_all_jobs_together_have_a_bound_too(kept: Kept) -> None:
    for task_id in range(1, 2 * LEAST + 1):
        await kept.small.append({task_id: [line(task_id)]})
    while await kept.small.prune():
        pass
    left = [task_id for task_id in range(1, 2 * LEAST + 1) if await kept.log.read(task_id)]
    assert left == list(range(LEAST + 1, 2 * LEAST + 1))


async def test_redis_keeps_the_lines_of_ten_thousand_jobs(link_to: Callable[..., RedisLink]) -> None:
    """S13: temporary logs stay small, however many jobs there are."""
    log = RedisJobLog(link_to(), KEEP_S)
    await log.append({task_id: [line(task_id)] for task_id in range(1, 10_002)})
    assert [len(await log.read(task_id)) for task_id in (1, 2, 10_001)] == [0, 1, 1]


async def test_a_redis_that_is_away_is_a_backend_error_and_costs_the_lines(
    link_to: Callable[..., RedisLink],
) -> None:
    log = RedisJobLog(link_to("redis://127.0.0.1:1"), KEEP_S)
    with pytest.raises(BackendError):
        await log.append({7: [line(1)]})
    with pytest.raises(BackendError):
        await log.read(7)
