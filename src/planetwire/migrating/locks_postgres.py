"""How a migration gets its locks and its time: a few seconds a try, again for a while, and then words for who is in
the way.

A change of a table waits for whoever reads it, and everybody else waits behind it. So one try is short, and between two
the others go on.
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

Watch: TypeAlias = Callable[[], AbstractAsyncContextManager[Any]]  # a second connection: the first one waits
Step: TypeAlias = Callable[[], Awaitable[str | None]]

LOCK_KEY = 0x706C616E6574  # "planet"; any fixed number does
PAUSE_S = 0.5  # between two tries, up to twice as long
OTHERS_S = 0.1  # between two looks whether another process is through
TOLD_S = 10.0  # how often that is said
LOOK_S = 0.5
PASSING = (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError)


class Others(Exception):
    """Another process is at it."""


class Patience:
    """One connection's migrations under their limits. `watch` None: who blocks is not known by name."""

    def __init__(self, connection: Connection, limits: MigrationSettings, watch: Watch | None) -> None:
        self._connection = connection
        self._limits = limits
        self._watch = watch
        self._name = ""
        self._blockers: Sequence[Mapping[str, Any]] = ()

    async def again(self, step: Step) -> str | None:
        """What `step` gives; it is repeated while others are in the way. Raises SetupError, BackendError."""
        started, told_at = time.monotonic(), 0.0
        while True:
            waited_s = time.monotonic() - started
            try:
                async with translated():
                    return await step()
            except Others:
                if waited_s > self._limits.timeout_s:
                    raise await self._waited(waited_s) from None
                if waited_s - told_at >= TOLD_S or not told_at:
                    told_at = max(waited_s, OTHERS_S)
                    log.warning("schema.migration.waits", seconds=round(waited_s, 1), behind=await self._migrator())
                await asyncio.sleep(OTHERS_S)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """With the only right to migrate; raises Others when somebody has it. The commit has as long as the change.

        The right lives as long as the transaction: a session's would be nobody's behind a pooler.
        """
        await self._connection.execute("begin")
        try:
            if not await self._connection.fetchval("select pg_try_advisory_xact_lock($1)", LOCK_KEY):
                raise Others
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
        """Whatever locks it got are let go with the savepoint, so that nobody waits for us between two tries."""
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

    # --- who is in the way

    @asynccontextmanager
    async def _watching(self, pid: int) -> AsyncIterator[None]:
        if self._watch is None:
            yield
            return
        looking = asyncio.create_task(self._look(self._watch, pid))
        try:
            yield
        finally:
            await end_all([looking])

    async def _look(self, watch: Watch, pid: int) -> None:
        """Remembers whom the migration waits for; it can only be asked while it does."""
        try:
            async with watch() as connection:
                while True:
                    await asyncio.sleep(min(LOOK_S, self._limits.lock_timeout_s / 2))
                    if found := await connection.fetch(Q.blockers, pid):
                        self._blockers = found
        except Exception as error:  # the migration matters, not who watches it
            log.warning("schema.migration.unwatched", migration=self._name, error=repr(error))

    def _behind(self) -> str:
        return "; ".join(map(_told, self._blockers)) or "a session that is not known: look at pg_stat_activity"

    async def _migrator(self) -> str:
        rows = await self._connection.fetch(Q.migrator, LOCK_KEY)
        return "; ".join(map(_told, rows)) or "one that is just through"

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
    """By table about how many rows it has, and its bytes with indexes and what is stored beside it."""
    async with translated():
        return {row["name"]: (row["rows"], row["bytes"]) for row in await connection.fetch(Q.table_sizes)}


def _told(row: Mapping[str, Any]) -> str:
    query = " ".join(str(row["query"] or "").split())
    who = row["application"] or "unnamed"
    return f"pid {row['pid']} ({who}, {row['state']}, in a transaction for {row['open_s']:.0f} s, last: {query!r})"
