"""The diagnostic, composed of the checks of each stage. Every check has its own time limit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from ssl import SSLContext
from typing import TypeVar

from planetwire.audit.audit_postgres import note_in
from planetwire.collect.feedstate_file import FeedStates
from planetwire.database.postgres import Connection, Pool, connect, translated
from planetwire.datasets.registry import observation_feeds, owned_tables
from planetwire.errors import BackendError, PlanetwireError, SetupError, StateError
from planetwire.facts.sqlite.diagnosis_sqlite import examine_file as examine_file
from planetwire.jobs.ledger.diagnosis_postgres import examine_ledger
from planetwire.layers.canary import CANARY
from planetwire.migrating.migrate import pending_postgres
from planetwire.model import Actor, Json
from planetwire.model.acts import Act
from planetwire.model.finding import Finding, first_broken, step
from planetwire.outbox.tables import watched
from planetwire.outbox.upkeep.canary_postgres import Canary, release_canary, watch_canary
from planetwire.outbox.upkeep.desk_postgres import OutboxDesk
from planetwire.outbox.upkeep.diagnosis_postgres import examine
from planetwire.outbox.upkeep.server_postgres import examine_server
from planetwire.outbox.upkeep.triggers_postgres import repair_triggers
from planetwire.relay.outlet_postgres import examine_outlets
from planetwire.web.live.probe import Probe, listen

T = TypeVar("T")

STEP_S = 5.0  # each check of the database
WRITE_S = 5.0  # the canary's own write
ACQUIRE_S = 3.0
CANARY_S = 10.0  # for the relay: polling alone takes one, a takeover more
DELIVERY_S = 5.0
KEPT_S = 1.0
NAMED_MAX = 5  # migrations
FAILING_FROM = 2  # a single failure may be a network error; the feed retries within seconds
BROWSERS = "Browsers can connect"


async def examine_database(connection: Connection, canary: Canary | None = None) -> list[Json]:
    """Steps of the path up to the relay, then `server` and `ledger`."""
    steps = await _within("outbox", "The path can be examined", lambda: examine(connection, watched_tables(), canary))
    for name, check in (("server", examine_server), ("ledger", examine_ledger)):
        steps += await _within(name, f"The {name} can be examined", lambda check=check: _one(check(connection)))  # type: ignore[misc]
    return steps + await _within("outlets", "The outlets can be examined", lambda: examine_outlets(connection))


def watched_tables() -> list[str]:
    """Tables whose changes reach the map."""
    return [table.name for table in watched(owned_tables())]


async def _one(result: Awaitable[Json]) -> list[Json]:
    return [await result]


async def _within(name: str, title: str, check: Callable[[], Awaitable[list[Json]]]) -> list[Json]:
    try:
        async with asyncio.timeout(STEP_S):
            return await check()
    except TimeoutError:
        return [step(name, title, "", [Finding("step_unanswered", f"no answer within {STEP_S:g} s")])]


async def send_canary(
    connection: Connection, url: str, token: str | None, trust: SSLContext | None = None
) -> tuple[Canary | None, Json]:
    """Send one change through every stage to a WebSocket client of `url`; also returns the step `websocket`."""
    async with AsyncExitStack() as stack:
        probe, problem = await _open_probe(stack, url, token, trust)
        canary = await release_canary(connection, WRITE_S)
        sent = time.monotonic()
        await watch_canary(connection, canary, CANARY_S)
        arrived = await probe.arrived(canary.revision, DELIVERY_S) if probe and canary.revision is not None else None
    if probe is None:
        return canary, step("websocket", BROWSERS, "", [Finding("websocket_down", problem)])
    if canary.revision is not None and arrived is None:
        missing = Finding("canary_unheard", f"revision {canary.revision} did not arrive within {DELIVERY_S:g} s")
        return canary, step("websocket", BROWSERS, probe.greeting, [missing])
    if arrived is None:
        return canary, step("websocket", BROWSERS, probe.greeting)
    took = round((arrived - sent) * 1000, 1)
    detail = f"{probe.greeting}; canary: heard {took} ms after the commit, as revision {canary.revision}"
    return canary, step("websocket", BROWSERS, detail, timings={"heard_ms": took, "revision": canary.revision})


async def _open_probe(
    stack: AsyncExitStack, url: str, token: str | None, trust: SSLContext | None
) -> tuple[Probe | None, str]:
    try:
        return await stack.enter_async_context(listen(url, CANARY.id, token, trust)), ""
    except BackendError as error:
        return None, error.message


async def examine_websocket(url: str, token: str | None, trust: SSLContext | None = None) -> Json:
    """The step without a canary: whether a client can connect."""
    async with AsyncExitStack() as stack:
        probe, problem = await _open_probe(stack, url, token, trust)
        return step(
            "websocket",
            BROWSERS,
            probe.greeting if probe else "",
            [] if probe else [Finding("websocket_down", problem)],
        )


async def examine_path(
    dsn: str, url: str, token: str | None, trust: SSLContext | None = None, *, canary: bool
) -> list[Json]:
    """All steps of database and socket, in the order of the path.

    Raises BackendError without a database, SetupError for the schema of another version.
    """
    async with of_this_version(dsn):
        connection = await connect(dsn, application="doctor")
        try:
            async with translated():
                sent, socket = await send_canary(connection, url, token, trust) if canary else (None, None)
                steps = await examine_database(connection, sent)
        finally:
            connection.terminate()
    return _in_order(steps, socket or await examine_websocket(url, token, trust))


def _in_order(steps: Sequence[Json], socket: Json) -> list[Json]:
    return [*(s for s in steps if s["number"]), socket, *(s for s in steps if not s["number"])]


def observation_feeds_step(data_dir: Path) -> Json:
    """The last runs of the observation feeds, from their state files: they have no jobs in the ledger."""
    runs = FeedStates(data_dir / "feeds").failures(list(observation_feeds()))
    failing = [
        Finding("observations_failed", f"{run['source']}: {run['code']} {run['error'][:200]} ({run['failures']} times)")
        for run in runs
        if run["failures"] >= FAILING_FROM
    ]
    detail = ", ".join(f"{run['source']} last good {run['last_success_at'] or 'never'}" for run in runs)
    return step("observations", "Observation feeds bring reports", detail, failing)


class Diagnostics:
    """The diagnostic of a web process, over its pool. One canary at a time."""

    def __init__(
        self,
        pool: Pool | None,
        checks: Callable[[], Awaitable[Json]],
        token: str,
        trust: SSLContext | None = None,
    ) -> None:
        self._pool = pool
        self._checks = checks
        self._token = token
        self._trust = trust
        self._busy = asyncio.Lock()
        self._examining = asyncio.Lock()
        self._last: tuple[float, Json] | None = None

    async def examine(self) -> Json:
        """Without a canary. Open to everybody, so computed at most once a second."""
        async with self._examining:
            if self._last is None or time.monotonic() - self._last[0] > KEPT_S:
                report = await self._report(await self._steps())
                self._last = (time.monotonic(), report)
            return self._last[1]

    async def _steps(self) -> list[Json]:
        if self._pool is None:
            return []
        async with _connected(self._pool) as connection:
            return await examine_database(connection)

    async def send(self, url: str) -> Json:
        """With a canary, through a socket to this process at `url`. Raises StateError while another is under way."""
        if self._busy.locked():
            raise StateError("a canary is under way", code="busy")
        steps: list[Json] = []
        async with self._busy:
            if self._pool is not None:
                async with _connected(self._pool) as connection:
                    canary, socket = await send_canary(connection, url, self._token, self._trust)
                    steps = _in_order(await examine_database(connection, canary), socket)
        return await self._report(steps)

    async def _report(self, steps: Sequence[Json]) -> Json:
        broken = first_broken(steps)
        return {"broken": broken and broken["step"], "steps": list(steps), "checks": await self._checks()}


@asynccontextmanager
async def _connected(pool: Pool) -> AsyncIterator[Connection]:
    async with translated(), pool.acquire(timeout=ACQUIRE_S) as connection:
        yield connection


async def repair(dsn: str, by: Actor) -> int:
    """Repair every change trigger; returns how many were recreated. Raises BackendError."""
    connection = await connect(dsn, application="migrate")
    try:
        async with connection.transaction():
            made = await repair_triggers(connection, watched_tables())
            await note_in(connection, Act(by, "schema.repaired", details={"triggers": made}))
        return made
    finally:
        await connection.close()


@asynccontextmanager
async def open_outbox(dsn: str) -> AsyncIterator[OutboxDesk]:
    """For one command. Raises BackendError, and SetupError with the schema of another version."""
    async with of_this_version(dsn):
        connection = await connect(dsn, application="cli")
        try:
            yield OutboxDesk(connection)
        finally:
            await connection.close()


def behind_text(missing: Sequence[str]) -> str | None:
    """What the schema lacks, in a few words; None if it is complete."""
    if len(missing) > NAMED_MAX:
        return f"{len(missing)} migrations not applied, {missing[0]} to {missing[-1]}"
    return f"migrations not applied: {', '.join(missing)}" if missing else None


@asynccontextmanager
async def of_this_version(dsn: str) -> AsyncIterator[None]:
    """An error that the schema of another version explains becomes a SetupError `schema_behind`."""
    try:
        yield
    except (PlanetwireError, OSError):  # OSError: also a closed pipe
        raise
    except Exception as error:
        connection = await connect(dsn, application="cli")
        try:
            behind = behind_text(await pending_postgres(connection))
        finally:
            await connection.close()
        if behind is None:
            raise
        raise SetupError(
            f"{behind}: run `planetwire migrate`, or restart `planetwire up`", code="schema_behind"
        ) from error
