"""Declared sources in PostgreSQL. Each change, its audit row and the jobs that follow from it are one transaction."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import asyncpg

from planetwire.audit.audit_postgres import note_in
from planetwire.database.postgres import Connection, Pool, translated
from planetwire.database.sql import queries_beside
from planetwire.errors import NotFound, Outdated, StateError
from planetwire.model import Actor, Job, JobRequest, TaskType
from planetwire.model.acts import Act
from planetwire.model.facts import SOURCES_MAX, Declaration, Declarations

Q = queries_beside(__file__)

NUMBER = "declared_sources_number"  # the constraint that bounds them

SubmitIn: TypeAlias = Callable[[Connection, JobRequest], Awaitable[tuple[Job, bool]]]


class PostgresDeclarations:
    """`submit_in` puts a job into the ledger within the open transaction."""

    def __init__(self, pool: Pool, submit_in: SubmitIn) -> None:
        self._pool = pool
        self._submit_in = submit_in

    async def revision(self) -> int:
        """That of the set, from 0; rises with every statement that changed anything."""
        async with translated():
            found: int = await self._pool.fetchval(Q.revision)
        return found

    async def read(self) -> Declarations:
        """All of them, at one moment."""
        async with translated():
            rows = await self._pool.fetch(Q.read_all)
        return Declarations(rows[0]["of"], [_declaration(row) for row in rows if row["name"] is not None])

    async def get(self, name: str) -> Declaration | None:
        """One of them."""
        async with translated():
            row = await self._pool.fetchrow(Q.read_one, name)
        return None if row is None else _declaration(row)

    async def put(
        self,
        by: Actor,
        name: str,
        text: str,
        *,
        enabled: bool,
        origin: str,
        expected: int | None,
        jobs: Sequence[TaskType] = (),
    ) -> Declaration:
        """Store it. `expected`: the revision that is replaced, None: there is none yet. `jobs`: in order.

        Raises Outdated, StateError.
        """
        try:
            async with self._transaction(by) as connection:
                stored = _declaration(await self._written(connection, name, text, enabled, origin, expected))
                for task in jobs:
                    await self._submit(connection, by, task, name)
                details = {"revision": stored.revision, "sha256": stored.sha256, "enabled": enabled, "origin": origin}
                what = "source.added" if expected is None else "source.edited"
                cleared = {"cleared": TaskType.CLEAR_DATA in jobs}
                await note_in(connection, Act(by, what, source=name, details=details | cleared))
        except asyncpg.CheckViolationError as error:
            if error.constraint_name != NUMBER:
                raise
            raise StateError(f"more than {SOURCES_MAX} sources cannot be declared", code="too_many_sources") from error
        return stored

    async def _written(
        self, connection: Connection, name: str, text: str, enabled: bool, origin: str, expected: int | None
    ) -> Mapping[str, Any]:
        if expected is None:
            made = await connection.fetchrow(Q.insert_one, name, text, enabled, origin)
            if made is None:
                raise Outdated(f"{name} is declared already; say which revision is to be replaced")
            found: Mapping[str, Any] = made
            return found
        await self._lock(connection, name, expected)
        changed: Mapping[str, Any] = await connection.fetchrow(Q.update_one, name, text, enabled, origin)
        return changed

    async def _submit(self, connection: Connection, by: Actor, task: TaskType, source: str) -> None:
        job, created = await self._submit_in(connection, JobRequest(task, source, {}))
        details = {"task_type": task.value, "created": created}
        await note_in(connection, Act(by, "job.submitted", task_id=job.id, source=source, details=details))

    async def remove(self, by: Actor, name: str, *, expected: int | None, clear: bool) -> None:
        """`expected` None: whatever its revision. `clear`: a job deletes its facts. Raises NotFound, Outdated."""
        async with self._transaction(by) as connection:
            await self._lock(connection, name, expected)
            await connection.execute(Q.delete_one, name)
            if clear:
                await self._submit(connection, by, TaskType.CLEAR_DATA, name)
            await note_in(connection, Act(by, "source.removed", source=name, details={"cleared": clear}))

    async def _lock(self, connection: Connection, name: str, expected: int | None) -> None:
        row = await connection.fetchrow(Q.lock_one, name)
        if row is None:
            raise NotFound(f"no source {name[:63]!r} is declared", code="unknown_source")
        if expected is not None and row["revision"] != expected:
            raise Outdated(
                f"{name} was changed by {row['changed_by']} since: it is at revision {row['revision']}, not {expected}"
            )

    @asynccontextmanager
    async def _transaction(self, by: Actor) -> AsyncIterator[Connection]:
        async with translated(), self._pool.acquire() as connection, connection.transaction():
            await connection.execute(Q.name_person, by.who)
            yield connection


def _declaration(row: Mapping[str, Any]) -> Declaration:
    return Declaration(**{name: row[name] for name in Declaration.__slots__})
