"""One-time login codes that any web process takes, also after a restart: `LoginCodes` of auth.py."""

from __future__ import annotations

from planetwire.text.fingerprint import fingerprint
from planetwire.web.stores.codes_memory import CODE_S, MemoryCodes
from planetwire.web.stores.link_redis import RedisLink


class RedisCodes:
    """A code is checked only in the store that accepted it, so that none can be taken twice.

    A code that Redis lost is invalid; the admin token still signs in.
    """

    def __init__(self, link: RedisLink) -> None:
        self._link = link
        self._own = MemoryCodes()

    async def offer(self, code: str) -> None:
        """In Redis; in this process when Redis does not answer."""
        key = self._key(code)
        done, _ = await self._link.ask(lambda redis: redis.set(key, 1, ex=CODE_S))
        if not done:
            await self._own.offer(code)

    async def take(self, code: str) -> bool:
        """See `LoginCodes`."""
        if await self._own.take(code):
            return True
        key = self._key(code)
        _, found = await self._link.ask(lambda redis: redis.getdel(key))
        return found is not None

    def _key(self, code: str) -> str:
        return self._link.key("code", fingerprint(code))
