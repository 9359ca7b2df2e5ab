"""The one module that knows asyncpg: pools, codecs, the LISTEN connection. SQL itself lies with its owners.

Behind a pooler in transaction mode (PgBouncer) two statements of a client may meet two servers. So nothing here or
above relies on a session: no prepared statement is kept, nothing is reset, and nobody listens.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from functools import wraps
from typing import Any, ParamSpec, TypeAlias, TypeVar

import asyncpg

from planetwire.errors import BackendError
from planetwire.log import get_logger
from planetwire.runtime.backoff import Backoff
from planetwire.text import plain_json

log = get_logger()

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"
P = ParamSpec("P")
T = TypeVar("T")

COMMAND_TIMEOUT_S = 30.0  # a statement that takes longer is a fault, not slow under load
CONNECT_TIMEOUT_S = 5.0
CLOSE_TIMEOUT_S = 3.0  # for running statements when a process ends
SELF_TEST_S = 10.0  # how often the LISTEN connection proves that it is alive …
ECHO_S = 5.0  # … by a notification to itself that comes back within this time
RECONNECT_S = 0.1
RECONNECT_MAX_S = 5.0
STATEMENTS_KEPT = 100  # prepared statements per connection of a pool
# The server too should notice a lost listener: undelivered notifications hold back its vacuum.
_KEEPALIVES = "set tcp_keepalives_idle = 30; set tcp_keepalives_interval = 10; set tcp_keepalives_count = 3"
DEADLOCK = "deadlock"
_JSONB_VERSION = b"\x01"  # first byte of jsonb's binary form; JSON text follows
# Errors of a dead, restarting or unreachable server; all others are bugs and propagate.
# (InternalClientError: the driver lost the server in the middle of a protocol step.)
CONNECTION_ERRORS = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    TimeoutError,
)
# Errors of a server that is shutting down, starting, or out of connections.
SERVER_BUSY = (
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
)
# A statement prepared before its table got a column fails once inside a transaction, then is prepared again.
SCHEMA_CHANGED = (asyncpg.InvalidCachedStatementError,)


async def set_codecs(connection: Connection) -> None:
    """Decode jsonb to Python values and encode them; `bytes` are sent as JSON that is encoded already."""
    # Binary, so that COPY takes it too.
    await connection.set_type_codec("jsonb", schema="pg_catalog", encoder=_encode, decoder=_decode, format="binary")


def _encode(value: object) -> bytes:
    return _JSONB_VERSION + (value if isinstance(value, bytes) else plain_json.dumps(value))


def _decode(raw: bytes) -> object:
    """JSON written by hand may have numbers and depths that no parser accepts: these become None."""
    return plain_json.loads(memoryview(raw)[1:])


async def connect(dsn: str, *, application: str) -> Connection:
    """One connection with codecs, fit for a pooler. Raises BackendError when the server cannot be reached."""
    connection: Connection | None = None
    try:
        connection = await asyncpg.connect(dsn, **_options(application), statement_cache_size=0)
        await set_codecs(connection)
    except (*CONNECTION_ERRORS, asyncpg.PostgresError, ValueError) as error:  # ValueError: an invalid address
        if connection is not None:
            connection.terminate()
        raise _unreachable(error) from error
    return connection


@asynccontextmanager
async def connected(dsn: str, *, application: str) -> AsyncIterator[Connection]:
    """A connection for a block."""
    connection = await connect(dsn, application=application)
    try:
        yield connection
    finally:
        await _end(connection)


class _PooledConnection(asyncpg.Connection):  # type: ignore[misc]
    """Marks a connection on which a call was interrupted.

    The driver prepares a statement without a Sync. A call that ends between that and its execution (cancelled, or an
    argument that cannot be encoded) leaves the server in a transaction with locks and a snapshot, and the driver does
    not know it: the next `begin isolation level …` fails, and a TRUNCATE waits for an idle connection.
    """

    cut_off = False


def _noting(call: Callable[..., Coroutine[Any, Any, T]]) -> Callable[..., Coroutine[Any, Any, T]]:
    @wraps(call)
    async def noted(self: _PooledConnection, *args: Any, **kwargs: Any) -> T:
        try:
            return await call(self, *args, **kwargs)
        except BaseException:
            self.cut_off = True
            raise

    return noted


for _name in (
    *("execute", "executemany", "fetch", "fetchmany", "fetchrow", "fetchval", "prepare"),
    *("copy_from_query", "copy_from_table", "copy_records_to_table", "copy_to_table"),
):
    setattr(_PooledConnection, _name, _noting(getattr(asyncpg.Connection, _name)))


async def open_pool(dsn: str, *, application: str, min_size: int = 1, max_size: int = 8) -> Pool:
    """A pool with codecs. Raises BackendError when the server cannot be reached."""
    pooled = await _leads_to_pooler(dsn)
    try:
        pool = await asyncpg.create_pool(
            dsn,
            min_size=min_size,
            max_size=max_size,
            init=set_codecs,
            reset=_end_what_was_cut_off,
            connection_class=_PooledConnection,
            statement_cache_size=0 if pooled else STATEMENTS_KEPT,
            **_options(application),
        )
    except (*CONNECTION_ERRORS, asyncpg.PostgresError) as error:
        raise _unreachable(error) from error
    return pool


def _unreachable(error: Exception) -> BackendError:
    return BackendError(f"PostgreSQL cannot be reached: {error or f'no answer within {CONNECT_TIMEOUT_S:g} s'}")


def _options(application: str) -> dict[str, Any]:
    """For every connection. No other server settings: a pooler rejects those it does not know."""
    return {
        "timeout": CONNECT_TIMEOUT_S,
        "command_timeout": COMMAND_TIMEOUT_S,
        "server_settings": {"application_name": f"planetwire {application}"},
    }


async def behind_pooler(connection: Connection) -> bool:
    """Whether the backend's pid differs from that of the connection's start: a pooler sends a number of its own."""
    answering: int = await connection.fetchval("select pg_backend_pid()")
    return bool(answering != connection.get_server_pid())


async def _leads_to_pooler(dsn: str) -> bool:
    connection = await connect(dsn, application="probe")
    try:
        async with translated():
            return await behind_pooler(connection)
    finally:
        await _end(connection)


async def _end_what_was_cut_off(connection: Connection) -> None:
    """Reset for a returned connection, without a round trip in the usual case.

    We leave no session state behind (the driver ends open transactions), and a reset would cost as much as the query
    that the connection was acquired for. Only after a call that `_PooledConnection` marked as interrupted, the server's
    transaction is ended by a statement that needs no prepare.
    """
    if isinstance(connection, _PooledConnection) and connection.cut_off:
        await connection.execute("select")
        connection.cut_off = False


async def _end(connection: Connection) -> None:
    with suppress(*CONNECTION_ERRORS, asyncpg.PostgresError):
        await connection.close(timeout=1)  # terminates it after the timeout


async def close_pool(pool: Pool) -> None:
    """Close gracefully, then terminate: connections to an unreachable server would wait for ever."""
    try:
        await asyncio.wait_for(pool.close(), CLOSE_TIMEOUT_S)
    except (TimeoutError, *CONNECTION_ERRORS):
        pool.terminate()


@asynccontextmanager
async def translated() -> AsyncIterator[None]:
    """Connection errors become BackendError, so that callers need not know the driver.

    A transaction that the server aborted as a deadlock victim gets the code `deadlock`.
    """
    try:
        yield
    except asyncpg.TransactionRollbackError as error:
        raise BackendError(f"PostgreSQL: {error}", code=DEADLOCK) from error
    except (*CONNECTION_ERRORS, *SERVER_BUSY, *SCHEMA_CHANGED) as error:
        raise BackendError(f"PostgreSQL: {error!r}") from error


def read_again(read: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Repeat a read once if the server aborted it as a deadlock victim, as in a deadlock with a TRUNCATE."""

    @wraps(read)
    async def reading(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await read(*args, **kwargs)
        except BackendError as error:
            if error.code != DEADLOCK:
                raise
        return await read(*args, **kwargs)

    return reading


class Listener:
    """A connection that only listens, and comes back by itself. A ring carries nothing.

    Every (re)connect rings too: what fell into the gap is found by looking, never by counting.
    """

    def __init__(
        self,
        dsn: str,
        channels: tuple[str, ...],
        on_ring: Callable[[str], None],
        *,
        on_connected: Callable[[], None],
        self_test_s: float = SELF_TEST_S,
        echo_s: float = ECHO_S,
    ) -> None:
        self._dsn = dsn
        self._channels = channels
        self._on_ring = on_ring
        self._on_connected = on_connected
        self._self_test_s = self_test_s
        self._echo_s = echo_s
        self.connected = False

    async def run(self) -> None:
        """Listen until cancelled; reconnects with back-off up to 5 s. Returns if a pooler stands in between."""
        backoff = Backoff(RECONNECT_S, RECONNECT_MAX_S)
        while True:
            try:
                connection = await connect(self._dsn, application="listen")
            except BackendError:
                await backoff.pause()
                continue
            backoff.reset()
            try:
                if await behind_pooler(connection):
                    return
                await self._listen(connection)
            except (*CONNECTION_ERRORS, asyncpg.PostgresError) as error:
                log.warning("earth.db_changes.disconnected", error=repr(error))
            finally:
                self.connected = False
                await _end(connection)

    async def _listen(self, connection: Connection) -> None:
        """Until the connection is lost, which raises: at once when we are told, else after the next self-test."""
        lost, echo = asyncio.Event(), asyncio.Event()
        connection.add_termination_listener(lambda _: lost.set())
        await connection.execute(_KEEPALIVES)
        own = f"planet_listener_{secrets.token_hex(8)}"
        await connection.add_listener(own, lambda *_: echo.set())
        for channel in self._channels:
            await connection.add_listener(channel, self._rung)
        self.connected = True
        self._on_connected()
        for channel in self._channels:
            self._on_ring(channel)
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._self_test_s):
                    await lost.wait()
            echo.clear()
            async with asyncio.timeout(self._echo_s):
                await connection.execute("select pg_notify($1, '')", own)
                await echo.wait()

    def _rung(self, connection: object, pid: int, channel: str, payload: object) -> None:
        self._on_ring(channel)
