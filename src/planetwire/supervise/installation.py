"""`up` and `demo`: one lock, one port, PostgreSQL, the children; prints the address when the page answers."""

from __future__ import annotations

import asyncio
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from socket import socket
from ssl import SSLContext

from planetwire.database.postgres import connected
from planetwire.errors import SetupError
from planetwire.log import get_logger
from planetwire.migrating.migrate import migrate_postgres
from planetwire.settings import PREFIX, MigrationSettings, Settings
from planetwire.supervise.databases import follow_tables
from planetwire.supervise.datadir import DataDir
from planetwire.supervise.embedded_postgres import SUPERUSER, EmbeddedPostgres, dsn_of
from planetwire.supervise.own_secrets import secrets_of
from planetwire.supervise.supervisor import Child, Supervisor, listening_socket
from planetwire.tls import own_trust, scheme_of, server_context
from planetwire.wiring.observations import check_free, check_sharing

log = get_logger()

READY_TIMEOUT_S = 90.0
FEED_HOST = "127.0.0.1"
PROBE_TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True)
class Address:
    """The address on which the web process listens."""

    host: str
    port: int
    scheme: str = "http"

    @property
    def url(self) -> str:
        """For people and for our own feeds; a wildcard address becomes loopback."""
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(self.host, self.host)
        return f"{self.scheme}://{f'[{host}]' if ':' in host and not host.startswith('[') else host}:{self.port}"


def run_up(settings: Settings, *, announce: Callable[[str], None], feed_server: bool = False) -> int:
    """Run until told to stop; 0 then. Raises SetupError when the start fails, with everything ended again."""
    check_sharing(settings)
    server_context(settings)
    data = DataDir(settings.data_dir)
    data.prepare()
    with ExitStack() as stack:
        stack.enter_context(data.lock())
        data.check_kind(simulated=settings.simulated)
        secrets_of(settings)  # what is wrong with them stops the start here, not each child again and again
        sock = stack.enter_context(listening_socket(settings.host, settings.port))
        address = Address(settings.host, sock.getsockname()[1], scheme_of(settings))
        postgres = _start_postgres(settings)
        supervisor = Supervisor(postgres, [])
        supervisor.watch_signals()
        stack.callback(supervisor.stop)
        database_url = _prepare_database(settings, postgres)
        if settings.terminal:
            asyncio.run(check_free(settings))
        environment = _child_environment(settings, database_url)
        if feed_server:
            child, addresses = _feed_server(stack.enter_context(listening_socket(FEED_HOST, 0)))
            environment |= addresses
            supervisor.start(child)
        data.write_runtime(
            pid=os.getpid(),
            url=address.url,
            database_url=database_url,
            halves=settings.halves,
            tls_cert=str(settings.tls_cert.absolute()) if settings.tls_cert else None,
        )
        stack.callback((data.run / "runtime.json").unlink, missing_ok=True)
        code = data.new_login_code()
        for child in _children(settings, sock, environment):
            supervisor.start(child)
        _wait_ready(supervisor, address, own_trust(settings.tls_cert))
        if not supervisor.stopping:
            announce(f"{address.url}/#login={code}")
        supervisor.run()
    return 0


def _start_postgres(settings: Settings) -> EmbeddedPostgres | None:
    if not settings.earth or settings.database_url is not None:
        return None
    if settings.database_direct_url is not None:
        raise SetupError("PLANETWIRE_DATABASE_DIRECT_URL goes beside PLANETWIRE_DATABASE_URL, which is unset")
    postgres = EmbeddedPostgres(settings.data_dir, settings.pg_bin)
    postgres.start()
    log.info("supervise.postgres.started", pid=postgres.pid)
    return postgres


def _prepare_database(settings: Settings, postgres: EmbeddedPostgres | None) -> str | None:
    if not settings.earth:
        return None
    dsn = settings.database_url or (postgres.dsn if postgres else None)
    assert dsn is not None
    applied = asyncio.run(migrate(settings.database_direct_url or dsn, settings.migration))
    if applied:
        log.info("supervise.schema.migrated", applied=applied)
    if postgres is not None:
        asyncio.run(follow_tables(dsn_of(postgres.socket_dir, SUPERUSER)))
    return dsn


async def migrate(dsn: str, limits: MigrationSettings | None = None) -> list[str]:
    """Bring the schema up to date; the names applied now. Raises SetupError, which says what is in the way."""
    async with connected(dsn, application="migrate") as connection:
        return await migrate_postgres(connection, limits, watch=lambda: connected(dsn, application="migrate watch"))


def _child_environment(settings: Settings, database_url: str | None) -> dict[str, str]:
    environment = dict(os.environ)
    environment[f"{PREFIX}DATA_DIR"] = str(settings.data_dir)
    environment[f"{PREFIX}HALVES"] = settings.halves
    environment[f"{PREFIX}HOST"] = settings.host
    if settings.simulated:
        environment[f"{PREFIX}SIMULATED"] = "true"
    if database_url is not None:
        environment[f"{PREFIX}DATABASE_URL"] = database_url
    return environment


def _children(settings: Settings, sock: socket, environment: dict[str, str]) -> list[Child]:
    os.set_inheritable(sock.fileno(), True)
    arguments, fds = ["web", "--fd", str(sock.fileno())], (sock.fileno(),)
    names = ["web", *(f"web-{number}" for number in range(2, settings.web_workers + 1))]
    web = [Child(name, arguments, environment, fds) for name in names]
    if not settings.earth:
        return [*web, Child("collect", ["collect"], environment)]
    return [*web, Child("work", ["work", "--feeds"], environment)]


def _feed_server(sock: socket) -> tuple[Child, dict[str, str]]:
    """The demo's feeds on a socket of ours, so that they keep their address; and what the other children need of it."""
    from planetwire.demo.server import demo_environment  # only the demo needs it

    os.set_inheritable(sock.fileno(), True)
    url = Address(FEED_HOST, sock.getsockname()[1]).url
    arguments = ["--fd", str(sock.fileno())]
    return Child("feeds", arguments, dict(os.environ), (sock.fileno(),), "planetwire.demo"), demo_environment(url)


def _wait_ready(supervisor: Supervisor, address: Address, trust: SSLContext | None) -> None:
    deadline = time.monotonic() + READY_TIMEOUT_S
    while not supervisor.stopping:
        missing = _not_ready(address, trust)
        if missing is None:
            return
        if time.monotonic() > deadline:
            raise SetupError(f"the web process did not become ready within {READY_TIMEOUT_S:g} s: {missing}")
        supervisor.turn(0.1)


def _not_ready(address: Address, trust: SSLContext | None) -> str | None:
    """What /readyz says is missing, None when all is well."""
    own = urllib.request.HTTPSHandler(context=trust)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), own)  # never through the environment's proxy
    try:
        with opener.open(f"{address.url}/readyz", timeout=PROBE_TIMEOUT_S):
            return None
    except urllib.error.HTTPError as error:
        return str(json.loads(error.read())["checks"])
    except (urllib.error.URLError, OSError, TimeoutError) as error:
        return f"{address.url} does not answer ({error})"
