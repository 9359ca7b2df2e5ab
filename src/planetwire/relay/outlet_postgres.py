"""The outlets' cursors and who may send: `OutletBook`, and the diagnostic's step."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import asyncpg

from planetwire.database.postgres import Connection, Pool, translated
from planetwire.database.sql import queries_beside
from planetwire.errors import BackendError, LeaseLost
from planetwire.model import Cursor, Json
from planetwire.model.finding import Finding, step
from planetwire.relay.outlet import Place

Q = queries_beside(__file__)

ACQUIRE_S = 5.0
ERROR_TEXT_MAX = 500
LATE_S = 120.0  # retries to an unreachable receiver may take this long by themselves


@asynccontextmanager
async def _connected(pool: Pool) -> AsyncIterator[Connection]:
    try:
        async with translated(), pool.acquire(timeout=ACQUIRE_S) as connection:
            yield connection
    except asyncpg.PostgresError as error:
        raise BackendError(f"PostgreSQL: {error!r}") from error


class PostgresOutletBook:
    """One outlet's rows. A sender that lost the term changes nothing."""

    def __init__(self, pool: Pool, outlet: str) -> None:
        self._pool = pool
        self._outlet = outlet

    async def lead(self, holder: str, ttl_s: float) -> int | None:
        """See the port. The very first call records the heads of the log as the start position."""
        async with _connected(self._pool) as connection:
            term: int | None = await connection.fetchval(Q.lead, self._outlet, holder, ttl_s)
            if term is None:
                await connection.execute(Q.add_outlet, self._outlet)
                term = await connection.fetchval(Q.lead, self._outlet, holder, ttl_s)
        return term

    async def resign(self, holder: str, term: int) -> None:
        """Let another process send at once."""
        async with _connected(self._pool) as connection:
            await connection.execute(Q.resign, self._outlet, holder, term)

    async def places(self, layers: Sequence[str]) -> Sequence[Place]:
        """Of the layers that have events."""
        async with _connected(self._pool) as connection:
            rows = await connection.fetch(Q.positions, self._outlet, layers)
        return [
            Place(
                row["layer"],
                Cursor(row["epoch"], row["revision"]),
                Cursor(row["log_epoch"], row["head"]),
                row["pruned_through"],
                row["attempts"],
                row["wait_s"],
                row["paused"],
            )
            for row in rows
        ]

    async def advance(self, term: int, layer: str, cursor: Cursor) -> None:
        """The receiver has everything of the layer up to the cursor. Raises LeaseLost."""
        async with _connected(self._pool) as connection:
            done = await connection.execute(Q.advance, self._outlet, term, layer, cursor.epoch, cursor.revision)
        self._check(done, term)

    async def defer(self, term: int, place: Place, error: str, *, wait_s: float, paused: bool) -> None:
        """Retry the next event of the layer after `wait_s`. Raises LeaseLost."""
        at = place.sent
        async with _connected(self._pool) as connection:
            done = await connection.execute(
                Q.defer, self._outlet, term, place.layer, at.epoch, at.revision, wait_s, paused, error[:ERROR_TEXT_MAX]
            )
        self._check(done, term)

    def _check(self, status: str, term: int) -> None:
        if status == "INSERT 0 0":
            raise LeaseLost(f"term {term} of the outlet {self._outlet} is over")


async def examine_outlets(connection: Connection) -> list[Json]:
    """A step for each outlet that was ever enabled. None of them delays the map."""
    return [_step(row) for row in await connection.fetch(Q.standing)]


def _step(row: asyncpg.Record) -> Json:
    findings = []
    if row["paused"]:
        named = ", ".join(row["paused"])
        findings.append(Finding("outlet_paused", f"refused again and again: {named}: {row['paused_error']}"))
    if row["held"] and row["oldest_age_s"] > LATE_S:
        because = f": {row['last_error']}" if row["last_error"] else ""
        findings.append(Finding("outlet_late", f"the oldest event waits for {row['oldest_age_s']:.0f} s{because}"))
    who = "a process sends" if row["held"] else "no process sends: switched off, or none runs"
    detail = f"{who}; the oldest unsent event is {row['oldest_age_s']:.1f} s old"
    return step(f"outlet {row['outlet']}", "Changes reach other services", detail, findings)
