"""Each role as a separate process on the test's database, as on several hosts."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

START_S, WITHIN_S, STOP_S = 30.0, 60.0, 20.0

Start = Callable[..., Awaitable["Role"]]


class Role:
    """A running `planetwire <role>`; its log lines are read while it runs."""

    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        self.name = name
        self.process = process
        self.lines: list[dict[str, Any]] = []
        self.moved = asyncio.Condition()
        self.reading = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            async with self.moved:
                self.lines.append(json.loads(line) if line.startswith(b"{") else {"event": line.decode().rstrip()})
                self.moved.notify_all()

    async def said(self, event: str) -> dict[str, Any]:
        """The first log line of this name; fails after a time."""

        def found() -> dict[str, Any] | None:
            return next((line for line in self.lines if line["event"] == event), None)

        try:
            async with asyncio.timeout(START_S), self.moved:
                await self.moved.wait_for(lambda: found() is not None)
        except TimeoutError:
            pytest.fail(f"{self.name} never said {event}: {self.lines[-5:]}")
        return found() or {}

    async def stop(self) -> int:
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(STOP_S):
            status = await self.process.wait()
            await self.reading
        return status


@pytest_asyncio.fixture
async def start(tmp_path: Path, pg_dsn: str, feed_environment: dict[str, str]) -> AsyncIterator[Start]:
    """Starts roles on the test's database and one data dir; stops them afterwards."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PLANETWIRE_")}
    environment |= feed_environment | {
        "PLANETWIRE_DATABASE_URL": pg_dsn,
        "PLANETWIRE_DATA_DIR": str(tmp_path),
        "PLANETWIRE_HALVES": "earth",
        "PLANETWIRE_PORT": "0",
        "PLANETWIRE_LOG_FORMAT": "json",
    }
    started: list[Role] = []

    async def begin(*command: str, **own: str) -> Role:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "planetwire", *command, env=environment | own, stderr=asyncio.subprocess.PIPE
        )
        started.append(Role(command[0], process))
        return started[-1]

    yield begin
    for role in started:
        await role.stop()


async def eventually(look: Callable[[], Awaitable[Any]], what: str) -> Any:
    """The first truthy answer; polls, since the others are other processes."""
    try:
        async with asyncio.timeout(WITHIN_S):
            while not (answer := await look()):
                await asyncio.sleep(0.05)
    except TimeoutError:
        pytest.fail(f"never happened: {what}")
    return answer
