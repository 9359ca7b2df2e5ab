"""Lock and time limits of a migration: short tries, repeated up to a bound, then an error that names the blockers.

A schema change waits for all readers of its table, and every later statement queues behind it. So a try is short, and
between two tries the other sessions proceed.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, TypeAlias

import asyncpg

from planetwire.database.postgres import CONNECTION_ERRORS, Connection, translated
from planetwire.database.sql import queries_beside
from planetwire.errors import SetupError
from planetwire.log import get_logger
from planetwire.runtime.ending import end_all
from planetwire.settings import MigrationSettings

log = get_logger()
Q = queries_beside(__file__)

Watch: TypeAlias = Callable[[], AbstractAsyncContextManager[Any]]  # opens a second connection: the first one is blocked
Step: TypeAlias = Callable[[], Awaitable[str | None]]

LOCK_KEY = 0x706C616E6574  # "planet"; any fixed number does
PAUSE_S = 0.5  # between two tries, up to twice as long
BUSY_S = 0.1  # between two checks whether another process has finished
WARN_EVERY_S = 10.0  # how often that wait is logged
POLL_S = 0.5
PASSING = (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError)


class AlreadyMigrating(Exception):
    """Another process is migrating this database."""


class Patience:
    """One connection's migrations under their limits. Without `watch` the blocking sessions are not named."""

    def __init__(self, connection: Connection, limits: MigrationSettings, watch: Watch | None) -> None:
        self._connection = connection
        self._limits = limits
        self._watch = watch
        self._name = ""
        self._blockers: Sequence[Mapping[str, Any]] = ()

    async def again(self, step: Step) -> str | None:
        """Run `step`, again while another process migrates; returns its result. Raises SetupError, BackendError."""
        started, warned_at = time.monotonic(), 0.0
        while True:
            waited_s = time.monotonic() - started
            try:
                async with translated():
                    return await step()
            except AlreadyMigrating:
                if waited_s > self._limits.timeout_s:
                    raise await self._waited(waited_s) from None
                if waited_s - warned_at >= WARN_EVERY_S or not warned_at:
                    warned_at = max(waited_s, BUSY_S)
                    log.warning("schema.migration.waits", seconds=round(waited_s, 1), behind=await self._migrator())
                await asyncio.sleep(BUSY_S)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """Holds the migration lock; AlreadyMigrating if another process does. The time limit includes the commit.

        The advisory lock belongs to the transaction: behind a pooler a session lock would have no owner.
        """
        await self._connection.execute("begin")
        try:
            if not await self._connection.fetchval("select pg_try_advisory_xact_lock($1)", LOCK_KEY):
                raise AlreadyMigrating
            yield
        except BaseException:
            with suppress(*CONNECTION_ERRORS, asyncpg.PostgresError):
                await self._connection.execute("rollback")
            raise
        await self._connection.execute("commit", timeout=self._limits.timeout_s)

    async def run(self, name: str, script: str) -> None:
        """One migration, in the open transaction; a savepoint lets it be tried again. Raises SetupError."""
        self._name, self._blockers = name, ()
        until = time.monotonic() + self._limits.lock_wait_s
        while True:
            try:
                return await self._try(script)
            except PASSING as error:
                log.warning("schema.migration.blocked", migration=name, error=str(error), behind=self._behind())
                if time.monotonic() > until:
                    raise self._blocked() from error
            except (TimeoutError, asyncpg.QueryCanceledError) as error:
                raise self._too_long() from error
            except asyncpg.PostgresError as error:
                if isinstance(error, CONNECTION_ERRORS):
                    raise
                raise SetupError(
                    f"migration {name} failed, nothing was changed: {error}", code="migration_failed"
                ) from error
            await asyncio.sleep(PAUSE_S * random.uniform(1, 2))

    async def _try(self, script: str) -> None:
        """The savepoint releases all locks, so that no session waits for us between two tries."""
        lock_ms, longest_ms = (
            round(limit_s * 1000) for limit_s in (self._limits.lock_timeout_s, self._limits.timeout_s)
        )
        pid = await self._connection.fetchval("select pg_backend_pid()")
        await self._connection.execute("savepoint migration")
        try:
            await self._connection.execute(
                f"set local lock_timeout = {lock_ms}; set local statement_timeout = {longest_ms}"
            )
            async with self._watching(pid):
                await self._connection.execute(script, timeout=self._limits.timeout_s)
        except PASSING:
            await self._connection.execute("rollback to savepoint migration")
            raise
        await self._connection.execute("release savepoint migration")

    # --- blocking sessions

    @asynccontextmanager
    async def _watching(self, pid: int) -> AsyncIterator[None]:
        if self._watch is None:
            yield
            return
        polling = asyncio.create_task(self._poll_blockers(self._watch, pid))
        try:
            yield
        finally:
            await end_all([polling])

    async def _poll_blockers(self, watch: Watch, pid: int) -> None:
        """Record the blocking sessions; the server names them only while the migration waits."""
        try:
            async with watch() as connection:
                while True:
                    await asyncio.sleep(min(POLL_S, self._limits.lock_timeout_s / 2))
                    if found := await connection.fetch(Q.blockers, pid):
                        self._blockers = found
        except Exception as error:  # a failed observer must not fail the migration
            log.warning("schema.migration.unwatched", migration=self._name, error=repr(error))

    def _behind(self) -> str:
        return "; ".join(map(_session_text, self._blockers)) or "a session that is not known: look at pg_stat_activity"

    async def _migrator(self) -> str:
        rows = await self._connection.fetch(Q.migrator, LOCK_KEY)
        return "; ".join(map(_session_text, rows)) or "one that is just through"

    async def _waited(self, seconds: float) -> SetupError:
        return SetupError(
            f"another process has been changing the schema for {seconds:.0f} s: {await self._migrator()}; "
            "wait until it is through, or end it, then start again",
            code="migration_waited",
        )

    def _blocked(self) -> SetupError:
        pids = ", ".join(f"select pg_terminate_backend({row['pid']})" for row in self._blockers)
        end = f"end it (`{pids}`)" if pids else "end it"
        return SetupError(
            f"migration {self._name} found no moment of {self._limits.lock_timeout_s:g} s within "
            f"{self._limits.lock_wait_s:g} s to change what is in use by {self._behind()}; nothing was changed: {end}, "
            "or raise PLANETWIRE_MIGRATION__LOCK_WAIT_S, and start again",
            code="migration_blocked",
        )

    def _too_long(self) -> SetupError:
        return SetupError(
            f"migration {self._name} was not through within {self._limits.timeout_s:g} s, nothing was changed; "
            "raise PLANETWIRE_MIGRATION__TIMEOUT_S and start again",
            code="migration_too_long",
        )


async def table_sizes(connection: Connection) -> dict[str, tuple[int, int]]:
    """By table: the estimated number of rows, and the bytes including indexes and TOAST."""
    async with translated():
        return {row["name"]: (row["rows"], row["bytes"]) for row in await connection.fetch(Q.table_sizes)}


def _session_text(row: Mapping[str, Any]) -> str:
    query = " ".join(str(row["query"] or "").split())
    who = row["application"] or "unnamed"
    return f"pid {row['pid']} ({who}, {row['state']}, in a transaction for {row['open_s']:.0f} s, last: {query!r})"
