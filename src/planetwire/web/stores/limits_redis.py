"""`Limits` counted over all web processes.

Frequent kinds are fetched in blocks: a process takes a twentieth of a minute's allowance and spends it locally, so that
a push costs no round trip. In total never more than the allowance is given out; unspent parts of a block are lost when
the minute ends.
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

BLOCKS = 20  # of a minute's allowance, for frequent kinds

# Takes up to ARGV[2] of ARGV[3], at least ARGV[1] or nothing; returns the amount and how long the minute lasts.
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
    """Counts in this process too, so that without Redis, or after it lost its data, at least the local limit holds."""

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
            # Serialised: a hundred concurrent calls would each fetch a block and use up the minute.
            lock = self._locks.setdefault((kind, key), asyncio.Lock())
            async with lock:
                wait_s = 0.0 if self._spend(kind, key, cost) else await self._fetch(kind, key, cost)
            if wait_s:
                return wait_s
        self._own.note(kind, key, cost)
        return 0.0

    def _spend(self, kind: Limit, key: str, cost: int) -> bool:
        """From the fetched block."""
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
            return 0.0  # without Redis the local count decides
        given, left_ms = answer
        if not given:
            return max(left_ms, 1) / 1000
        self._blocks.pop((kind, key), None)
        self._blocks[kind, key] = _Block(given - cost, self._now() + left_ms / 1000)
        while len(self._blocks) > KEYS_MAX:
            self._blocks.popitem(last=False)
        return 0.0
