"""The outbox and the log of layer events behind it, in PostgreSQL: port `ChangeLog`.

Invariant: revisions are given out under the lock of the one row of `earth_log_head`, in the transaction that also
marks the rows consumed. So they have no gaps, their order is commit order, and a relay whose term is over gets none.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress

import asyncpg
import orjson

from planetwire.database.postgres import CONNECTION_ERRORS, Connection, Pool, translated
from planetwire.database.sql import queries_beside
from planetwire.errors import BackendError, LeaseLost
from planetwire.log import get_logger
from planetwire.model import Action, Change, Hint, Json, LayerEvent, LogEvent, Operation
from planetwire.runtime.failpoint import failpoint

Q = queries_beside(__file__)
log = get_logger()

CHANGES_CHANNEL = "planet_earth_data_changes"
BROADCASTS_CHANNEL = "planet_earth_broadcasts"
ATTEMPTS_MAX = 5
BACKOFF_S = 1.0
BACKOFF_MAX_S = 60.0
ERROR_TEXT_MAX = 500
LAG_ROWS_MAX = 100_000  # the backlog is counted up to here
PAIRS_MAX = 100
ACQUIRE_S = 5.0
IDS_MAX = 500  # row ids in one read; with more, browsers reload the layer anyway
# Errors of a single row. All others (disk full, shutdown, deadlock) are transient or concern every row.
ROW_ERRORS = (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError, asyncpg.RaiseError)


@asynccontextmanager
async def _connected(pool: Pool) -> AsyncIterator[Connection]:
    """A connection. Server errors become BackendError; errors of a row's content are raised unchanged."""
    try:
        async with translated(), pool.acquire(timeout=ACQUIRE_S) as connection:
            yield connection
    except asyncpg.PostgresError as error:
        if isinstance(error, ROW_ERRORS):
            raise
        raise BackendError(f"PostgreSQL: {error!r}") from error


async def read_lag(connection: Connection) -> Json:
    """See `PostgresChangeLog.lag`; the diagnostic asks over a connection of its own."""
    backlog = await connection.fetchrow(Q.backlog, LAG_ROWS_MAX)
    unmapped = await connection.fetch(Q.unmapped, PAIRS_MAX)
    return {
        **dict(backlog or {}),
        "unmapped": [dict(row) for row in unmapped],
        "leader": await read_leader(connection),
    }


async def read_leader(connection: Connection) -> Json:
    """Who holds which term, and the latest revision; `held`: whether the term still runs."""
    return dict(await connection.fetchrow(Q.leader) or {})


class PostgresChangeLog:
    """Fenced by the leader's term. `encode` turns an event into the JSON object that is sent."""

    def __init__(self, pool: Pool, encode: Callable[[LayerEvent], Json]) -> None:
        self._pool = pool
        self._encode = encode

    async def lead(self, holder: str, ttl_s: float) -> int | None:
        """Take or renew leadership; the term, or None while another holds it. `holder` is unique per process start."""
        async with _connected(self._pool) as connection:
            term: int | None = await connection.fetchval(Q.lead, holder, ttl_s)
            return term

    async def resign(self, holder: str, term: int) -> None:
        """Give leadership up, if still held."""
        async with _connected(self._pool) as connection:
            await connection.execute(Q.resign, holder, term)

    async def pending(
        self,
        limit: int,
        *,
        held: Sequence[int] = (),
        held_hints: Sequence[int] = (),
        singly: bool = False,
        after: int = 0,
    ) -> tuple[Sequence[Change], Sequence[Hint]]:
        """Unconsumed rows that are due and not held, oldest first; at most `limit` of each. See the port."""
        async with _connected(self._pool) as connection:
            changes = await connection.fetch(Q.pending_changes, limit, held, singly, IDS_MAX, after)
            hints = await connection.fetch(Q.pending_hints, limit, held_hints)
        return [_change(row) for row in changes], [_hint(row) for row in hints]

    async def publish(
        self,
        term: int,
        events: Sequence[LayerEvent],
        *,
        consumed: Sequence[int],
        hints: Sequence[int],
        skipped: Mapping[int, str],
    ) -> Sequence[LogEvent]:
        """Append the events and mark the rows, in one transaction; then notify the processes that tail the log.

        Raises LeaseLost when the term is over, BackendError when the server failed (the outcome may then be unknown:
        read again), and the driver's error when an event's own content was refused. Nothing is written then.
        """
        async with _connected(self._pool) as connection:
            async with connection.transaction():
                published = await self._append(connection, term, events)
                failpoint("relay.appended")
                await connection.execute(Q.consume_changes, consumed)
                if skipped:
                    await connection.execute(Q.skip_changes, list(skipped.keys()), list(skipped.values()))
                if hints:
                    await connection.execute(Q.consume_hints, hints)
            if published:
                with suppress(
                    asyncpg.PostgresError, *CONNECTION_ERRORS
                ):  # committed already: readers of the log also poll
                    await connection.execute(Q.announce, BROADCASTS_CHANNEL)
        return published

    async def _append(self, connection: Connection, term: int, events: Sequence[LayerEvent]) -> Sequence[LogEvent]:
        head = await connection.fetchrow(Q.take_revisions, term, len(events))
        if head is None:
            raise LeaseLost(f"term {term} of the relay is over")
        if not events:
            return []
        epoch, first = head["epoch"], head["revision"] - len(events) + 1
        layers = [event.layer for event in events]
        heads: dict[str, int] = dict(await connection.fetch(Q.layer_heads, layers))
        revisions, previous, messages = [], [], []
        for revision, event in enumerate(events, first):
            revisions.append(revision)
            previous.append(heads.get(event.layer, 0))
            heads[event.layer] = revision
            messages.append(self._message(event, f"{epoch}-{revision}"))
        rows = await connection.fetch(Q.append, epoch, revisions, previous, layers, messages)
        await connection.execute(Q.move_heads, layers, revisions)
        return [
            LogEvent(f"layer:{row['layer']}", row["revision"], row["prev_revision"], row["body"].encode())
            for row in rows
        ]

    def _message(self, event: LayerEvent, broadcast_id: str) -> str:
        return orjson.dumps({**self._encode(event), "broadcast_id": broadcast_id}).decode()

    async def defer(self, ids: Sequence[int], error: str, *, hints: Sequence[int] = ()) -> None:
        """Retry the rows singly after 1 s, 2 s, …; after five attempts they are quarantined until retried by hand."""
        parameters = (error[:ERROR_TEXT_MAX], ATTEMPTS_MAX, BACKOFF_S, BACKOFF_MAX_S)
        async with _connected(self._pool) as connection:
            await connection.execute(Q.defer_changes, ids, *parameters)
            if hints:
                await connection.execute(Q.defer_hints, hints, *parameters)

    async def retry(self, ids: Sequence[int] | None = None) -> int:
        """Make rows that were put off due at once, all of them or these; how many."""
        async with _connected(self._pool) as connection:
            status: str = await connection.execute(Q.retry, ids)
        return int(status.rpartition(" ")[2])

    async def lag(self) -> Json:
        """`pending` (counted up to 100,000), `oldest_age_s`, `quarantined`, `unmapped` pairs, and the `leader`."""
        async with _connected(self._pool) as connection:
            return await read_lag(connection)

    async def leader(self) -> Json:
        """Only the `leader` of `lag`: one row, cheap enough for a probe that comes every second."""
        async with _connected(self._pool) as connection:
            return await read_leader(connection)

    async def open_gate(self, seconds: float) -> None:
        """Ask writers to ring the doorbell for so long; 0 shuts the gate."""
        async with _connected(self._pool) as connection:
            await connection.execute(Q.open_gate, CHANGES_CHANNEL, seconds)


def _change(row: asyncpg.Record) -> Change:
    return Change(
        id=row["id"],
        table_name=row["table_name"],
        operation=Operation(row["operation"]),
        source=row["source"],
        records_processed=row["records_processed"],
        row_ids=row["row_ids"],
        occurred_at=row["occurred_at"],
        attempts=row["attempts"],
        ids=row["ids"],
    )


def _hint(row: asyncpg.Record) -> Hint:
    return Hint(row["id"], row["layer"], row["source"], Action(row["action"]), row["created_at"])
