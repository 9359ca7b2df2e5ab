"""Resets the logs of a restored database: each gets a new epoch, and its events are deleted."""

from __future__ import annotations

from planetwire.database.postgres import Connection
from planetwire.database.sql import queries_beside
from planetwire.errors import SetupError

Q = queries_beside(__file__)


async def is_empty(connection: Connection) -> bool:
    """Whether the database's schema has no objects."""
    empty: bool = await connection.fetchval(Q.is_empty)
    return empty


async def begin_new_life(connection: Connection, epoch: str, observations_epoch: str) -> None:
    """Cursors of the old database become invalid; revisions keep rising. Raises SetupError without our schema."""
    if await connection.fetchval("select to_regclass('earth_log_head')") is None:
        raise SetupError("the backup holds no database of Planetwire")
    async with connection.transaction():
        await connection.execute(Q.forget_broadcasts)
        await connection.execute(Q.renew_log, epoch)
        await connection.execute(Q.forget_heads)
        await connection.execute(Q.mark_observations_pruned)
        await connection.execute(Q.forget_observation_events)
        await connection.execute(Q.renew_observation_log, observations_epoch)
