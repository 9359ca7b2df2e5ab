"""The port `Cache`, the same over every backend: memory, and Redis shared by several web processes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import pytest_asyncio

from ledger_tools import until
from planetwire.model import Cursor
from planetwire.ports import Cache
from planetwire.web.stores.cache_memory import NAMES_MAX, MemoryCache
from planetwire.web.stores.cache_redis import RedisCache
from planetwire.web.stores.link_redis import RedisLink

EPOCH = "abcdef012345"

Make = Callable[[], Cache]


def at(revision: int, epoch: str = EPOCH) -> Cursor:
    return Cursor(epoch, revision)


@pytest_asyncio.fixture(params=["memory", "redis"])
async def make(request: pytest.FixtureRequest, link_to: Callable[..., RedisLink]) -> AsyncIterator[Make]:
    """Makes the cache of one web process; of Redis, all of them share one server."""
    made: list[Cache] = []

    def one() -> Cache:
        memory = MemoryCache(1_000, 50)
        made.append(memory if request.param == "memory" else RedisCache(link_to(), memory, max_shared=8))
        return made[-1]

    yield one
    for cache in made:
        await cache.aclose()
        await cache.aclose()


async def test_what_was_put_is_got_until_a_pattern_means_it(make: Make) -> None:
    """Contracts §3."""
    cache = make()
    generation = cache.generation("a:1")
    assert await cache.get("a:1") is None
    assert await cache.put("a:1", generation, at(1), b"x")
    assert await cache.get("a:1") == b"x"
    assert await cache.get("a:2") is None
    assert await cache.get("b:1") is None
    await cache.invalidate(["a:*"])
    assert cache.generation("a:1") != generation
    assert await cache.get("a:1") is None


async def test_a_body_of_an_older_generation_is_refused(make: Make) -> None:
    """S29: its reader may have read before the change."""
    cache = make()
    generation = cache.generation("a:1")
    await cache.invalidate(["a:*"])
    assert not await cache.put("a:1", generation, at(1), b"old")
    assert await cache.get("a:1") is None
    assert await cache.put("a:1", generation + 1, at(2), b"new")
    assert await cache.get("a:1") == b"new"


@pytest.mark.parametrize(
    ("patterns", "gone"),
    [
        (["earth:layer:a:*"], [0, 1]),
        (["earth:layer:a:live|*"], [0]),
        (["earth:layer:*"], [0, 1, 2, 3]),
        (["earth:layer:?:stale|*"], [1]),
        (["earth:layer:a:*", "dash:terminal:detail *"], [0, 1, 5]),
        (["dash:*"], [4, 5]),
        (["earth:layer:A:*", "layer:a", "a", "earth:layer:a", ""], []),
        ([], []),
    ],
    ids=["a layer", "a state", "all layers", "one letter", "two at once", "dashboard", "none of them", "no pattern"],
)
async def test_a_pattern_drops_exactly_the_names_that_it_means(
    make: Make, patterns: list[str], gone: list[int]
) -> None:
    """S27, S74: here, for whoever else shares, and for a reader that is still at work; what is not meant stays."""
    cache, other = make(), make()
    names = [
        "earth:layer:a:live|gzip|",
        "earth:layer:a:stale|gzip|",
        "earth:layer:ab:live|gzip|",
        "earth:layer:b:live|gzip|",
        "dash:terminal:scan",
        "dash:terminal:detail hong kong",
    ]
    generations = {name: cache.generation(name) for name in names}
    for name in names:
        assert await cache.put(name, generations[name], at(1), name.encode())

    async def shared() -> list[bytes | None]:
        return [await other.find(name, at(1)) for name in names]

    if isinstance(cache, RedisCache):
        await until(lambda: _all_of(shared()))
    await cache.invalidate(patterns)
    left = [None if n in gone else name.encode() for n, name in enumerate(names)]
    assert [await cache.get(name) for name in names] == left
    if isinstance(cache, RedisCache):
        await until(lambda: _equal(shared(), left))
        assert await shared() == left
    slow = [await cache.put(name, generations[name], at(1), b"read before") for name in names]
    assert slow == [n not in gone for n in range(len(names))]


async def _all_of(found: Awaitable[list[bytes | None]]) -> bool:
    return None not in await found


async def _equal(found: Awaitable[list[bytes | None]], wanted: list[bytes | None]) -> bool:
    return await found == wanted


async def test_names_beyond_those_remembered_take_nothing_that_was_read_before(make: Make) -> None:
    """Bounded: a name that was forgotten has the generation of the newest invalidation, whatever it meant."""
    cache = make()
    before = cache.generation("a:1")
    for n in range(NAMES_MAX):
        cache.generation(f"b:{n}")
    await cache.invalidate(["a:*"])
    assert not await cache.put("a:1", before, at(1), b"old")
    assert await cache.put("a:1", cache.generation("a:1"), at(2), b"new")


async def test_it_is_bounded_and_what_was_read_last_stays(make: Make) -> None:
    """Every store has a bound."""
    cache = make()
    await cache.put("a:1", 0, at(1), bytes(400))
    await cache.put("a:2", 0, at(1), bytes(400))
    assert await cache.get("a:1") is not None
    await cache.put("b:1", 0, at(1), bytes(400))
    kept = [await cache.get(key) is not None for key in ("a:1", "a:2", "b:1")]
    assert kept == [True, False, True]
    assert not await cache.put("a:huge", 0, at(1), bytes(1_001))


async def test_many_small_bodies_are_bounded_too(make: Make) -> None:
    """Every `?limit=` is a body of its own."""
    cache = make()
    for n in range(60):
        assert await cache.put(f"a:{n}", 0, at(1), b"")
    kept = [n for n in range(60) if await cache.get(f"a:{n}") is not None]
    assert kept == list(range(10, 60))


async def test_a_body_larger_than_the_whole_cache_takes_nothing_from_the_others(make: Make) -> None:
    """It is made for each who asks; what is there stays."""
    cache = make()
    await cache.put("a:1", 0, at(1), bytes(900))
    assert not await cache.put("a:huge", 0, at(1), bytes(1_001))
    assert not await cache.put("a:1", 0, at(2), bytes(1_001))
    assert await cache.get("a:1") == bytes(900)


async def test_a_body_put_again_counts_once(make: Make) -> None:
    """Else the bound would shrink with every renewal."""
    cache = make()
    for _ in range(20):
        await cache.put("a:1", 0, at(1), bytes(400))
    await cache.put("a:2", 0, at(1), bytes(400))
    assert await cache.get("a:1") is not None
    await cache.invalidate(["a:*"])
    await cache.put("a:3", 1, at(2), bytes(1_000))
    assert await cache.get("a:3") is not None


async def test_what_is_found_is_of_exactly_the_cursor(make: Make) -> None:
    """S29: neither an older revision nor another life of the log is ever handed out for it."""
    cache = make()
    await cache.put("a:1", 0, at(1), b"x")
    for cursor in (at(0), at(2), at(1, "zzzzzzzzzzzz")):
        assert await make().find("a:1", cursor) is None
        assert await cache.find("a:1", cursor) is None


async def test_processes_that_share_a_server_find_what_another_made(link_to: Callable[..., RedisLink]) -> None:
    """S13."""
    one, other = RedisCache(link_to()), RedisCache(link_to())
    await one.put("a:1", 0, at(7), b"x")

    async def found() -> bool:
        return await other.find("a:1", at(7)) == b"x"

    await until(found)
    assert await other.get("a:1") is None  # until it is put there
    await one.aclose()
    await other.aclose()


async def test_what_a_process_shares_is_bounded_and_goes_with_its_revision(link_to: Callable[..., RedisLink]) -> None:
    """Nobody asks for it afterwards; the oldest goes first."""
    one, other = RedisCache(link_to(), max_shared=2), RedisCache(link_to())

    async def found(*variants: str) -> None:
        async def so() -> bool:
            lying = [name for name in ("1", "2", "3") if await other.find(f"a:{name}", at(1)) is not None]
            return lying == list(variants)

        await until(so)

    for variant, lying in (("1", "1"), ("2", "12"), ("3", "23")):
        await one.put(f"a:{variant}", 0, at(1), b"x")
        await found(*lying)
    await one.invalidate(["b:*"])
    await one.put("b:1", 1, at(1), b"x")
    await found("3")
    await one.invalidate(["a:*"])
    await found()
    await one.aclose()
    await other.aclose()


async def test_what_a_pattern_means_while_it_is_on_its_way_does_not_arrive(link_to: Callable[..., RedisLink]) -> None:
    """S27, S29: it was read before the change, and nobody would take it away again."""
    one, other = RedisCache(link_to()), RedisCache(link_to())
    for name in ("a:1", "b:1"):
        await one.put(name, 0, at(1), b"x")
    await one.invalidate(["a:*"])

    async def all_sent() -> bool:
        return not one._sending

    await until(all_sent)
    assert [await other.find(name, at(1)) for name in ("a:1", "b:1")] == [None, b"x"]
    await one.aclose()
    await other.aclose()


async def test_the_first_body_of_a_revision_is_everybodys(link_to: Callable[..., RedisLink]) -> None:
    """One ETag a revision, whichever process answers."""
    one, other, third = (RedisCache(link_to()) for _ in range(3))
    await one.put("a:1", 0, at(7), b"first")

    async def stored(cache: RedisCache, body: bytes) -> None:
        async def so() -> bool:
            return await third.find("a:1", at(7)) == body

        await until(so)

    await stored(one, b"first")
    await other.put("a:1", 0, at(7), b"second")
    await other.put("a:mark", 0, at(7), b"sent after it")

    async def sent() -> bool:
        return await third.find("a:mark", at(7)) is not None

    await until(sent)
    await stored(other, b"first")
    for cache in (one, other, third):
        await cache.aclose()
