"""The ports `FailureBrake` and `LoginCodes`, the same over every backend: this process, files and Redis for several."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from planetwire.web.auth import FailureBrake, LoginCodes
from planetwire.web.codes_file import FileCodes
from planetwire.web.codes_memory import CODE_S, CODES_MAX, MemoryCodes
from planetwire.web.codes_redis import RedisCodes
from planetwire.web.failures_memory import ADDRESSES_MAX, FAILURE_WINDOW_S, FAILURES_MAX, MemoryBrake
from planetwire.web.failures_redis import RedisBrake
from planetwire.web.link_redis import RedisLink


@dataclass
class Process:
    """What one web process has, and how time passes for it."""

    brake: FailureBrake
    codes: LoginCodes
    passes: Callable[[float], Awaitable[None]]


class HandClock:
    at = 1_000.0

    def __call__(self) -> float:
        return self.at


def in_memory() -> Process:
    clock = HandClock()

    async def passes(seconds: float) -> None:
        clock.at += seconds

    return Process(MemoryBrake(clock), MemoryCodes(clock), passes)


def in_redis(link: RedisLink) -> Process:
    clock = HandClock()

    async def passes(seconds: float) -> None:
        """Redis has no clock to move: every life is shortened instead."""
        clock.at += seconds
        async for key in link._client.scan_iter(f"{link.prefix}:*"):
            await link._client.pexpire(key, await link._client.pttl(key) - int(seconds * 1000))

    return Process(RedisBrake(link, clock), RedisCodes(link), passes)


def in_files(folder: Path) -> Process:
    clock = HandClock()
    clock.at = time.time()

    async def passes(seconds: float) -> None:
        clock.at += seconds

    return Process(MemoryBrake(clock), FileCodes(folder, clock), passes)


@pytest_asyncio.fixture(params=["memory", "files", "redis"])
async def process(
    request: pytest.FixtureRequest, link_to: Callable[..., RedisLink], tmp_path: Path
) -> AsyncIterator[Process]:
    made = {"memory": in_memory, "files": lambda: in_files(tmp_path / "codes"), "redis": lambda: in_redis(link_to())}
    yield made[request.param]()


async def test_guessing_closes_an_address_for_a_minute_and_no_other(process: Process) -> None:
    """Q35."""
    for _ in range(FAILURES_MAX):
        assert not await process.brake.closed("a")
        await process.brake.note("a")
    assert await process.brake.closed("a")
    assert not await process.brake.closed("b")
    await process.passes(FAILURE_WINDOW_S + 1)
    assert not await process.brake.closed("a")
    await process.brake.note("a")
    assert not await process.brake.closed("a")


async def test_the_window_begins_with_the_first_wrong_try(process: Process) -> None:
    await process.brake.note("a")
    await process.passes(FAILURE_WINDOW_S - 1)
    for _ in range(FAILURES_MAX - 1):
        await process.brake.note("a")
    assert await process.brake.closed("a")
    await process.passes(2)
    assert not await process.brake.closed("a")


async def test_a_code_is_taken_once_and_only_if_it_was_offered(process: Process) -> None:
    """Q15."""
    await process.codes.offer("right")
    assert not await process.codes.take("wrong")
    assert not await process.codes.take("")
    assert await process.codes.take("right")
    assert not await process.codes.take("right")


async def test_of_many_who_take_a_code_at_once_one_gets_it(process: Process) -> None:
    await process.codes.offer("right")
    took = await asyncio.gather(*(process.codes.take("right") for _ in range(10)))
    assert took.count(True) == 1


async def test_a_code_is_good_for_ten_minutes(process: Process) -> None:
    """Contracts §3."""
    await process.codes.offer("early")
    await process.passes(CODE_S - 1)
    assert await process.codes.take("early")
    await process.codes.offer("late")
    await process.passes(CODE_S + 1)
    assert not await process.codes.take("late")


async def test_memory_is_bounded() -> None:
    """Every store has a bound."""
    brake, codes = MemoryBrake(HandClock()), MemoryCodes(HandClock())
    for n in range(CODES_MAX + 1):
        await codes.offer(str(n))
    assert (await codes.take("0"), await codes.take("1")) == (False, True)
    for _ in range(FAILURES_MAX):
        await brake.note("first")
    for n in range(ADDRESSES_MAX):
        await brake.note(str(n))
    assert not await brake.closed("first")


# --- several processes, and a server that is away


async def test_processes_count_together_and_take_each_others_codes(link_to: Callable[..., RedisLink]) -> None:
    """S13: the link may be opened at another process than the one that printed it."""
    one, other = in_redis(link_to()), in_redis(link_to())
    for n in range(FAILURES_MAX):
        await (one if n % 2 else other).brake.note("a")
    assert await one.brake.closed("a") and await other.brake.closed("a")
    await one.codes.offer("code")
    assert await other.codes.take("code")
    assert not await one.codes.take("code")


async def test_without_a_server_each_process_keeps_its_own(link_to: Callable[..., RedisLink]) -> None:
    """S13, S14: all of it works without Redis."""
    alone = in_redis(link_to("redis://127.0.0.1:1/0"))
    for _ in range(FAILURES_MAX):
        await alone.brake.note("a")
    assert await alone.brake.closed("a") and not await alone.brake.closed("b")
    await alone.codes.offer("code")
    assert await alone.codes.take("code")
    assert not await alone.codes.take("code")


async def test_a_server_that_forgot_everything_opens_no_door(link_to: Callable[..., RedisLink]) -> None:
    """S14: what this process counted stands, and a used code stays used."""
    link = link_to()
    process = in_redis(link)
    await process.codes.offer("code")
    assert await process.codes.take("code")
    for _ in range(FAILURES_MAX):
        await process.brake.note("a")
    async for key in link._client.scan_iter(f"{link.prefix}:*"):
        await link._client.delete(key)
    assert await process.brake.closed("a")
    assert not await process.codes.take("code")
