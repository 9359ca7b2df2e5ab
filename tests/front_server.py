"""A server configured as in the product, over in-memory logs, and a client that sends arbitrary bytes."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import uvicorn
from fastapi import APIRouter, Request
from pydantic import BaseModel

from live_streams import Live, SseClient, the_guard
from planetwire.model import Json
from planetwire.runtime.clock import SystemClock
from planetwire.settings import RequestSettings, StreamSettings
from planetwire.web import app as web_app
from planetwire.web import spa
from planetwire.web.http.front import Front
from planetwire.web.http.hosts import AllowedHosts
from planetwire.web.http.server import plain_config, server_config
from planetwire.web.live import sse_route, websocket
from planetwire.web.live.sse_protocol import make_protocol
from planetwire.web.plain import PlainBounds
from planetwire.web.terminal import ingest

WAIT_S = 60.0


@dataclass
class Answer:
    """One response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)

    def is_problem(self, status: int, code: str) -> None:
        assert (self.status, self.json["code"]) == (status, code), self
        assert self.headers["content-type"] == "application/problem+json"
        assert self.headers["connection"] == "close"


@dataclass
class Served:
    """The running server, and what the application received."""

    port: int
    front: Front
    live: Live
    server: uvicorn.Server
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    entered: asyncio.Event = field(default_factory=asyncio.Event)
    taken: list[Any] = field(default_factory=list)
    context: ssl.SSLContext | None = None
    raws: list[Raw] = field(default_factory=list)  # closed with the server

    async def open(self) -> Raw:
        options: dict[str, Any] = {} if self.context is None else {"ssl": self.context, "server_hostname": "localhost"}
        self.raws.append(Raw(*await asyncio.open_connection("127.0.0.1", self.port, **options)))
        return self.raws[-1]

    async def ask(self, data: bytes) -> Answer:
        """The response to these bytes."""
        raw = await self.open()
        try:
            await raw.send(data)
            return await raw.answer()
        finally:
            raw.close()


class Raw:
    """A connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, data: bytes) -> None:
        """Send as much as the server accepts."""
        with suppress(ConnectionError):
            self.writer.write(data)
            await self.writer.drain()

    async def flood(self, piece: bytes, pieces: int) -> int:
        """Returns the number of pieces accepted before the server refused more."""
        for number in range(pieces):
            if self.reader._buffer or self.reader.at_eof() or self.writer.is_closing():  # type: ignore[attr-defined]
                return number
            await self.send(piece)
            await asyncio.sleep(0)  # so that a response is noticed
        return pieces

    async def answer(self) -> Answer:
        async with asyncio.timeout(WAIT_S):
            first, *lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
            body = await self.reader.readexactly(int(headers.get("content-length", 0)))
        return Answer(int(first.split()[1]), headers, body)

    async def ended(self) -> bytes:
        """Read until the server closes."""
        async with asyncio.timeout(WAIT_S):
            with suppress(ConnectionError):
                return await self.reader.read()
        return b""

    def close(self) -> None:
        self.writer.transport.abort()


class Noted(BaseModel):
    """The body of the test's own route."""

    text: str = ""


def routes(served: Served) -> APIRouter:
    made = APIRouter()

    @made.post("/api/note")
    async def note(body: Noted) -> Json:
        served.taken.append(len(body.text))
        return {"taken": len(body.text)}

    @made.post("/api/bodiless")
    async def bodiless() -> Json:
        served.taken.append("bodiless")
        return {}

    @made.get("/api/slow")
    async def slow(request: Request, name: str = "") -> Json:
        served.entered.set()
        await served.go_on.wait()
        return {"name": name}

    @made.get("/healthz")
    async def healthz() -> Json:
        return {"status": "ok"}

    return made


async def nothing_stored(raws: Any) -> list[Json]:
    return [{"revision": 1, "duplicate": False} for _ in raws]


@asynccontextmanager
async def front_server(
    *,
    hosts: AllowedHosts | None = None,
    certificate: ssl.SSLContext | None = None,
    trust: ssl.SSLContext | None = None,
    descriptors: int | None = None,
    static: Path | None = None,
    plain: bool = False,
    **settings: float,
) -> AsyncIterator[Served]:
    """`settings` are those of RequestSettings; `plain`: without our protocol class."""
    front = Front(RequestSettings.model_validate(settings), hosts, descriptors=descriptors)
    live = Live(SystemClock(), StreamSettings(), the_guard())
    endpoint = ingest.IngestEndpoint(nothing_stored, the_guard())
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    served = Served(listener.getsockname()[1], front, live, None, context=trust)  # type: ignore[arg-type]
    routers = [routes(served), ingest.router(endpoint), websocket.router(live.ws), sse_route.router(live.sse)]
    app = web_app.create(routers, "test")
    if static is not None:
        app.router.routes.pop()
        app.include_router(spa.router(static))
    if plain:
        app.add_middleware(PlainBounds, front=front)
        config = plain_config(app, front.settings, certificate)
    else:
        config = server_config(app, make_protocol(live.sse, endpoint, front), certificate)
    served.server = server = uvicorn.Server(config)
    await live.hub.start()
    await live.earth.start()
    loops = [asyncio.ensure_future(each.run()) for each in (live.hub, live.earth, live.sse, live.ws)]
    serving = asyncio.ensure_future(server._serve([listener]))
    async with asyncio.timeout(WAIT_S):
        while not (server.started and server.server_state.default_headers):
            await asyncio.sleep(0.005)
    try:
        yield served
    finally:
        live.sse.drain()
        live.ws.drain()
        server.should_exit = True
        served.go_on.set()
        for raw in served.raws:
            raw.close()
        await serving
        await SseClient.close_all()
        for loop in loops:
            loop.cancel()
        await asyncio.gather(*loops, return_exceptions=True)
        await live.hub.aclose()
        await live.earth.aclose()


def get(path: str, *lines: str, host: str = "localhost", method: str = "GET") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", f"Host: {host}", *lines, "", ""]).encode("latin-1")


def post(path: str, body: bytes, *lines: str) -> bytes:
    json = "Content-Type: application/json"
    return get(path, json, f"Content-Length: {len(body)}", *lines, method="POST") + body


def upgrade(*lines: str, path: str = "/ws", host: str = "localhost") -> bytes:
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
    wanted = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", key)
    return get(path, *wanted, *lines, host=host)
