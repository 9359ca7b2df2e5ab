"""The ports `Limits`, `Sessions` and `LoginCodes`, the same over every backend: this process, files and Redis."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from planetwire.errors import BackendError
from planetwire.ports import Limit, Limits, LoginCodes, Session, Sessions
from planetwire.web.stores.codes_file import FileCodes
from planetwire.web.stores.codes_memory import CODES_MAX, MemoryCodes
from planetwire.web.stores.codes_redis import RedisCodes
from planetwire.web.stores.limits_memory import KEYS_MAX, WINDOW_S, MemoryLimits
from planetwire.web.stores.limits_redis import BLOCKS, RedisLimits
from planetwire.web.stores.link_redis import RedisLink
from planetwire.web.stores.sessions_file import FileSessions
from planetwire.web.stores.sessions_memory import MemorySessions
from planetwire.web.stores.sessions_redis import RedisSessions

RATES = {Limit.SIGN_IN: 10, Limit.INGEST: 100, Limit.STREAM: 40}
LIFE_S = 3_600.0
MOST = 20  # sessions, else a thousand


@dataclass
class Process:
    """What one web process has, and how time passes for it."""

    limits: Limits
    codes: LoginCodes
    sessions: Sessions
    passes: Callable[[float], Awaitable[None]]
    now: Callable[[], float]

    async def taken(self, key: str, times: int, kind: Limit = Limit.SIGN_IN, cost: int = 1) -> int:
        """How often of so many tries something was taken."""
        return sum([await self.limits.take(kind, key, cost) == 0.0 for _ in range(times)])

    def session(self, who: str = "admin token", life_s: float = LIFE_S) -> Session:
        return Session(who, "bound", self.now() + life_s)


class HandClock:
    def __init__(self) -> None:
        self.at = time.time()

    def __call__(self) -> float:
        return self.at


def key(number: int) -> str:
    return f"{number:064x}"


def in_memory(folder: Path) -> Process:
    clock = HandClock()

    async def passes(seconds: float) -> None:
        clock.at += seconds

    return Process(MemoryLimits(RATES, clock), MemoryCodes(clock), MemorySessions(clock, MOST), passes, clock)


def in_redis(link: RedisLink, folder: Path) -> Process:
    clock = HandClock()

    async def passes(seconds: float) -> None:
        """Redis has no clock to move: every life is shortened instead."""
        clock.at += seconds
        async for name in link._client.scan_iter(f"{link.prefix}:*"):
            left_ms = await link._client.pttl(name)
            if left_ms > 0:
                await link._client.pexpire(name, left_ms - int(seconds * 1000))

    own = FileSessions(folder / "sessions", clock, MOST)
    return Process(
        RedisLimits(link, RATES, clock), RedisCodes(link), RedisSessions(link, own, clock, MOST), passes, clock
    )


def in_files(folder: Path) -> Process:
    clock = HandClock()

    async def passes(seconds: float) -> None:
        clock.at += seconds

    codes, sessions = FileCodes(folder / "codes", clock), FileSessions(folder / "sessions", clock, MOST)
    return Process(MemoryLimits(RATES, clock), codes, sessions, passes, clock)


@pytest_asyncio.fixture(params=["memory", "files", "redis"])
async def process(
    request: pytest.FixtureRequest, link_to: Callable[..., RedisLink], tmp_path: Path
) -> AsyncIterator[Process]:
    made = {"memory": in_memory, "files": in_files, "redis": lambda folder: in_redis(link_to(), folder)}
    yield made[request.param](tmp_path)


# --- limits


async def test_what_is_spent_closes_a_key_for_a_minute_and_no_other(process: Process) -> None:
    """Q35."""
    assert await process.taken("a", 12) == 10
    assert await process.taken("b", 1) == 1
    await process.passes(WINDOW_S + 1)
    assert await process.taken("a", 12) == 10


async def test_the_minute_begins_with_the_first_and_its_rest_is_told(process: Process) -> None:
    assert await process.taken("a", 1) == 1
    await process.passes(WINDOW_S - 10)
    assert await process.taken("a", 10) == 9
    assert 5 < await process.limits.take(Limit.SIGN_IN, "a") <= 10
    await process.passes(11)
    assert await process.taken("a", 1) == 1


async def test_each_kind_has_a_count_of_its_own(process: Process) -> None:
    """S13."""
    assert [await process.taken("a", 130, kind) for kind in (Limit.SIGN_IN, Limit.INGEST, Limit.STREAM)] == [
        10,
        100,
        40,
    ]


async def test_what_is_refused_takes_nothing_and_what_fits_still_does(process: Process) -> None:
    assert await process.taken("a", 1, cost=8) == 1
    assert await process.taken("a", 3, cost=3) == 0
    assert await process.taken("a", 3, cost=1) == 2


async def test_what_costs_more_than_a_minute_has_costs_a_minute(process: Process) -> None:
    """Else it could never be taken."""
    assert await process.taken("a", 2, cost=1_000) == 1
    await process.passes(WINDOW_S + 1)
    assert await process.taken("a", 1, cost=1_000) == 1


# --- sessions


async def test_a_session_is_found_until_it_is_ended(process: Process) -> None:
    """Signing out ends the session and not only the cookie."""
    session = process.session()
    await process.sessions.open(key(1), session)
    await process.sessions.open(key(2), session)
    assert await process.sessions.find(key(1)) == session
    await process.sessions.end(key(1))
    await process.sessions.end(key(1))
    assert (await process.sessions.find(key(1)), await process.sessions.find(key(2))) == (None, session)
    assert await process.sessions.find(key(3)) is None


async def test_a_session_expires(process: Process) -> None:
    await process.sessions.open(key(1), process.session())
    await process.passes(LIFE_S - 1)
    assert await process.sessions.find(key(1)) is not None
    await process.passes(2)
    assert await process.sessions.find(key(1)) is None


async def test_all_sessions_can_be_ended_at_once(process: Process) -> None:
    for number in range(3):
        await process.sessions.open(key(number), process.session())
    assert await process.sessions.end_all() == 3
    assert [await process.sessions.find(key(number)) for number in range(3)] == [None] * 3
    assert await process.sessions.end_all() == 0


async def test_sessions_are_bounded_and_the_one_that_ends_first_makes_room(process: Process) -> None:
    await process.sessions.open(key(0), process.session(life_s=60))
    for number in range(1, MOST + 1):
        await process.sessions.open(key(number), process.session())
    assert await process.sessions.find(key(0)) is None
    assert await process.sessions.find(key(1)) is not None
    assert await process.sessions.end_all() == MOST


# --- codes


async def test_a_code_is_taken_once_and_only_if_it_was_offered(process: Process) -> None:
    """Q15."""
    await process.codes.offer("right")
    assert not await process.codes.take("wrong")
    assert not await process.codes.take("")
    assert not await process.codes.take("\ud800")
    assert await process.codes.take("right")
    assert not await process.codes.take("right")


async def test_of_many_who_take_a_code_at_once_one_gets_it(process: Process) -> None:
    await process.codes.offer("right")
    took = await asyncio.gather(*(process.codes.take("right") for _ in range(10)))
    assert took.count(True) == 1


async def test_a_code_is_good_for_ten_minutes(process: Process) -> None:
    """Q15, contracts §3."""
    await process.codes.offer("early")
    await process.passes(599)
    assert await process.codes.take("early")
    await process.codes.offer("late")
    await process.passes(601)
    assert not await process.codes.take("late")


async def test_memory_is_bounded() -> None:
    """Every store has a bound."""
    limits, codes = MemoryLimits(RATES, HandClock()), MemoryCodes(HandClock())
    for n in range(CODES_MAX + 1):
        await codes.offer(str(n))
    assert (await codes.take("0"), await codes.take("1")) == (False, True)
    assert await limits.take(Limit.SIGN_IN, "first", 10) == 0
    assert await limits.take(Limit.SIGN_IN, "first") > 0
    for n in range(KEYS_MAX):
        await limits.take(Limit.SIGN_IN, str(n))
    assert await limits.take(Limit.SIGN_IN, "first") == 0


# --- files


async def test_sessions_in_files_are_seen_by_every_process_and_after_a_restart(tmp_path: Path) -> None:
    one, other = in_files(tmp_path), in_files(tmp_path)
    session = one.session()
    await one.sessions.open(key(1), session)
    assert await other.sessions.find(key(1)) == session
    await other.sessions.end(key(1))
    assert await one.sessions.find(key(1)) is None
    assert await in_files(tmp_path).sessions.find(key(1)) is None


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"who":"a","bound":"b"}', b'{"expires_at":1e999}', b"\xff" * 9_000]
)
async def test_a_damaged_session_is_none(tmp_path: Path, body: bytes) -> None:
    process = in_files(tmp_path)
    await process.sessions.open(key(1), process.session())
    (tmp_path / "sessions" / key(1)).write_bytes(body)
    assert await process.sessions.find(key(1)) is None


async def test_what_a_killed_process_left_half_written_is_no_session_and_goes(tmp_path: Path) -> None:
    process = in_files(tmp_path)
    await process.sessions.open(key(1), process.session())
    folder = tmp_path / "sessions"
    (folder / f".{key(2)}").write_bytes(b'{"who"')
    await process.passes(1)
    await process.sessions.open(key(3), process.session())
    assert {file.name for file in folder.iterdir()} == {key(1), key(3)}


async def test_a_key_that_is_none_never_leaves_the_folder(tmp_path: Path) -> None:
    process = in_files(tmp_path)
    (tmp_path / "outside").write_text('{"who":"a","bound":"b","expires_at":99999999999}')
    assert await process.sessions.find("../outside") is None
    await process.sessions.end("../outside")
    assert (tmp_path / "outside").exists()


async def test_sessions_that_cannot_be_kept_are_an_error_of_the_store(tmp_path: Path) -> None:
    (tmp_path / "sessions").write_text("a file where the folder should be")
    process = in_files(tmp_path)
    for asked in (process.sessions.open(key(1), process.session()), process.sessions.find(key(1))):
        with pytest.raises(BackendError) as told:
            await asked
        assert told.value.code == "sessions_unavailable"


# --- several processes, and a server that is away


async def test_processes_count_together_and_take_each_others_codes(
    link_to: Callable[..., RedisLink], tmp_path: Path
) -> None:
    """S13: the link may be opened at another process than the one that printed it."""
    one, other = in_redis(link_to(), tmp_path / "1"), in_redis(link_to(), tmp_path / "2")
    assert await one.taken("a", 6) + await other.taken("a", 6) == 10
    await one.codes.offer("code")
    assert await other.codes.take("code")
    assert not await one.codes.take("code")


async def test_what_others_refused_takes_nothing_from_all(link_to: Callable[..., RedisLink], tmp_path: Path) -> None:
    one, other = in_redis(link_to(), tmp_path / "1"), in_redis(link_to(), tmp_path / "2")
    assert await one.taken("a", 1, cost=8) == 1
    assert await other.taken("a", 3, cost=3) == 0
    assert await other.taken("a", 3, cost=1) == 2


async def test_processes_see_and_end_each_others_sessions(link_to: Callable[..., RedisLink], tmp_path: Path) -> None:
    """S13."""
    one, other = in_redis(link_to(), tmp_path / "1"), in_redis(link_to(), tmp_path / "2")
    await one.sessions.open(key(1), one.session())
    assert await other.sessions.find(key(1)) is not None
    await other.sessions.end(key(1))
    assert await one.sessions.find(key(1)) is None


async def test_of_what_is_frequent_a_process_fetches_blocks_and_all_together_get_no_more(
    link_to: Callable[..., RedisLink], tmp_path: Path
) -> None:
    """A push must not cost a question; what one has not spent others cannot have."""
    link = link_to()
    one, other = in_redis(link, tmp_path), in_redis(link_to(), tmp_path)
    asked = 0
    ask = link.ask

    async def counted(question: object) -> object:
        nonlocal asked
        asked += 1
        return await ask(question)  # type: ignore[arg-type]

    link.ask = counted  # type: ignore[method-assign,assignment]
    assert await one.taken("a", 50, Limit.INGEST) == 50
    assert asked == 50 / (100 / BLOCKS)
    assert await other.taken("a", 80, Limit.INGEST) == 50
    assert await one.taken("a", 1, Limit.INGEST) == 0


async def test_without_a_server_each_process_keeps_its_own(link_to: Callable[..., RedisLink], tmp_path: Path) -> None:
    """S13, S14: all of it works without Redis."""
    alone = in_redis(link_to("redis://127.0.0.1:1/0"), tmp_path)
    assert [await alone.taken("a", 130, kind) for kind in Limit] == [10, 100, 40]
    await alone.codes.offer("code")
    assert await alone.codes.take("code")
    assert not await alone.codes.take("code")
    await alone.sessions.open(key(1), alone.session())
    assert await alone.sessions.find(key(1)) is not None


async def test_a_session_that_nobody_can_look_up_is_neither_taken_nor_said_to_have_ended(
    link_to: Callable[..., RedisLink], tmp_path: Path
) -> None:
    alone = in_redis(link_to("redis://127.0.0.1:1/0"), tmp_path)
    for asked in (alone.sessions.find(key(1)), alone.sessions.end(key(1)), alone.sessions.end_all()):
        with pytest.raises(BackendError) as told:
            await asked
        assert told.value.code == "sessions_unavailable"


async def test_a_server_that_forgot_everything_opens_no_door(link_to: Callable[..., RedisLink], tmp_path: Path) -> None:
    """S14: what this process counted stands, a used code stays used, and whoever was signed in signs in again."""
    link = link_to()
    process = in_redis(link, tmp_path)
    await process.codes.offer("code")
    assert await process.codes.take("code")
    await process.sessions.open(key(1), process.session())
    assert await process.taken("a", 10) == 10
    async for name in link._client.scan_iter(f"{link.prefix}:*"):
        await link._client.delete(name)
    assert await process.taken("a", 1) == 0
    assert not await process.codes.take("code")
    assert await process.sessions.find(key(1)) is None


async def test_many_that_come_at_once_are_given_what_there_is(
    link_to: Callable[..., RedisLink], tmp_path: Path
) -> None:
    """None of them fetches more than all of them spend: of a hundred a minute, twice fifteen at once are thirty."""
    both = in_redis(link_to(), tmp_path / "1"), in_redis(link_to(), tmp_path / "2")
    asked = [process.limits.take(Limit.INGEST, "192.0.2.1") for process in both for _ in range(15)]
    assert await asyncio.gather(*asked) == [0.0] * 30
