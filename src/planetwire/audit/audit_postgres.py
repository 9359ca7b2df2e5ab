"""The audit log in PostgreSQL: port AuditLog, and `note_in`, which writes an act's row in the transaction of the act.

So no act is committed without its row, and no row without its act.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from planetwire.database.postgres import Connection, Pool, translated
from planetwire.database.sql import queries_beside
from planetwire.model import Actor, Role
from planetwire.model.acts import Act, AuditEntry, AuditQuery, bounded, plain

Q = queries_beside(__file__)

PAGE_MAX = 500
PRUNED_ROWS = 1_000


async def note_in(connection: Connection, act: Act) -> None:
    """Write the act's row in the transaction that is open on the connection."""
    await connection.execute(Q.note, *_values(act))


class PostgresAuditLog:
    """Port AuditLog."""

    def __init__(self, pool: Pool, keep_days: float) -> None:
        self._pool = pool
        self._keep_s = keep_days * 86_400

    async def note(self, act: Act) -> None:
        """See the port."""
        async with translated(), self._pool.acquire() as connection:
            await note_in(connection, act)

    async def carry(self, at: datetime, key: str, act: Act) -> None:
        """Store an act of the time `at` that was recorded elsewhere; idempotent."""
        async with translated():
            await self._pool.execute(Q.carry, at, key, *_values(act))

    async def page(self, asked: AuditQuery, cursor: int | None, limit: int) -> tuple[Sequence[AuditEntry], int | None]:
        """See the port."""
        limit = min(limit, PAGE_MAX)
        wanted = (asked.since, asked.who, asked.source, asked.task_id, asked.what)
        async with translated():
            rows = await self._pool.fetch(Q.page, cursor, *wanted, limit + 1)
        entries = [_entry(row) for row in rows[:limit]]
        return entries, entries[-1].id if len(rows) > limit else None

    async def prune(self) -> int:
        """See the port. At most 1,000."""
        async with translated():
            gone: int = await self._pool.fetchval(Q.prune, self._keep_s, PRUNED_ROWS)
        return gone


def _values(act: Act) -> tuple[Any, ...]:
    by, source = act.by, act.source
    who = (plain(by.who), by.role.value, plain(by.address), act.what)
    return (*who, act.task_id, plain(source) if source is not None else None, act.rows_deleted, bounded(act.details))


def _entry(row: Mapping[str, Any]) -> AuditEntry:
    by = Actor(row["who"], Role(row["role"]), row["address"])
    act = Act(by, row["what"], row["task_id"], row["source"], row["rows_deleted"], row["details"])
    return AuditEntry(row["id"], row["at"], act)
