"""A real uvicorn in the test's own loop with both live endpoints over in-memory logs, and raw clients for it."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import orjson
import uvicorn
from fastapi import APIRouter, FastAPI

from fakes import MemoryEventLog
from planetwire.model import Job
from planetwire.ports import Clock, JobBoard
from planetwire.runtime.clock import SystemClock
from planetwire.settings import StreamSettings
from planetwire.stream.hub import Hub
from planetwire.web.access.auth import Guard
from planetwire.web.access.limits import ConnectionLimits
from planetwire.web.http import problems
from planetwire.web.live import sse_route, websocket
from planetwire.web.live.frames import sse_encoder, ws_encoder
from planetwire.web.live.sse import SseEndpoint
from planetwire.web.live.sse_protocol import make_protocol
from planetwire.web.live.task_board import TaskBoard
from planetwire.web.live.websocket import SocketEndpoint

CARRIERS = ("protocol", "route")
KNOWN = {name: name for name in ("shanghai", "taipei", "tokyo", "hong kong")} | {"sha": "shanghai"}
WAIT_S = 60.0

_clients: list[SseClient] = []  # closed with the server


def resolve_city(name: str) -> str | None:
    folded = name.lower().replace("_", " ").replace("-", " ")
    return KNOWN.get(folded) or (folded if re.fullmatch(r"c\d+", folded) else None)


class MemoryBoard:
    """The read side of a ledger, as far as the task board needs it."""

    def __init__(self) -> None:
        self.jobs: dict[int, Job] = {}
        self.looks = 0
        self.failing = False

    async def active(self) -> list[Job]:
        self.looks += 1
        if self.failing:
            raise OSError("database away")
        return list(self.jobs.values())


class Live:
    """The running server, for a test."""

    def __init__(self, clock: Clock, settings: StreamSettings, guard: Guard) -> None:
        self.log = MemoryEventLog()
        self.earth_log = MemoryEventLog("fedcba543210")
        self.limits = ConnectionLimits(total=settings.max_connections, per_address=settings.max_per_address)
        stall_s = settings.stall_s
        self.hub = Hub(self.log, encode=sse_encoder(self.log.epoch), clock=clock, stall_s=stall_s)
        self.earth = Hub(
            self.earth_log,
            encode=ws_encoder(self.earth_log.epoch),
            clock=clock,
            stall_s=stall_s,
            topic_of=lambda event: "earth_updates",
        )
        self.board = MemoryBoard()
        self.tasks = TaskBoard(cast("JobBoard", self.board), clock)
        common: dict[str, Any] = {"guard": guard, "limits": self.limits, "clock": clock, "settings": settings}
        self.sse = SseEndpoint(self.hub, resolve_city=resolve_city, **common)
        self.ws = SocketEndpoint(self.earth, self.tasks, **common)
        self.port = 0
        self.connections: set[Any] = set()  # of any kind, as counted by the server
        self.stop: Callable[[], Awaitable[None]]

    def publish(self, *cities: str, **payload: Any) -> None:
        """Commit one patch per city and publish them together."""
        self.hub.publish([self.log.append(f"city:{city}", city=city, **payload) for city in cities])

    def publish_earth(self, *layers: str, **payload: Any) -> None:
        self.earth.publish([self.earth_log.append("earth_updates", layers=[layer], **payload) for layer in layers])


def the_guard(**options: Any) -> Guard:
    return Guard(admin_token="admin-token", ingest_token="ingest-token", session_key=b"k" * 32, **options)


@asynccontextmanager
async def live_server(
    carrier: str = "protocol",
    *,
    clock: Clock | None = None,
    guard: Guard | None = None,
    protocol: dict[str, Any] | None = None,
    routers: Sequence[APIRouter] = (),
    **settings: Any,
) -> AsyncIterator[Live]:
    """`carrier` selects what answers `/api/events`; `settings` are those of StreamSettings; `routers` come last."""
    clock = clock or SystemClock()
    live = Live(clock, StreamSettings(**settings), guard or the_guard())
    app = FastAPI()
    problems.install(app)
    app.include_router(sse_route.router(live.sse))
    app.include_router(websocket.router(live.ws))

    @app.get("/other")
    async def other() -> dict[str, str]:
        return {"answered": "by FastAPI"}

    for router in routers:
        app.include_router(router)
    http = make_protocol(live.sse, **(protocol or {})) if carrier == "protocol" else "httptools"
    config = uvicorn.Config(
        app, http=http, ws="websockets-sansio", lifespan="off", log_config=None, log_level="critical",
        access_log=False, ws_per_message_deflate=False, timeout_graceful_shutdown=5, proxy_headers=False,
    )  # fmt: skip
    server = uvicorn.Server(config)
    config.load()
    server.lifespan = config.lifespan_class(config)
    # With an explicit protocol number: otherwise the standard loop leaves Nagle on, and each answer waits 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    live.port = listener.getsockname()[1]
    await live.hub.start()
    await server.startup(sockets=[listener])
    live.connections = server.server_state.connections
    loops = [asyncio.ensure_future(each.run()) for each in (live.hub, live.earth, live.sse, live.ws, live.tasks)]
    stopped = False

    async def stop() -> None:
        nonlocal stopped
        if not stopped:
            stopped = True
            live.sse.drain()
            live.ws.drain()
            await server.shutdown(sockets=[listener])

    live.stop = stop
    try:
        yield live
    finally:
        await stop()
        await SseClient.close_all()
        for loop in loops:
            loop.cancel()
        await asyncio.gather(*loops, return_exceptions=True)
        await live.hub.aclose()
        await live.earth.aclose()


async def eventually(condition: Callable[[], bool], what: str) -> None:
    """Wait for a state of the server that has no event."""
    async with asyncio.timeout(WAIT_S):
        while not condition():
            await asyncio.sleep(0.005)
    assert condition(), what


class SseClient:
    """A raw HTTP client: it returns exactly what was on the wire."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.loop = asyncio.get_running_loop()
        self.status = 0
        self.headers: dict[str, str] = {}
        self.retries: list[int] = []
        self.ids: list[str | None] = []  # of the frames read so far
        self._left = b""

    @classmethod
    async def connect(
        cls, port: int, target: str, *, method: str = "GET", headers: dict[str, str] | None = None, rcvbuf: int = 0
    ) -> SseClient:
        sock = socket.socket()
        sock.setblocking(False)
        if rcvbuf:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        try:
            await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
            reader, writer = await asyncio.open_connection(sock=sock, limit=rcvbuf or 1 << 16)
        except BaseException:
            sock.close()
            raise
        client = cls(reader, writer)
        _clients.append(client)
        lines = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
        writer.write(f"{method} {target} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n{lines}\r\n".encode())
        async with asyncio.timeout(WAIT_S):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *rest = head.strip().split("\r\n")
        client.status = int(first.split()[1])
        client.headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in rest)}
        return client

    async def body(self) -> Any:
        """The complete JSON body of an answer that is not a stream."""
        async with asyncio.timeout(WAIT_S):
            return orjson.loads(await self.reader.readexactly(int(self.headers["content-length"])))

    async def chunk(self) -> bytes:
        """Some bytes of the body; empty at its end."""
        if self.headers.get("transfer-encoding") != "chunked":
            return await self.reader.read(1 << 16)
        size = int((await self.reader.readuntil(b"\r\n")).strip() or b"0", 16)
        return (await self.reader.readexactly(size + 2))[:-2]

    async def frame(self) -> dict[str, Any] | None:
        """The next frame, None at the end of the stream; `retry:` lines are collected separately."""
        async with asyncio.timeout(WAIT_S):
            while True:
                block, separator, left = self._left.partition(b"\n\n")
                if separator:
                    self._left = left
                    if (found := self._read_block(block)) is not None:
                        return found
                else:
                    more = await self.chunk()
                    if not more:
                        return None
                    self._left += more

    def _read_block(self, block: bytes) -> dict[str, Any] | None:
        fields = dict(line.partition(b": ")[::2] for line in block.split(b"\n"))
        if b"retry" in fields:
            self.retries.append(int(fields[b"retry"]))
        if b"data" not in fields:
            return None
        assert fields.keys() <= {b"id", b"data"}
        self.ids.append(fields[b"id"].decode() if b"id" in fields else None)
        return cast("dict[str, Any]", orjson.loads(fields[b"data"]))

    async def frames(self, count: int) -> list[dict[str, Any]]:
        found = [await self.frame() for _ in range(count)]
        assert None not in found
        return cast("list[dict[str, Any]]", found)

    async def until(self, kind: str) -> dict[str, Any]:
        """Skip to the next frame of the type."""
        while True:
            frame = await self.frame()
            assert frame is not None, f"the stream ended before {kind}"
            if frame["type"] == kind:
                return frame

    @staticmethod
    async def close_all() -> None:
        """Close all open clients, including ones abandoned before their answer. Those of an ended loop cannot be closed
        any more.
        """
        loop = asyncio.get_running_loop()
        mine = [client for client in _clients if client.loop is loop]
        _clients[:] = [client for client in _clients if client.loop is not loop]
        for client in mine:
            await client.close()

    async def close(self) -> None:
        self.writer.transport.abort()
        with suppress(OSError):
            await self.writer.wait_closed()
