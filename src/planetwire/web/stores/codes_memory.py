"""One-time login codes in this process: `LoginCodes` of auth.py."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from planetwire.text.fingerprint import fingerprint

CODE_S = 600  # life of a code
CODES_MAX = 100  # stored; the oldest is dropped first


class MemoryCodes:
    """They end with the process."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._offered: OrderedDict[str, float] = OrderedDict()

    async def offer(self, code: str) -> None:
        """Make the code available."""
        self._offered[fingerprint(code)] = self._now()
        while len(self._offered) > CODES_MAX:
            self._offered.popitem(last=False)

    async def take(self, code: str) -> bool:
        """Whether it was offered within the last ten minutes and not taken yet."""
        offered_at = self._offered.pop(fingerprint(code), None)
        return offered_at is not None and self._now() - offered_at <= CODE_S
