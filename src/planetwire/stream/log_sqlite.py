"""The read side of the observation log on SQLite: pages of events, and whether a cursor can still be served.

A cursor is lost only if an event of one of *its* cities above it was pruned; quiet cities never age out.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import orjson

from planetwire.database.pool_sqlite import ReadPool
from planetwire.database.sql import queries_beside
from planetwire.errors import BackendError
from planetwire.model import LogEvent, ResyncReason

Q = queries_beside(__file__)
TOPIC_PREFIX = "city:"


class SqliteEventLog:
    """Port EventLog over topics `city:<key>`. Every method raises BackendError when the file cannot be read."""

    epoch: str

    def __init__(self, path: Path) -> None:
        self._reads = ReadPool(path)

    @property
    def damage(self) -> str | None:
        """The corruption that a read met, until the process ends; None: none."""
        return self._reads.damage

    async def start(self) -> None:
        """Read the epoch. The store must have been started before: it creates the tables."""
        self.epoch = await self._reads.run(_epoch)

    async def head(self) -> int:
        """See the port."""
        return await self._reads.run(_head)

    async def heads(self, topics: Iterable[str]) -> Mapping[str, int]:
        """See the port."""
        return await self._reads.run(_heads, _cities(topics))

    async def check(self, topics: Sequence[str], after: int, limit: int) -> ResyncReason | None:
        """See the port. Only events of these topics count towards `limit`."""
        return await self._reads.run(_check, _cities(topics), after, limit)

    async def page(self, topics: Sequence[str], after: int, limit: int) -> Sequence[LogEvent]:
        """See the port. Raises BackendError if an event of the page has been pruned since."""
        return await self._reads.run(_page, _cities(topics), after, limit)

    async def aclose(self) -> None:
        """Close the reading connections. Idempotent."""
        await self._reads.aclose()


def _cities(topics: Iterable[str]) -> str:
    return orjson.dumps([topic.removeprefix(TOPIC_PREFIX) for topic in topics]).decode()


def _epoch(connection: sqlite3.Connection) -> str:
    epoch: str = connection.execute(Q.epoch).fetchone()[0]
    return epoch


def _head(connection: sqlite3.Connection) -> int:
    head: int = connection.execute(Q.head).fetchone()[0]
    return head


def _heads(connection: sqlite3.Connection, cities: str) -> dict[str, int]:
    return {f"{TOPIC_PREFIX}{city}": revision for city, revision in connection.execute(Q.heads, (cities,))}


def _lost(connection: sqlite3.Connection, cities: str, after: int) -> bool:
    through: int = connection.execute(Q.pruned_through, (cities,)).fetchone()[0]
    return through > after


def _check(connection: sqlite3.Connection, cities: str, after: int, limit: int) -> ResyncReason | None:
    if after > _head(connection):
        return ResyncReason.REVISION_AHEAD
    if _lost(connection, cities, after):
        return ResyncReason.REPLAY_WINDOW_EXCEEDED
    count: int = connection.execute(Q.count_after, (cities, after, limit + 1)).fetchone()[0]
    return ResyncReason.REPLAY_WINDOW_EXCEEDED if count > limit else None


def _page(connection: sqlite3.Connection, cities: str, after: int, limit: int) -> list[LogEvent]:
    if _lost(connection, cities, after):
        raise BackendError("events after the cursor were pruned", code="replay_window_exceeded")
    rows = connection.execute(Q.page, (cities, after, limit)).fetchall()
    return [LogEvent(f"{TOPIC_PREFIX}{city}", revision, prev, body) for city, revision, prev, body in rows]
