"""The load of many browsers without rendering: stream readers, map clients that reload snapshots, and a pusher.

All in one loop, outside of the measured system. Every age is by this machine's clock: of a reading that we pushed,
from before its request; of a feed's reading, from its acceptance; of a layer's event, from the statement that changed
the rows, including its transaction.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import httpx
import orjson
from websockets.asyncio.client import connect

from planetwire.cities import CITIES
from planetwire.model import Json
from planetwire.runtime.clock import utc_text

RUNWAYS = ("17L/35R", "17R/35L", "16L/34R", "16R/34L")
PUSHER = "amsc_awos"
PER_READER = 9  # cities, as on a page of nine charts
PUSHED = 30  # cities that send a reading each minute
LARGEST = "satellites"
CODINGS = "gzip, deflate, br, zstd"
WITHIN_S = 60.0


def reading(city: str, at: str, number: int) -> Json:
    """One minute of an airport with runway sensors."""
    temp = 18 + number % 40 / 10
    points = [
        {"runway": name, "tdz_temp": temp + each, "mid_temp": temp + each + 0.2, "end_temp": temp + each + 0.1}
        for each, name in enumerate(RUNWAYS)
    ]
    changes = {"temp": temp, "series_key": "runway", "obs_time": at, "station_label": "", "runway_points": points}
    return {"city": city, "source": PUSHER, "changes": changes}


class Ages:
    """Ages in seconds on arrival; recorded while `on`."""

    def __init__(self) -> None:
        self.on = False
        self.samples: list[float] = []

    def add(self, age_s: float) -> None:
        if self.on:
            self.samples.append(max(0.0, age_s))

    def quantile_ms(self, share: float) -> float:
        """The quantile; infinite without samples."""
        ordered = sorted(self.samples)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000 if ordered else float("inf")

    def __str__(self) -> str:
        shares = ", ".join(f"{name} {self.quantile_ms(share):.0f}" for name, share in (("p50", 0.5), ("max", 1.0)))
        return f"{shares} ms, n={len(self.samples):,}"


class Crowd:
    """All clients. `wrong` counts errors: gaps, resyncs, cut connections, answers other than 200."""

    def __init__(self, url: str, ingest_token: str) -> None:
        self.url = url
        self.netloc = urlsplit(url).netloc
        self.host, self.port = str(urlsplit(url).hostname), int(urlsplit(url).port or 80)
        self.readings, self.changes, self.reloads = Ages(), Ages(), Ages()
        self.wrong: Counter[str] = Counter()
        self.done: Counter[str] = Counter()
        self.layers: list[str] = []
        self._sent: dict[tuple[str, str], float] = {}  # time of our push, by city and time of the reading
        self._token = ingest_token
        self._tasks: list[asyncio.Task[None]] = []
        self._readers: list[Reader] = []

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a task until `aclose`; one that ends by itself counts as an error."""
        task = asyncio.create_task(work)
        task.add_done_callback(self._ended)
        self._tasks.append(task)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            self.wrong[f"ended: {task.exception()!r}"[:120]] += 1

    def measure(self, on: bool) -> None:
        """Start or stop recording."""
        for ages in (self.readings, self.changes, self.reloads):
            ages.on = on

    async def read(self, readers: int) -> None:
        """Open the streams, a few at a time."""
        names = [city.key.replace(" ", "_") for city in CITIES]
        for number in range(readers):
            chosen = [names[(number * PER_READER + each) % len(names)] for each in range(PER_READER)]
            request = f"GET /api/events?cities={','.join(chosen)} HTTP/1.1\r\nHost: {self.netloc}\r\n\r\n"
            reader = Reader(self, request.encode())
            self._readers.append(reader)
            await asyncio.get_running_loop().create_connection(lambda made=reader: made, self.host, self.port)
            if number % 20 == 19:
                await asyncio.sleep(0.02)
        async with asyncio.timeout(WITHIN_S):
            for reader in self._readers:
                await reader.connected.wait()

    async def map(self, clients: int) -> None:
        """Open the sockets, each with a connection for its snapshots."""
        async with httpx.AsyncClient(base_url=self.url, trust_env=False) as client:
            layers = (await client.get("/api/v1/layers")).json()["items"]
        self.layers = [layer["id"] for layer in layers if layer["kind"] != "meta"]
        for _ in range(clients):
            self.start(self._map_client())

    async def _map_client(self) -> None:
        due: asyncio.Queue[str] = asyncio.Queue()  # bounded by the number of layers: a waiting one is not queued again
        waiting, have = set(self.layers), dict[str, int]()
        for layer in self.layers:
            due.put_nowait(layer)
        reloading = asyncio.create_task(self._reload(due, waiting))
        try:
            async with connect(self.url.replace("http", "ws", 1) + "/ws", proxy=None) as socket:
                await socket.send(json.dumps({"subscribe": ["earth_updates", "datasource_tasks"]}))
                async for text in socket:
                    self._event(orjson.loads(text), have, due, waiting)
        finally:
            reloading.cancel()

    def _event(self, frame: Json, have: dict[str, int], due: asyncio.Queue[str], waiting: set[str]) -> None:
        """`have`: the newest revision of each layer."""
        if frame.get("type") == "resync_required":
            self.wrong["map clients told to resync"] += 1
        if frame.get("channel") != "earth_updates" or "data" not in frame:
            return
        for layer in frame["data"]["layers"]:
            if frame["prev_revision"] > have.get(layer, frame["prev_revision"]):
                self.wrong["gaps of map clients"] += 1
            have[layer] = frame["revision"]
        self.changes.add(time.time() - datetime.fromisoformat(frame["data"]["occurred_at"]).timestamp())
        for layer in frame["data"]["layers"]:
            if layer in self.layers and layer not in waiting:
                waiting.add(layer)
                due.put_nowait(layer)

    async def _reload(self, due: asyncio.Queue[str], waiting: set[str]) -> None:
        """Fetch snapshots one after the other over a keep-alive connection; read completely, not decompressed."""
        reader, writer = await asyncio.open_connection(self.host, self.port, limit=1 << 20)
        try:
            while True:
                layer = await due.get()
                waiting.discard(layer)
                began = time.perf_counter()
                try:
                    async with asyncio.timeout(WITHIN_S):
                        size = await self._snapshot(reader, writer, layer)
                except (OSError, EOFError, TimeoutError, ValueError) as error:
                    self.wrong[f"snapshot: {error!r}"[:120]] += 1
                    writer.close()
                    reader, writer = await asyncio.open_connection(self.host, self.port, limit=1 << 20)
                    continue
                self.done["snapshots"] += 1
                self.done["bytes of snapshots"] += size
                self.reloads.add(time.perf_counter() - began)
        finally:
            writer.close()

    async def _snapshot(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, layer: str) -> int:
        path = f"/api/v1/visualization/{layer}"
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {self.netloc}\r\nAccept-Encoding: {CODINGS}\r\n\r\n".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        if not head.startswith(b"http/1.1 200"):
            raise ValueError(head[:60].decode(errors="replace"))
        size = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
        left = size
        while left:
            part = await reader.read(min(left, 1 << 18))
            if not part:
                raise EOFError(layer)
            left -= len(part)
        return size

    async def push(self) -> None:
        """A reading of each of thirty cities every minute, evenly spaced, each in its own request."""
        headers = {"Authorization": f"Bearer {self._token}"}
        cities = [city.key for city in CITIES[:PUSHED]]
        began = time.monotonic()
        async with httpx.AsyncClient(base_url=self.url, headers=headers, trust_env=False, timeout=30) as client:
            number = 0
            while True:
                await asyncio.sleep(max(0.0, began + number * 60 / PUSHED - time.monotonic()))
                city, at = cities[number % PUSHED], utc_text(datetime.now(UTC).replace(microsecond=0))
                self._sent[city, at] = time.time()
                answer = await client.post("/api/internal/collector-patch", json=reading(city, at, number))
                if answer.status_code != 200:
                    self.wrong[f"push: {answer.status_code} {answer.text[:60]}"] += 1
                self.done["readings pushed"] += 1
                number += 1

    async def refresh(self, token: str) -> None:
        """Refresh the largest layer each minute, so that every map client reloads it."""
        headers = {"Authorization": f"Bearer {token}"}
        job = {"task_type": "earth_refresh", "payload": {"layer": LARGEST}}
        async with httpx.AsyncClient(base_url=self.url, headers=headers, trust_env=False, timeout=30) as client:
            while True:
                answer = await client.post("/api/v1/jobs", json=job)
                if answer.status_code != 202:
                    self.wrong[f"refresh: {answer.status_code} {answer.text[:60]}"] += 1
                self.done["refreshes"] += 1
                await asyncio.sleep(60)

    def sent_at(self, frame: Json) -> float:
        """The time of our push of the reading, or of the acceptance of a feed's."""
        accepted = float(frame["ts"] / 1000)
        return self._sent.get((frame["city"], frame["obs_time"]), accepted) if frame["source"] == PUSHER else accepted

    async def aclose(self) -> None:
        """Disconnect all clients."""
        for reader in self._readers:
            reader.leave()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class Reader(asyncio.Protocol):
    """A stream of Server-Sent Events that checks each city's chain of revisions."""

    def __init__(self, crowd: Crowd, request: bytes) -> None:
        self.connected = asyncio.Event()
        self._crowd = crowd
        self._request = request
        self._rest = b""
        self._have: dict[str, int] = {}
        self._leaving = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        at = time.time()
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                self._take(orjson.loads(line[5:]), at)

    def _take(self, frame: Json, at: float) -> None:
        crowd, kind = self._crowd, frame["type"]
        if kind == "connected":
            self._have = dict(frame["cities"])
            self.connected.set()
        elif kind == "resync_required":
            crowd.wrong["readers told to resync"] += 1
        elif kind == "city_observation_patch.v1":
            city, revision = frame["city"], frame["revision"]
            if frame["prev_revision"] > self._have.get(city, 0):
                crowd.wrong["gaps"] += 1
            if revision <= self._have.get(city, 0):
                crowd.wrong["doubled"] += 1
            self._have[city] = revision
            crowd.readings.add(at - crowd.sent_at(frame))
            crowd.done["readings delivered"] += 1

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._leaving:
            self._crowd.wrong["readers cut off"] += 1

    def leave(self) -> None:
        self._leaving = True
        self._transport.close()
