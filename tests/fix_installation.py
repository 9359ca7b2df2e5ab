"""A complete Planetwire as users start it: a real process tree on its own data dir."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

import seed_cluster

PROGRAM = (sys.executable, "-m", "planetwire")
START_TIMEOUT_S = 180.0
STOP_TIMEOUT_S = 90.0
# Settings without any fetching: only the test changes the installation's data.
NO_FEEDS = {f"PLANETWIRE_FEEDS__{source}__ENABLED": "false" for source in ("CELESTRAK_GP", "USGS_QUAKES", "AWC_METAR")}


def wait_for(condition: Callable[[], Any], *, within_s: float, what: str) -> Any:
    """The first truthy answer; fails with `what` after the time. Polls, since the other side is another process."""
    deadline = time.monotonic() + within_s
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > deadline:
            pytest.fail(f"not within {within_s:g} s: {what} (last answer: {answer!r})")
        time.sleep(0.02)


@dataclass
class Installation:
    """`planetwire up` or `demo` on its own data dir and a free port."""

    data_dir: Path
    command: tuple[str, ...] = ("up",)
    environment: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[str] | None = None
    login_url: str = ""
    program: tuple[str, ...] = PROGRAM
    from_nothing: bool = False  # a real first start; else with a prepared PostgreSQL folder

    def start(self) -> Installation:
        """Start and wait for the printed address."""
        if self._may_be_seeded():
            simulated = self.command[0] == "demo" or self.environment.get("PLANETWIRE_SIMULATED") == "true"
            seed_cluster.copy_to(self.data_dir, simulated=simulated)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PLANETWIRE_")}
        environment |= {"PLANETWIRE_DATA_DIR": str(self.data_dir), "PLANETWIRE_PORT": "0"} | self.environment
        with (self.data_dir.parent / f"{self.data_dir.name}.log").open("ab") as log_file:
            self.process = subprocess.Popen(
                [*self.program, *self.command],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=log_file,
                text=True,
            )
        assert self.process.stdout is not None
        self.login_url = self.process.stdout.readline().strip()
        assert self.login_url, f"did not start:\n{self.log()[-3000:]}"
        return self

    def _may_be_seeded(self) -> bool:
        own = self.program == PROGRAM and "PLANETWIRE_DATABASE_URL" not in self.environment
        earth = "terminal" not in self.command and self.environment.get("PLANETWIRE_HALVES") != "terminal"
        wanted = seed_cluster.is_prepared() and not self.from_nothing
        return wanted and own and earth and not self.data_dir.exists()

    def log(self) -> str:
        """Its stderr."""
        return (self.data_dir.parent / f"{self.data_dir.name}.log").read_text(errors="replace")

    @property
    def url(self) -> str:
        return self.login_url.partition("/#")[0]

    @property
    def dsn(self) -> str:
        return str(self.runtime()["database_url"])

    def runtime(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads((self.data_dir / "run" / "runtime.json").read_text())
        return loaded

    def token(self, name: str = "admin") -> str:
        return (self.data_dir / f"{name}.token").read_text().strip()

    def execute(self, statement: str) -> str:
        """Run SQL as any other program would; returns the command tag."""
        return str(self._sql("execute", statement))

    def value(self, query: str) -> Any:
        """The first value of the first row."""
        return self._sql("fetchval", query)

    def _sql(self, method: str, text: str) -> Any:
        async def run() -> Any:
            connection = await asyncpg.connect(self.dsn)
            try:
                return await getattr(connection, method)(text)
            finally:
                await connection.close()

        # In another thread: the browser's driver keeps an event loop in this one.
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(asyncio.run, run()).result(30)

    def try_value(self, query: str) -> Any:
        """None while the server does not answer."""
        try:
            return self.value(query)
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            return None

    def client(self) -> httpx.Client:
        """An HTTP client that may write."""
        return httpx.Client(
            base_url=self.url, headers={"Authorization": f"Bearer {self.token()}"}, timeout=60, trust_env=False
        )

    def submit(self, client: httpx.Client, task_type: str, source: str) -> int:
        """Returns the job's id."""
        answer = client.post("/api/v1/jobs", json={"task_type": task_type, "source": source})
        assert answer.status_code == 202, answer.text
        return int(answer.json()["task_id"])

    def job(self, client: httpx.Client, task_id: int) -> dict[str, Any]:
        answer: dict[str, Any] = client.get(f"/api/v1/jobs/{task_id}").json()
        return answer

    def wait_job(self, client: httpx.Client, task_id: int, *statuses: str, within_s: float = 60) -> dict[str, Any]:
        """The job once it is in one of the states (default: final)."""
        wanted = statuses or ("completed", "failed", "cancelled")

        def look() -> dict[str, Any] | None:
            job = self.job(client, task_id)
            return job if job["status"] in wanted else None

        found: dict[str, Any] = wait_for(look, within_s=within_s, what=f"job {task_id} in {wanted}")
        return found

    def children(self) -> dict[str, int]:
        """Pids by role: web, work, collect, postgres, feeds; any one of several of a role."""
        return {role: pid for pid, role in self.roles().items()}

    def roles(self) -> dict[int, str]:
        """Roles by pid."""
        assert self.process is not None
        found: dict[int, str] = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                stat = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                command = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if int(stat[1]) == self.process.pid and stat[0] != "Z":
                found[int(entry.name)] = _role(command)
        return found

    def kill(self, role: str) -> int:
        """SIGKILL one child; returns its pid."""
        pid = self.children()[role]
        os.kill(pid, signal.SIGKILL)
        return pid

    def stop(self) -> int:
        """SIGTERM; returns the exit status."""
        if self.process is None:
            return 0
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.process = None
        return status


def _role(command: list[bytes]) -> str:
    words = [word.decode(errors="replace") for word in command]
    if "planetwire.demo" in words:
        return "feeds"
    if "planetwire" in words:
        return words[words.index("planetwire") + 1]
    return Path(words[0]).name


@contextmanager
def an_installation(*command: str, from_nothing: bool = False, **environment: str) -> Iterator[Installation]:
    """An installation on its own data dir, for tests that share it."""
    folder = Path(tempfile.mkdtemp(prefix="pw-shared-"))
    folder.chmod(0o755)
    made = Installation(folder / "data", command, environment, from_nothing=from_nothing)
    try:
        yield made.start()
    finally:
        made.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """A fresh folder that an unprivileged PostgreSQL can reach too."""
    folder = Path(tempfile.mkdtemp(prefix="pw-e2e-"))
    folder.chmod(0o755)
    yield folder / "data"
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def installation(data_dir: Path) -> Iterator[Callable[..., Installation]]:
    """Starts installations on one data dir; stops them afterwards."""
    started: list[Installation] = []

    def start(*command: str, **environment: str) -> Installation:
        made = Installation(data_dir, command or ("up",), environment)
        started.append(made)
        return made.start()

    yield start
    for one in started:
        one.stop()


@pytest.fixture(scope="session")
def demo_installation() -> Iterator[Installation]:
    """One running demo, shared by tests that only read."""
    with an_installation("demo") as made:
        yield made
