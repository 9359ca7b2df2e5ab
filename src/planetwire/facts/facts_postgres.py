"""Facts in PostgreSQL: port FactStore.

A batch is one COPY into a temporary table and one merging statement, so it fires each statement trigger once; an
unchanged row is neither written nor locked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from planetwire.database.postgres import Connection, Pool, read_again, translated
from planetwire.database.sql import queries_beside
from planetwire.facts import clean
from planetwire.facts.derived_postgres import Projection
from planetwire.facts.refused_postgres import skipping_refused
from planetwire.log import get_logger
from planetwire.model import Batch, Fact, FetchState, Written
from planetwire.ports import JobTx
from planetwire.text import plain_json

log = get_logger()
Q = queries_beside(__file__)

STAGE = "fact_stage"
STAGE_COLUMNS = ("external_key", "kind", "title", "data", "lat", "lon", "observed_at", "valid_until")
SAMPLED = 60
OPENED_MAX = plain_json.MAX_DEPTH  # a feature with no more objects and lists cannot be too deep
_SAMPLE_OF_LONG = re.compile(r"[0-9]{5}")
_LONG = re.compile(r"[0-9]{309}")
SHRINK_MIN = 0.5  # a body with less than this share of the stored rows deletes nothing


class PostgresFactStore:
    """Port FactStore."""

    def __init__(self, pool: Pool, projection: Projection | None = None) -> None:
        """`projection` writes the derived rows; None: there are none."""
        self._pool = pool
        self._projection = projection

    async def upsert(self, tx: JobTx, source: str, batch: Batch, task_id: int | None) -> Written:
        """See the port. Of facts with the same key the last wins; a tombstone wins over all.

        A body with less than half of the stored rows deletes nothing, and the job's message says so.
        """
        connection: Connection = tx.connection
        async with translated():
            written, changed = await self._merge(connection, source, batch.facts, task_id)
            await self._derive(connection, source, batch, changed)
            if batch.tombstones:
                await self._delete(connection, Q.delete_keys, source, batch.tombstones)
            if batch.complete and batch.sweep_keys is not None:
                await self._sweep(tx, source, batch.sweep_keys, task_id)
            await self._remember(connection, source, batch, task_id)
        return written

    async def _merge(
        self, connection: Connection, source: str, facts: Sequence[Fact], task_id: int | None
    ) -> tuple[Written, Sequence[str]]:
        """Counts of the rows, and the keys of those that changed."""
        if not facts:
            return Written(0, 0, 0), ()
        await connection.execute(Q.name_deriving, "off" if self._projection is None else "on")
        parts = await skipping_refused(
            connection, source, facts, lambda some: _merge_some(connection, source, some, task_id), doing="written"
        )
        counts = [sum(counted) for counted in zip(*(part[:3] for part in parts), strict=True)] or [0, 0, 0]
        return Written(*counts), [key for part in parts for key in part[3]]

    async def _derive(self, connection: Connection, source: str, batch: Batch, changed: Sequence[str]) -> None:
        """In the transaction of the facts; at the end of a run also facts written by others or before an upgrade."""
        if self._projection is None:
            return
        if changed:
            facts = {clean.text(fact.external_key): fact for fact in batch.facts}
            await self._projection.project_each(connection, source, [facts[key] for key in changed])
        if batch.complete or batch.state is not None:
            await self._projection.catch_up(connection, source)

    async def _sweep(self, tx: JobTx, source: str, keys: frozenset[str], task_id: int | None) -> None:
        connection: Connection = tx.connection
        before = await connection.fetchval(Q.count_before_run, source, task_id)
        if not before:
            return  # all rows came with this run
        if len(keys) < before * SHRINK_MIN:
            log.warning("facts.sweep.refused", source=source, rows=len(keys), before=before)
            tx.progress(0, message=f"suspicious_shrink: {len(keys)} rows, {before} before; nothing was deleted")
            return
        await self._delete(connection, Q.sweep, source, keys)

    async def _delete(self, connection: Connection, statement: str, source: str, keys: frozenset[str]) -> None:
        """Names the source for the trigger, so that the sweep does not void the source's own fetch state."""
        await connection.execute(Q.name_sweep, source)
        await connection.execute(statement, source, list(keys))
        await connection.execute(Q.name_sweep, "")

    async def _remember(self, connection: Connection, source: str, batch: Batch, task_id: int | None) -> None:
        state = batch.state
        rows = _rows_of(batch)
        if state is not None:
            await connection.execute(
                Q.store_state,
                source,
                state.etag,
                state.last_modified,
                state.body_sha256,
                state.fetched_at,
                state.cooldown_until,
                task_id,
                batch.complete,
                rows,
            )
        elif batch.complete:
            await connection.execute(Q.note_success, source, rows)

    async def clear_chunk(self, tx: JobTx, table: str, source: str, limit: int) -> int:
        """See the port. `table` must be a fact or derived table: it has `id` and `source`."""
        async with translated():
            gone: int = await tx.connection.fetchval(Q.clear_chunk, table, source, limit)
        return gone

    @read_again
    async def count_rows(self, tables: Sequence[str], source: str) -> Mapping[str, int]:
        """See the port."""
        async with translated():
            rows = await self._pool.fetch(Q.count_rows, list(tables), source)
        return {row["name"]: row["found"] for row in rows}

    @read_again
    async def features(self, sources: Sequence[str], limit: int | None) -> tuple[Sequence[bytes], int]:
        """See the port. Times are UTC with microseconds and Z."""
        async with (
            translated(),
            self._pool.acquire() as connection,
            connection.transaction(isolation="repeatable_read"),
        ):
            rows = await connection.fetch(Q.features, list(sources), limit)
            total = len(rows) if limit is None else await connection.fetchval(Q.count_facts, list(sources))
        return [readable(row[0]) for row in rows], total

    @read_again
    async def fetch_state(self, source: str) -> FetchState | None:
        """See the port."""
        async with translated():
            row = await self._pool.fetchrow(Q.fetch_state, source)
        return FetchState(**dict(row)) if row is not None else None

    @read_again
    async def last_success(self, sources: Sequence[str]) -> Mapping[str, datetime]:
        """See the port. Sources without a success are missing."""
        async with translated():
            rows = await self._pool.fetch(Q.last_success, list(sources))
        return {row["source"]: row["last_success_at"] for row in rows}


async def _merge_some(
    connection: Connection, source: str, facts: Sequence[Fact], task_id: int | None
) -> tuple[int, int, int, Sequence[str]]:
    """Numbers of inserted, updated and unchanged rows, and the keys of the first two."""
    rows = {row[0]: row for row in _stage_rows(facts)}  # one statement may not write a row twice: the last wins
    await connection.execute(Q.create_stage)
    await connection.copy_records_to_table(STAGE, records=rows.values(), columns=STAGE_COLUMNS)
    counts = await connection.fetchrow(Q.merge_stage, source, task_id)
    assert counts is not None
    inserted, updated = counts["inserted"], counts["updated"]
    return inserted, updated, len(rows) - inserted - updated, counts["keys"]


def readable(feature: str) -> bytes:
    """A feature that browsers can parse: in `data`, its last member, numbers that no float holds and too deep values,
    which only a person types, become null.

    Such a number has more than 300 digits, so at least five of every sixtieth characters are digits.
    """
    huge = _SAMPLE_OF_LONG.search(feature[::SAMPLED]) and _LONG.search(feature)
    if huge or feature.count("{") + feature.count("[") > OPENED_MAX:
        head, name, data = feature.partition(',"data":')
        read = plain_json.loads(data[:-1].encode())
        return head.encode() + name.encode() + plain_json.dumps(read if isinstance(read, dict) else {}) + b"}"
    return feature.encode()


def _rows_of(batch: Batch) -> int | None:
    if not batch.complete:
        return None
    return len(batch.sweep_keys) if batch.sweep_keys is not None else batch.total_hint or len(batch.facts)


def _stage_rows(facts: Sequence[Fact]) -> Iterator[tuple[Any, ...]]:
    for fact in facts:
        yield (
            clean.text(fact.external_key),
            clean.text(fact.kind),
            clean.text(fact.title),
            clean.json_bytes(fact.data),
            clean.finite(fact.lat),
            clean.finite(fact.lon),
            fact.observed_at,
            fact.valid_until,
        )
