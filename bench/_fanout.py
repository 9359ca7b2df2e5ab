"""Shared by the delivery benchmarks: the load generator, our server and its neighbours, their CPU and memory.

Servers run on one core and the generator on another, if there are two. CPU time includes the kernel's work for a
loopback connection; it is the same for all. A neighbour's event has as many bytes as a small patch on our wire.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from planetwire.cities import CITIES
from planetwire.runtime.clock import SystemClock, utc_text

HERE = Path(__file__).resolve().parent
PEER_PYTHON = HERE.parent / ".venv-bench" / "bin" / "python"
SMALL = bool(os.environ.get("PLANETWIRE_BENCH_SMALL"))
START_S = 20.0
EVENT_BYTES = 930  # of a neighbour's event; ours differs by two or three, by the digits of its numbers
NCHAN_MODULE = Path("/usr/lib/nginx/modules/ngx_nchan_module.so")
NCHAN = """
load_module %(module)s;
daemon off; worker_processes 1; pid %(folder)s/pid; error_log %(folder)s/error.log warn; worker_rlimit_nofile %(files)d;
events { worker_connections %(files)d; }
http {
  access_log off; nchan_shared_memory_size 512M; keepalive_requests 100000000;
  client_body_temp_path %(folder)s/b; proxy_temp_path %(folder)s/p; fastcgi_temp_path %(folder)s/f;
  uwsgi_temp_path %(folder)s/u; scgi_temp_path %(folder)s/s;
  server {
    listen 127.0.0.1:%(port)d backlog=4096;
    location ~ ^/events/(.*)$ {
      nchan_subscriber eventsource; nchan_channel_id $1; nchan_subscriber_first_message newest;
      nchan_message_buffer_length 2000; nchan_message_timeout 6h; nchan_eventsource_ping_interval 30;
    }
    location ~ ^/publish/(.*)$ {
      nchan_publisher http; nchan_channel_id $1; nchan_message_buffer_length 2000; nchan_message_timeout 6h;
    }
  }
}
"""


class Absent(Exception):
    """A program that a figure needs is not installed."""


@dataclass(frozen=True, slots=True)
class Server:
    """A running server: its read and publish requests, and its processes."""

    name: str
    pids: tuple[int, ...]
    port: int
    publish_port: int
    get: str
    get_after: str  # with a cursor
    post: str
    body: str
    publishers: int = 50
    depth: int = 1  # events a publisher has in flight before it waits for an acknowledgement

    def cpu_s(self) -> float:
        """CPU time so far, to the nanosecond; of ended threads to the clock tick."""
        return sum(_threads_cpu_s(pid) for pid in self.pids)

    def memory_kb(self) -> float:
        """Proportional set size: shared pages by their share."""
        return sum(_pss_kb(pid) for pid in self.pids)


def _threads_cpu_s(pid: int) -> float:
    return sum(int((task / "schedstat").read_text().split()[0]) / 1e9 for task in Path(f"/proc/{pid}/task").iterdir())


def _pss_kb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("Pss:"))


def topics() -> list[str]:
    """Fifty names that are cities to us and path segments to the neighbours."""
    return [city.key.replace(" ", "_") for city in CITIES[:50]]


def raise_descriptors() -> None:
    """For ten thousand connections; children inherit the limit."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def pinned(core: int) -> Any:
    """For Popen: run on this core, if there are several."""
    cores = sorted(os.sched_getaffinity(0))
    return (lambda: os.sched_setaffinity(0, {cores[core % len(cores)]})) if len(cores) > 1 else None


# --- the generator -----------------------------------------------------------------------------------


def compiled(name: str, folder: Path) -> Path:
    """A C program of this folder. Raises Absent without a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise Absent("no C compiler (package gcc)")
    program = folder / name
    if not program.exists():
        subprocess.run([compiler, "-O2", "-o", program, HERE / f"{name}.c"], check=True)
    return program


class Generator:
    """A running `_fanload`: `do` sends a command and returns its answer."""

    def __init__(self, folder: Path, server: Server, names: list[str]) -> None:
        self._server = server
        self._process = subprocess.Popen(
            [compiled("_fanload", folder)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=pinned(1),
        )  # fmt: skip
        for name in names:
            self.tell(f"topic {name}")
        for word in ("get", "post", "body"):
            self.tell(f"{word} {getattr(server, word)}")
        self.do(f"ports {server.port} {server.publish_port} {min(server.publishers, len(names))} {server.depth}")

    def tell(self, command: str) -> None:
        """A command without an answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()

    def do(self, command: str) -> dict[str, float]:
        """The answer, with the server's CPU seconds meanwhile (`cpu_s`)."""
        assert self._process.stdout is not None
        before_s = self._server.cpu_s()
        self.tell(command)
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the generator ended at `{command}` of {self._server.name}")
        found: dict[str, float] = json.loads(answer)
        found["cpu_s"] = self._server.cpu_s() - before_s
        if found["failed"]:
            raise RuntimeError(f"{self._server.name} refused {found['failed']:.0f} events")
        return found

    def open(self, first: int, last: int, rcvbuf: int = 0) -> dict[str, float]:
        """Open readers. Raises if not all could be opened."""
        found = self.do(f"open {first} {last} {rcvbuf}")
        if found["refused"]:
            raise RuntimeError(f"{self._server.name} refused {found['refused']:.0f} connections")
        return found

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()


# --- servers -----------------------------------------------------------------------------------------


def _free_port() -> int:
    """Below the ephemeral range: one of ten thousand connections would take it before the server."""
    for port in random.sample(range(20_000, 32_000), 100):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise RuntimeError("no free port")


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_S
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        if time.monotonic() > deadline or process.poll() is not None:
            raise RuntimeError(f"{process.args!r} did not start")
        time.sleep(0.05)


def _children(pid: int) -> tuple[int, ...]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return (pid, *(int(child) for child in listed))


@contextlib.contextmanager
def _process(command: list[Any], ports: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    process = subprocess.Popen(command, preexec_fn=pinned(0), start_new_session=True)
    try:
        for port in ports:
            _wait(port, process)
        time.sleep(0.3)  # work after it listens must not count in the figures
        yield _children(process.pid)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


PATCH = '{"city":"{topic}","source":"bench","changes":{"temp":21.5,"station_label":"{mark}","obs_time":"{time}"}}'
LINE = "{topic} {mark} {time}\\r\\n"  # for SourcePort


@contextlib.contextmanager
def ours(*, route: bool = False, stall_s: float = 20.0) -> Iterator[Server]:
    """Our web process. `route`: each patch is posted to the HTTP route; else one connection carries them all."""
    folder = Path(tempfile.mkdtemp(prefix="pw-fanout-"))
    port, publish_port = _free_port(), _free_port()
    command = [sys.executable, HERE / "_fanout_server.py", str(port), str(publish_port), folder, str(stall_s)]
    get = "GET /api/events?cities={topic} HTTP/1.1"
    after = "GET /api/events?cities={topic}&replay_limit=2000&since_revision={cursor} HTTP/1.1"
    post = "POST /api/internal/collector-patch HTTP/1.1\\r\\nAuthorization: Bearer bench-ingest"
    try:
        with _process(command, (port, publish_port)) as pids:
            server = _server("planetwire", pids, port, port, get, post, body=PATCH, after=after)
            within = replace(server, publish_port=publish_port, publishers=1, depth=200, post="", body=LINE)
            yield server if route else within
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _server(
    name: str,
    pids: tuple[int, ...],
    port: int,
    publish_port: int,
    get: str,
    post: str,
    *,
    body: str | None = None,
    after: str = "",
) -> Server:
    length = "\\r\\nContent-Type: application/json\\r\\nContent-Length: {length}\\r\\n\\r\\n"
    if body is None:
        padding = EVENT_BYTES - len(f'{{"mark":"","time":"{utc_text(SystemClock().now())}","pad":""}}') - 33
        body = '{"mark":"{mark}","time":"{time}","pad":"' + "x" * padding + '"}'
    host = "\\r\\nHost: localhost"
    end = host + "\\r\\nAccept: text/event-stream\\r\\n\\r\\n"
    return Server(name, pids, port, publish_port, get + end, after + end, post + host + length, body)


@contextlib.contextmanager
def nchan() -> Iterator[Server]:
    """Nginx with nchan, one worker, messages in memory."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None or not NCHAN_MODULE.exists():
        raise Absent("no nchan (packages nginx, libnginx-mod-nchan)")
    folder = Path(tempfile.mkdtemp(prefix="pw-nchan-"))
    folder.chmod(0o777)
    port = _free_port()
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    text = NCHAN % {"module": NCHAN_MODULE, "folder": folder, "port": port, "files": min(files, 30_000)}
    (folder / "nchan.conf").write_text(text)
    try:
        with _process([program, "-p", folder, "-c", folder / "nchan.conf"], (port,)) as pids:
            get = "GET /events/{topic} HTTP/1.1"
            after = get + "\\r\\nLast-Event-ID: {cursor}"
            yield _server("nchan", pids, port, port, get, "POST /publish/{topic} HTTP/1.1", after=after)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def fastapi() -> Iterator[Server]:
    """FastAPI and sse-starlette under uvicorn; events are not stored."""
    if not PEER_PYTHON.exists():
        raise Absent("the neighbours are not installed (make bench-peers)")
    port = _free_port()
    command = [
        PEER_PYTHON, "-m", "uvicorn", "_fanout_fastapi:app", "--app-dir", HERE, "--port", str(port),
        "--loop", "uvloop", "--no-access-log", "--log-level", "warning", "--backlog", "4096",
    ]  # fmt: skip
    with _process(command, (port,)) as pids:
        get, post = "GET /events/{topic} HTTP/1.1", "POST /publish/{topic} HTTP/1.1"
        yield _server("FastAPI + sse-starlette", pids, port, port, get, post)


@contextlib.contextmanager
def bare(folder: Path) -> Iterator[Server]:
    """The lower bound: a C program that only sends."""
    program = compiled("_fanwriter", folder)
    port = _free_port()
    with _process([program, str(port)], (port,)) as pids:
        yield _server("C writer", pids, port, port, "GET /?t={number} HTTP/1.1", "POST /?t={number} HTTP/1.1")
