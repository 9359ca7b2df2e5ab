"""Our side of the delivery benchmarks: the web process's parts, on a port for browsers and one for publishing.

Lines on the second port stand for a source in this process: they are committed and fanned out like posted readings,
without the HTTP route and the normaliser.

Usage: _fanout_server.py PORT PUBLISH_PORT FOLDER STALL_S
"""

from __future__ import annotations

import asyncio
import resource
import socket
import sys
from datetime import datetime
from pathlib import Path
from typing import cast

import uvicorn
import uvloop

from planetwire import cities
from planetwire.collect.push.accept import Ingest
from planetwire.collect.push.ingest import normalise
from planetwire.datasets.registry import observed_sources
from planetwire.facts.sqlite.observations_sqlite import SqliteObservationStore
from planetwire.log import configure_logging
from planetwire.model import ObservationPatch
from planetwire.ports import Limit
from planetwire.runtime.clock import SystemClock
from planetwire.runtime.settle import settle
from planetwire.settings import StreamSettings
from planetwire.stream.hub import Hub
from planetwire.stream.log_sqlite import SqliteEventLog
from planetwire.web import app as web_app
from planetwire.web.access.auth import Guard
from planetwire.web.access.limits import ConnectionLimits
from planetwire.web.http.server import server_config
from planetwire.web.live import frames
from planetwire.web.live.sse import SseEndpoint
from planetwire.web.live.sse_protocol import make_protocol
from planetwire.web.stores.limits_memory import MemoryLimits
from planetwire.web.terminal import ingest

SOURCES = observed_sources()

INGEST_TOKEN = "bench-ingest"
DONE = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class SourcePort(asyncio.Protocol):
    """A source in this process: one reading per line, `city label time`. Lines received within one turn of the loop are
    committed together, as a feed commits a body, and acknowledged together once on disk.
    """

    def __init__(self, store: SqliteObservationStore, clock: SystemClock) -> None:
        self._store = store
        self._clock = clock
        self._like: dict[str, ObservationPatch] = {}
        self._left = b""
        self._tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport for acknowledgements."""
        self._answer = cast("asyncio.Transport", transport).write

    def data_received(self, data: bytes) -> None:
        """Process complete lines; keep the rest."""
        *lines, self._left = (self._left + data).split(b"\r\n")
        if lines:
            task = asyncio.get_running_loop().create_task(self._commit(lines))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _commit(self, lines: list[bytes]) -> None:
        now = self._clock.now()
        await self._store.append([self._patch(line.decode(), now) for line in lines])
        self._answer(DONE * len(lines))

    def _patch(self, line: str, now: datetime) -> ObservationPatch:
        """A copy of the city's first normalised patch with a new label, and so new content."""
        city, label, time = line.split(" ")
        like = self._like.get(city)
        if like is None:
            raw = {"city": city, "source": "bench", "changes": {"temp": 21.5, "station_label": label, "obs_time": time}}
            like = self._like[city] = normalise(SOURCES, raw, now)
        payload = {**like.payload, "station_label": label, "observed_at_utc": time}
        return ObservationPatch(
            like.city, like.source, datetime.fromisoformat(time), int(now.timestamp() * 1000), payload, like.points
        )


def city_key(name: str) -> str | None:
    """Resolved as in the product."""
    city = cities.resolve(name)
    return city.key if city else None


async def serve(port: int, publish_port: int, folder: Path, stall_s: float) -> None:
    """Runs until killed."""
    clock = SystemClock()
    store = SqliteObservationStore(folder / "observations.db", clock)
    await store.start()
    event_log = SqliteEventLog(folder / "observations.db")
    await event_log.start()
    settings = StreamSettings(max_connections=20_000, max_per_address=20_000, stall_s=stall_s)
    hub = Hub(event_log, encode=frames.sse_encoder(event_log.epoch), clock=clock, stall_s=stall_s)
    await hub.start()
    store.on_committed = hub.publish
    many = MemoryLimits(dict.fromkeys(Limit, 10**9))  # all readers and publishers share one address here
    guard = Guard("bench-admin", INGEST_TOKEN, b"k" * 32, limits=many)
    limits = ConnectionLimits(total=settings.max_connections, per_address=settings.max_per_address)
    endpoint = SseEndpoint(hub, resolve_city=city_key, guard=guard, limits=limits, clock=clock, settings=settings)
    pushed = ingest.IngestEndpoint(Ingest(store, clock, SOURCES).accept, guard)
    app = web_app.create([ingest.router(pushed)], "bench")
    config = server_config(app, make_protocol(endpoint, pushed))
    config.backlog = 4096
    listener = socket.create_server(("127.0.0.1", port), backlog=4096)
    await asyncio.get_running_loop().create_server(lambda: SourcePort(store, clock), "127.0.0.1", publish_port)
    settle()
    loops = [asyncio.ensure_future(each) for each in (hub.run(), endpoint.run())]
    await uvicorn.Server(config).serve(sockets=[listener])
    for loop in loops:
        loop.cancel()


def main() -> None:
    port, publish_port, folder, stall_s = sys.argv[1:]
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    configure_logging("console", "warning")
    uvloop.run(serve(int(port), int(publish_port), Path(folder), float(stall_s)))


if __name__ == "__main__":
    main()
