"""A real PgBouncer in transaction mode in front of the test cluster. If missing: skipped locally, a failure in CI."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from signal import SIGTERM
from urllib.parse import urlsplit

import pytest

from missing import program
from planetwire.supervise.embedded_postgres import EmbeddedPostgres, _becomes
from planetwire.supervise.parentage import ends_with_parent

# Fewer server connections than any test has clients, so that a client's next transaction really uses another one.
# With round robin the server connection that has been idle longest comes first.
CONFIG = """[databases]
* = host={server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {folder}/users.txt
pool_mode = transaction
default_pool_size = {servers}
server_round_robin = 1
max_client_conn = 200
"""
SERVERS = 3
START_S = 60.0


@pytest.fixture(scope="session")
def pooler(pg_cluster: EmbeddedPostgres) -> Iterator[str]:
    """`host:port` of a pooler for every database of the cluster."""
    executable = program("pgbouncer")
    folder = Path(tempfile.mkdtemp(prefix="pw-pooler-"))
    folder.chmod(0o755)
    (folder / "users.txt").write_text('"planetwire" ""\n', encoding="ascii")
    port = _free_port()
    config = CONFIG.format(server=pg_cluster.socket_dir, port=port, folder=folder, servers=SERVERS)
    (folder / "pgbouncer.ini").write_text(config, encoding="ascii")
    become, tie = _becomes(pg_cluster._identity), ends_with_parent(SIGTERM)

    def before_exec() -> None:
        """PgBouncer refuses to run as root, and only the cluster's own user may use the cluster's socket."""
        become()
        tie()

    with (folder / "pgbouncer.log").open("wb") as output:
        process = subprocess.Popen(
            [executable, folder / "pgbouncer.ini"], stdout=output, stderr=output, cwd="/", preexec_fn=before_exec
        )
    try:
        _wait_listening(process, port, folder / "pgbouncer.log")
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def pooled_dsn(pooler: str, pg_dsn: str) -> str:
    """The address of `pg_dsn`'s database behind the pooler."""
    return f"postgresql://planetwire@{pooler}{urlsplit(pg_dsn).path}"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_listening(process: subprocess.Popen[bytes], port: int, said: Path) -> None:
    deadline = time.monotonic() + START_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            text = said.read_text(encoding="utf-8", errors="replace")[-500:]
            assert process.poll() is None and time.monotonic() < deadline, f"PgBouncer did not start: {text}"
            time.sleep(0.02)
