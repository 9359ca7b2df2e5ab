"""A lock for a store in PostgreSQL: held by one web process alone, or shared by several that all joined a bus.

Taken when a process starts, to detect a wrong configuration. Correctness does not depend on it: processes that share a
database follow its log whatever their bus, so a lock that is lost with its connection costs no event.
"""

from __future__ import annotations

import asyncio

from planetwire.database.postgres import Connection, behind_pooler, connect, translated
from planetwire.database.sql import queries_beside
from planetwire.errors import SetupError
from planetwire.log import get_logger

log = get_logger()
Q = queries_beside(__file__)

ALREADY = "another web process has the observation store"
HOW = "several need a bus that joins them: give all of them PLANETWIRE_BUS=postgres or redis, or stop the other one"
ATTEMPTS = 20  # a killed process disappears from the server after a moment
AGAIN_S = 0.1


async def claim_database(dsn: str, *, shared: bool) -> Connection:
    """Keep the connection open, close it at the end. Raises SetupError if other holders conflict, BackendError."""
    connection = await connect(dsn, application="observations")
    try:
        async with translated():
            if await behind_pooler(connection):
                log.warning("facts.observation.unclaimed", reason="a pooler stands before the database")
                return connection
            await connection.execute(Q.keepalives)
            for _ in range(ATTEMPTS):
                if await connection.fetchval(Q.together if shared else Q.alone):
                    return connection
                await asyncio.sleep(AGAIN_S)
        raise SetupError(f"{ALREADY} open; {HOW}", code="already_running")
    except BaseException:
        connection.terminate()
        raise
