"""The read side of the observation log in PostgreSQL: pages of events, and whether a cursor can still be served.

A cursor is lost only if an event of one of *its* cities above it was pruned; quiet cities never age out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from planetwire.database.postgres import Pool, translated
from planetwire.database.sql import queries_beside
from planetwire.errors import BackendError
from planetwire.model import LogEvent, ResyncReason

Q = queries_beside(__file__)
TOPIC_PREFIX = "city:"


class PostgresObservationLog:
    """Port EventLog over topics `city:<key>`. Every method raises BackendError when the server cannot be reached."""

    epoch: str

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def start(self) -> None:
        """Read the epoch. The store must have been started before: it creates the tables."""
        async with translated():
            self.epoch = await self._pool.fetchval(Q.epoch)

    async def head(self) -> int:
        """See the port."""
        async with translated():
            head: int = await self._pool.fetchval(Q.head)
        return head

    async def heads(self, topics: Iterable[str]) -> Mapping[str, int]:
        """See the port."""
        async with translated():
            rows = await self._pool.fetch(Q.heads, _cities(topics))
        return {f"{TOPIC_PREFIX}{row['city']}": row["revision"] for row in rows}

    async def check(self, topics: Sequence[str], after: int, limit: int) -> ResyncReason | None:
        """See the port. Only events of these topics count towards `limit`."""
        async with translated():
            state = await self._pool.fetchrow(Q.state_after, _cities(topics), after, limit)
        assert state is not None  # the first migration inserts the head row
        if after > state["head"]:
            return ResyncReason.REVISION_AHEAD
        if state["pruned_through"] > after or state["newer"] > limit:
            return ResyncReason.REPLAY_WINDOW_EXCEEDED
        return None

    async def page(self, topics: Sequence[str], after: int, limit: int) -> Sequence[LogEvent]:
        """See the port. Raises BackendError if an event of the page has been pruned since."""
        async with translated():
            rows = await self._pool.fetch(Q.page, _cities(topics), after, limit)
        if rows[0]["pruned_through"] > after:
            raise BackendError("events after the cursor were pruned", code="replay_window_exceeded")
        return [
            LogEvent(
                f"{TOPIC_PREFIX}{row['city']}", row["revision"], row["prev_revision"], row["payload_json"].encode()
            )
            for row in rows
            if row["revision"] is not None
        ]

    async def aclose(self) -> None:
        """Nothing to release; the pool belongs to its opener."""


def _cities(topics: Iterable[str]) -> list[str]:
    return [topic.removeprefix(TOPIC_PREFIX) for topic in topics]
