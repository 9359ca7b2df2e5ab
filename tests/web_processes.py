"""Web processes as an operator starts them, several on one observation store, and clients of their streams."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from live_streams import SseClient

START_S, STOP_S = 60.0, 20.0
CITIES = ("shanghai", "taipei", "seoul")
PATCH = "city_observation_patch.v1"


class WebProcess:
    """A running `planetwire web`; its log lines are read while it runs."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[dict[str, Any]] = []
        self.url = ""
        self._moved = asyncio.Condition()
        self._reading = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            async with self._moved:
                self.lines.append(json.loads(line) if line.startswith(b"{") else {"event": line.decode().rstrip()})
                self._moved.notify_all()

    async def said(self, event: str, times: int = 1) -> dict[str, Any]:
        """The `times`-th log line of this name; fails after a time."""

        def found() -> list[dict[str, Any]]:
            return [line for line in self.lines if line["event"] == event]

        try:
            async with asyncio.timeout(START_S), self._moved:
                await self._moved.wait_for(lambda: len(found()) >= times)
        except TimeoutError:
            pytest.fail(f"never said {event}: {self.lines[-5:]}")
        return found()[times - 1]

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 0

    async def ended(self) -> tuple[int, str]:
        """Exit status and the last line that is not a log line."""
        async with asyncio.timeout(START_S):
            status = await self.process.wait()
            await self._reading
        return status, str(self.lines[-1]["event"])

    async def stop(self) -> None:
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(STOP_S):
            await self.process.wait()
            await self._reading


class WebProcesses:
    """Starts web processes of the terminal half on one data dir."""

    def __init__(self, data_dir: Path, descriptors: int | None = None) -> None:
        self.data_dir = data_dir
        self.limit = () if descriptors is None else ("sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "sh")
        self.started: list[WebProcess] = []

    async def begin(self, **settings: str) -> WebProcess:
        """Start one more, perhaps not serving yet; settings without their prefix."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PLANETWIRE_")}
        own = {"data_dir": str(self.data_dir), "halves": "terminal", "port": "0", "log_format": "json", **settings}
        environment |= {f"PLANETWIRE_{name.upper()}": value for name, value in own.items()}
        process = await asyncio.create_subprocess_exec(
            *self.limit, sys.executable, "-m", "planetwire", "web", env=environment, stderr=asyncio.subprocess.PIPE
        )
        self.started.append(WebProcess(process))
        return self.started[-1]

    async def serve(self, *each: dict[str, str], **settings: str) -> list[WebProcess]:
        """Start one for each of the settings, all serving and connected to their bus."""
        made = [await self.begin(**settings, **own) for own in each]
        for process in made:
            process.url = (await process.said("web.server.started"))["url"]
            if settings.get("bus") is not None:
                await process.said("stream.bus.connected")
        return made

    async def push(self, process: WebProcess, city: str, number: int) -> httpx.Response:
        """One reading, unlike any other."""
        token = (self.data_dir / "ingest.token").read_text().strip()
        body = {"city": city, "changes": {"temp": number % 40, "source": f"s{number}"}}
        async with httpx.AsyncClient(base_url=process.url, trust_env=False, timeout=60) as http:
            return await http.post(
                "/api/internal/collector-patch", json=body, headers={"Authorization": f"Bearer {token}"}
            )

    async def revision(self, process: WebProcess, city: str, number: int) -> int:
        answer = await self.push(process, city, number)
        assert answer.status_code == 200, answer.text
        return int(answer.json()["revision"])


@asynccontextmanager
async def web_processes(data_dir: Path, descriptors: int | None = None) -> AsyncIterator[WebProcesses]:
    """`descriptors`: the limit of open files of each."""
    made = WebProcesses(data_dir, descriptors)
    try:
        yield made
    finally:
        await SseClient.close_all()
        for process in made.started:
            await process.stop()


class Watcher:
    """A client that follows some cities and verifies everything: an event out of order or repeated fails."""

    def __init__(self, client: SseClient, connected: dict[str, Any]) -> None:
        self.client = client
        self.known: dict[str, int] = dict(connected["cities"])
        self.revisions: list[int] = []

    @classmethod
    async def on(cls, process: WebProcess, cities: Sequence[str] = CITIES) -> Watcher:
        client = await SseClient.connect(process.port, f"/api/events?cities={','.join(cities)}")
        return cls(client, await client.until("connected"))

    async def move(self, process: WebProcess) -> None:
        """Disconnect, and continue at another process from its cursor."""
        await self.client.close()
        cursor = self.revisions[-1] if self.revisions else 0
        target = f"/api/events?cities={','.join(CITIES)}&since_revision={cursor}"
        self.client = await SseClient.connect(process.port, target)

    async def until(self, revision: int) -> list[int]:
        """All revisions so far, once this one has arrived."""
        while not self.revisions or self.revisions[-1] < revision:
            frame = await self.client.until(PATCH)
            assert frame["prev_revision"] == self.known[frame["city"]], "a gap, or something twice"
            self.known[frame["city"]] = frame["revision"]
            assert not self.revisions or frame["revision"] > self.revisions[-1], "out of order"
            self.revisions.append(frame["revision"])
        return self.revisions
