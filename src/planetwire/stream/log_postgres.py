"""The read side of the log of layer events in PostgreSQL: port `EventLog` over `earth_broadcasts`.

Topics are `layer:<id>`, and `earth_updates` for all layers at once. `prev_revision` is the layer's in both cases.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from planetwire.database.postgres import Pool, translated
from planetwire.database.sql import queries_beside
from planetwire.errors import InputError
from planetwire.model import LogEvent, ResyncReason

Q = queries_beside(__file__)

ALL = "earth_updates"
LAYER = "layer:"


class PostgresEventLog:
    """Every method raises BackendError when the server cannot be reached, InputError for a topic of another log."""

    def __init__(self, pool: Pool, epoch: str) -> None:
        self.epoch = epoch
        self._pool = pool

    @classmethod
    async def open(cls, pool: Pool) -> PostgresEventLog:
        """The log of the pool's database, with its epoch."""
        async with translated():
            return cls(pool, await pool.fetchval(Q.epoch))

    async def head(self) -> int:
        """The latest revision, 0 before the first; stays when all events have expired."""
        async with translated():
            revision: int = await self._pool.fetchval(Q.head)
        return revision

    async def heads(self, topics: Iterable[str]) -> Mapping[str, int]:
        """Latest revision of each topic, 0 if it never had one."""
        wanted = list(topics)
        found = dict.fromkeys(wanted, 0)
        layers = [_layer(topic) for topic in wanted if topic != ALL]
        async with translated(), self._pool.acquire() as connection:
            if layers:
                rows = await connection.fetch(Q.layer_heads, layers)
                found |= {f"{LAYER}{row['layer']}": row["revision"] for row in rows}
            if ALL in found:
                found[ALL] = await connection.fetchval(Q.head)
        return found

    async def check(self, topics: Sequence[str], after: int, limit: int) -> ResyncReason | None:
        """Why events after the cursor cannot all be served: ahead of the head, pruned, or more than `limit`.

        An old cursor alone is no reason, only a pruned event of these topics is.
        """
        async with translated():
            state = await self._pool.fetchrow(Q.state_after, _layers(topics), after, limit)
        assert state is not None  # the first migration inserts the head row
        if after > state["head"]:
            return ResyncReason.REVISION_AHEAD
        if state["pruned_through"] > after or state["newer"] > limit:
            return ResyncReason.REPLAY_WINDOW_EXCEEDED
        return None

    async def page(self, topics: Sequence[str], after: int, limit: int) -> Sequence[LogEvent]:
        """Events of these topics above `after`, oldest first. With `earth_updates`, all carry that topic."""
        layers = _layers(topics)
        async with translated():
            if layers is None:
                rows = await self._pool.fetch(Q.page_all, after, limit)
            else:
                rows = await self._pool.fetch(Q.page_layers, after, limit, layers)
        return [
            LogEvent(
                ALL if layers is None else f"{LAYER}{row['layer']}",
                row["revision"],
                row["prev_revision"],
                row["body"].encode(),
            )
            for row in rows
        ]


def _layers(topics: Sequence[str]) -> list[str] | None:
    """The layers' names; None for all."""
    return None if ALL in topics else [_layer(topic) for topic in topics]


def _layer(topic: str) -> str:
    if not topic.startswith(LAYER):
        raise InputError(f"not a topic of this log: {topic[:60]!r}", code="unknown_topic")
    return topic.removeprefix(LAYER)
