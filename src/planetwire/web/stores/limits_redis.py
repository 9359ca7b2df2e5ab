"""`Limits` counted over all web processes.

What is frequent is fetched in blocks: a process asks for a twentieth of a minute's allowance and spends it by itself,
so that a push costs no question of its own. Never more than the allowance is given out; what a process has not spent
when the minute ends is lost.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import cast
from weakref import WeakValueDictionary

from redis.asyncio import Redis

from planetwire.ports import Limit
from planetwire.web.stores.limits_memory import DEFAULTS, KEYS_MAX, WINDOW_S, MemoryLimits
from planetwire.web.stores.link_redis import RedisLink

BLOCKS = 20  # of a minute's allowance, where it is frequent

# Gives out up to ARGV[2] of ARGV[3], at least ARGV[1] or nothing; answers what it gave and how long the minute lasts.
TAKE = """
local used = tonumber(redis.call('get', KEYS[1]) or '0')
local given = math.min(tonumber(ARGV[2]), tonumber(ARGV[3]) - used)
if given < tonumber(ARGV[1]) then return {0, redis.call('pttl', KEYS[1])} end
redis.call('incrby', KEYS[1], given)
if used == 0 then redis.call('pexpire', KEYS[1], ARGV[4]) end
return {given, redis.call('pttl', KEYS[1])}
"""


@dataclass(slots=True)
class _Block:
    left: int
    until: float


class RedisLimits:
    """This process counts too: without Redis, or after it forgot everything, at least its own count stands."""

    def __init__(
        self,
        link: RedisLink,
        rates: Mapping[Limit, int] = DEFAULTS,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._link = link
        self._rates = rates
        self._now = now
        self._own = MemoryLimits(rates, now)
        self._blocks: OrderedDict[tuple[Limit, str], _Block] = OrderedDict()
        self._locks: WeakValueDictionary[tuple[Limit, str], asyncio.Lock] = WeakValueDictionary()

    async def take(self, kind: Limit, key: str, cost: int = 1) -> float:
        """See the port."""
        wait_s = self._own.wait_s(kind, key, cost)
        if wait_s:
            return wait_s
        cost = min(cost, self._rates[kind])
        if not self._spend(kind, key, cost):
            # One at a time: of a hundred that come at once each would fetch a block, and the minute would be given out.
            lock = self._locks.setdefault((kind, key), asyncio.Lock())
            async with lock:
                wait_s = 0.0 if self._spend(kind, key, cost) else await self._fetch(kind, key, cost)
            if wait_s:
                return wait_s
        self._own.note(kind, key, cost)
        return 0.0

    def _spend(self, kind: Limit, key: str, cost: int) -> bool:
        """Of what was fetched before."""
        block = self._blocks.get((kind, key))
        if block is None or block.left < cost or self._now() >= block.until:
            return False
        block.left -= cost
        return True

    async def _fetch(self, kind: Limit, key: str, cost: int) -> float:
        wanted = cost if kind is Limit.SIGN_IN else max(cost, self._rates[kind] // BLOCKS)
        name = self._link.key("limit", kind, key)
        arguments = (cost, wanted, self._rates[kind], int(WINDOW_S * 1000))

        def take(redis: Redis) -> Awaitable[list[int]]:
            return cast("Awaitable[list[int]]", redis.eval(TAKE, 1, name, *map(str, arguments)))

        done, answer = await self._link.ask(take)
        if not done or answer is None:
            return 0.0  # its own count has room, and decides alone then
        given, left_ms = answer
        if not given:
            return max(left_ms, 1) / 1000
        self._blocks.pop((kind, key), None)
        self._blocks[kind, key] = _Block(given - cost, self._now() + left_ms / 1000)
        while len(self._blocks) > KEYS_MAX:
            self._blocks.popitem(last=False)
        return 0.0
