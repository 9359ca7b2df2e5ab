"""The canary: a fact that is inserted, updated and deleted in one transaction, and whose change is then followed.

No other transaction ever sees the row, so no client can show it, and none is left behind even after a crash. Its change
rows are ordinary ones. Stages are timed by the database's clock.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import asyncpg

from planetwire.database.postgres import SERVER_BUSY, Connection
from planetwire.database.sql import queries_beside

Q = queries_beside(__file__)

SOURCE = "planetwire_canary"  # reserved: no feed has it
LAYER = "canary"
OPERATIONS = ("INSERT", "UPDATE", "DELETE")
POLL_S = 0.02


@dataclass(slots=True)
class Canary:
    """How far it came. Times in milliseconds; None: that stage was not reached."""

    ids: Sequence[int] = ()
    refused: str | None = None  # why the fact could not be written
    silent: tuple[str, ...] = ()  # operations that wrote no change row
    trigger_ms: float | None = None
    before: int = 0  # the layer's revision before it
    committed_at: datetime | None = None
    published_ms: float | None = None
    skipped: str | None = None
    error: str | None = None
    revision: int | None = None


async def release_canary(connection: Connection, within_s: float) -> Canary:
    """Insert, update and delete one fact."""
    try:
        async with asyncio.timeout(within_s):
            return await _write(connection)
    except TimeoutError:
        return Canary(refused=f"not within {within_s:g} s")
    except asyncpg.PostgresError as error:
        if isinstance(error, (asyncpg.PostgresConnectionError, *SERVER_BUSY)):
            raise
        return Canary(refused=str(error))


async def _write(connection: Connection) -> Canary:
    key = secrets.token_hex(8)
    before: int = await connection.fetchval(Q.layer_head, LAYER)
    async with connection.transaction():
        await connection.execute(Q.name_deriving)
        begun = await connection.fetchval(Q.put, SOURCE, key)
        await connection.execute(Q.change, SOURCE, key)
        await connection.execute(Q.take, SOURCE, key)
        rows = await connection.fetch(Q.written, SOURCE, begun)
        committed_at = await connection.fetchval(Q.clock)
    seen = {row["operation"]: row["after_ms"] for row in reversed(rows)}
    return Canary(
        ids=[row["id"] for row in rows],
        silent=tuple(operation for operation in OPERATIONS if operation not in seen),
        trigger_ms=seen.get("INSERT"),
        before=before,
        committed_at=committed_at,
    )


async def watch_canary(connection: Connection, canary: Canary, within_s: float) -> None:
    """Wait until the relay has consumed it, and record when and as which revision."""
    deadline = asyncio.get_running_loop().time() + within_s
    while canary.ids:
        row = await connection.fetchrow(Q.progress, canary.ids, canary.committed_at)
        assert row is not None
        canary.error, canary.skipped = row["error"], row["skipped"]
        if not row["waiting"]:
            canary.published_ms = row["after_ms"]
            canary.revision = await connection.fetchval(Q.event, LAYER, canary.before)
            return
        if asyncio.get_running_loop().time() > deadline:
            return
        await asyncio.sleep(POLL_S)
