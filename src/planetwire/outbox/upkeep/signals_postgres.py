"""Figures of the database for capacity planning: sizes, growth, backlog, long transactions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import asyncpg

from planetwire.database.postgres import Pool, translated
from planetwire.database.sql import queries_beside
from planetwire.errors import BackendError

Q = queries_beside(__file__)

PENDING_MAX = 100_000  # counted up to here
OURS = ("earth_data_change_events", "earth_broadcasts", "collection_tasks")

Samples = Mapping[str, Mapping[str, float]]
"""Series → table, or nothing, → value."""


async def read_signals(pool: Pool, watched: Sequence[str]) -> Samples:
    """Of the watched tables and our own. Cheap: estimates, and a backlog that is counted up to a bound.

    Raises BackendError.
    """
    try:
        async with translated(), pool.acquire(timeout=5) as connection:
            backlog = dict(await connection.fetchrow(Q.backlog, PENDING_MAX) or {})
            tables = await connection.fetch(Q.tables, [*watched, *OURS])
            database = dict(await connection.fetchrow(Q.database) or {})
    except asyncpg.PostgresError as error:
        raise BackendError(f"PostgreSQL: {error!r}") from error
    one = {f"outbox_{name}": value for name, value in backlog.items()}
    one |= {f"database_{name}": value for name, value in database.items()}
    several = {f"table_{name}": {row["table"]: row[name] for row in tables} for name in ("rows", "bytes", "written")}
    return {**{name: {"": value} for name, value in one.items()}, **several}
