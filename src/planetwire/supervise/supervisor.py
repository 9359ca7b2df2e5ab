"""`up`: PostgreSQL and one child a role, restarted when they fail, stopped in order, ended with this process."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from planetwire.errors import SetupError
from planetwire.log import get_logger
from planetwire.supervise.embedded_postgres import EmbeddedPostgres
from planetwire.supervise.parentage import ends_with_parent

log = get_logger()

GRACE_S = 12.0  # a child's time to end after SIGTERM
RESTART_MIN_S = 0.5
RESTART_MAX_S = 30.0
HEALTHY_S = 60.0  # a child that lived this long starts again without delay
TICK_S = 0.5
SEND_BUFFER_BYTES = 256 * 1024  # kernel buffer for one slow reader; inherited by accepted sockets


def listening_socket(host: str, port: int) -> socket.socket:
    """The web port, held by the supervisor so that a restarted web process keeps it. Raises SetupError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    try:
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        raise SetupError(
            f"cannot listen on {host}:{port}: {error.strerror}; set PLANETWIRE_PORT to a free port", code="port_in_use"
        ) from error
    sock.listen(2048)
    return sock


@dataclass(slots=True)
class Child:
    """One role, or the demo's feeds, as a process of its own."""

    name: str
    arguments: Sequence[str]
    environment: dict[str, str]
    fds: tuple[int, ...] = ()
    module: str = "planetwire"
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    started: float = field(default=0.0, init=False)
    delay_s: float = field(default=RESTART_MIN_S, init=False)
    due: float = field(default=0.0, init=False)

    def start(self) -> None:
        """Start it; the kernel ends it when this process ends."""
        self.process = subprocess.Popen(
            [sys.executable, "-m", self.module, *self.arguments],
            stdin=subprocess.DEVNULL,
            env=self.environment,
            pass_fds=self.fds,
            preexec_fn=ends_with_parent(signal.SIGTERM),
        )
        self.started = time.monotonic()
        log.info("supervise.child.started", child=self.name, pid=self.process.pid)

    def running(self) -> bool:
        """Whether it is running."""
        return self.process is not None and self.process.poll() is None

    def look_after(self) -> None:
        """Restart it if it ended, with a growing delay while it keeps failing."""
        if self.process is not None and self.process.poll() is not None:
            lived_s = time.monotonic() - self.started
            self.delay_s = RESTART_MIN_S if lived_s > HEALTHY_S else min(self.delay_s * 2, RESTART_MAX_S)
            self.due = time.monotonic() + self.delay_s
            log.error(
                "supervise.child.ended",
                child=self.name,
                status=self.process.returncode,
                lived_s=round(lived_s, 1),
                restart_in_s=self.delay_s,
            )
            self.process = None
        if self.process is None and time.monotonic() >= self.due:
            self.start()

    def stop(self, deadline: float) -> None:
        """SIGTERM was sent; wait for the end, then SIGKILL."""
        if self.process is None:
            return
        try:
            self.process.wait(max(deadline - time.monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            log.warning("supervise.child.killed", child=self.name)
            self.process.kill()
            self.process.wait()

    def send(self, number: int) -> None:
        """Send a signal if it is running."""
        if self.process is not None and self.process.poll() is None:
            with suppress(ProcessLookupError):
                self.process.send_signal(number)


class Supervisor:
    """Supervises the children until stopped. Must run in the main thread: the kernel's parent-death
    signal is tied to the thread that started a child.
    """

    def __init__(self, postgres: EmbeddedPostgres | None, children: Sequence[Child]) -> None:
        self._postgres = postgres
        self._children = list(children)
        self._signals = 0
        self._wake_read, self._wake_write = os.pipe()
        self._old_handlers: dict[int, object] = {}

    def watch_signals(self) -> None:
        """SIGINT and SIGTERM request a stop, a second one an immediate stop. Call before anything slow."""
        os.set_blocking(self._wake_write, False)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._note)
        signal.signal(signal.SIGCHLD, self._poke)

    def _note(self, number: int, frame: object) -> None:
        self._signals += 1
        self._poke(number, frame)

    def _poke(self, number: int, frame: object) -> None:
        with suppress(BlockingIOError, OSError):
            os.write(self._wake_write, b"!")

    @property
    def stopping(self) -> bool:
        """Whether a stop was requested."""
        return self._signals > 0

    def start(self, child: Child) -> None:
        """Add and start one more child."""
        self._children.append(child)
        child.start()

    def run(self) -> None:
        """Restart ended children until a stop is requested."""
        while not self.stopping:
            self.turn()

    def turn(self, wait_s: float = TICK_S) -> None:
        """Check all children once, then wait for a signal or `wait_s`."""
        if self._postgres is not None and self._postgres.poll() is not None and not self.stopping:
            log.error("supervise.postgres.ended", status=self._postgres.poll())
            self._restart_postgres()
        for child in self._children:
            child.look_after()
        self._wait(wait_s)

    def _wait(self, seconds: float = TICK_S) -> None:
        if select.select([self._wake_read], [], [], seconds)[0]:
            os.read(self._wake_read, 4096)

    def _restart_postgres(self) -> None:
        """Until it is up: after a kill its orphaned backends need a moment to release the shared memory."""
        assert self._postgres is not None
        self._postgres.stop()
        while not self.stopping:
            try:
                self._postgres.start()
            except SetupError as error:
                log.error("supervise.postgres.failed", error=error.message)
                self._wait()
            else:
                log.info("supervise.postgres.restarted", pid=self._postgres.pid)
                return

    def stop(self) -> None:
        """Children first, last started first; PostgreSQL last. A second signal kills."""
        for child in reversed(self._children):
            child.send(signal.SIGTERM)
        deadline = time.monotonic() + GRACE_S
        for child in reversed(self._children):
            while child.running() and time.monotonic() < deadline and self._signals < 2:
                time.sleep(0.02)
            child.stop(deadline if self._signals < 2 else 0.0)
        if self._postgres is not None:
            self._postgres.stop()
        for handle in (self._wake_read, self._wake_write):
            with suppress(OSError):
                os.close(handle)
