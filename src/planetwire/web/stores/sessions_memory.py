"""`Sessions` in this process, which end with it."""

from __future__ import annotations

import time
from collections.abc import Callable

from planetwire.ports import Session

SESSIONS_MAX = 1_000


class MemorySessions:
    """A dictionary."""

    def __init__(self, now: Callable[[], float] = time.time, most: int = SESSIONS_MAX) -> None:
        self._now = now
        self._most = most
        self._kept: dict[str, Session] = {}

    async def open(self, key: str, session: Session) -> None:
        """See the port."""
        self._kept = {name: kept for name, kept in self._kept.items() if kept.expires_at > self._now()}
        self._kept[key] = session
        while len(self._kept) > self._most:
            del self._kept[min(self._kept, key=lambda name: self._kept[name].expires_at)]

    async def find(self, key: str) -> Session | None:
        """See the port."""
        session = self._kept.get(key)
        return session if session is not None and session.expires_at > self._now() else None

    async def end(self, key: str) -> None:
        """See the port."""
        self._kept.pop(key, None)

    async def end_all(self) -> int:
        """See the port."""
        ended, self._kept = len(self._kept), {}
        return ended
