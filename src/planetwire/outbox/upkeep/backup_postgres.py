"""The new life of a database that was brought back: its logs get another epoch, and forget their events."""

from __future__ import annotations

from planetwire.database.postgres import Connection
from planetwire.database.sql import queries_beside
from planetwire.errors import SetupError

Q = queries_beside(__file__)


async def is_empty(connection: Connection) -> bool:
    """Whether nothing lies in the database's own schema."""
    empty: bool = await connection.fetchval(Q.is_empty)
    return empty


async def begin_new_life(connection: Connection, epoch: str, observations_epoch: str) -> None:
    """Cursors of the old database mean nothing here; revisions go on rising. Raises SetupError without our schema."""
    if await connection.fetchval("select to_regclass('earth_log_head')") is None:
        raise SetupError("the backup holds no database of Planetwire")
    async with connection.transaction():
        await connection.execute(Q.forget_broadcasts)
        await connection.execute(Q.renew_log, epoch)
        await connection.execute(Q.forget_heads)
        await connection.execute(Q.mark_observations_pruned)
        await connection.execute(Q.forget_observation_events)
        await connection.execute(Q.renew_observation_log, observations_epoch)
