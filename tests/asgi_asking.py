"""Requests as a server passes them to the application, byte for byte, and their outcomes."""

from __future__ import annotations

import asyncio
import io
import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import structlog
from fastapi import FastAPI
from fastapi.routing import APIRoute, iter_route_contexts
from starlette.routing import WebSocketRoute

from planetwire.log import processors

LINE_MAX = 4_000
WITHIN_S = 60.0
_addresses = itertools.count(1)


@dataclass(frozen=True)
class Operation:
    """One line of the application's route table."""

    method: str
    path: str
    names: tuple[str, ...]
    """Of its query parameters."""


@dataclass
class Asked:
    """One request; `target` and `headers` are the bytes on the wire."""

    method: str
    target: bytes
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytes = b""


def operations(app: FastAPI) -> list[Operation]:
    """Every route, also of included routers; WebSockets have the method WEBSOCKET."""
    found = []
    for route in iter_route_contexts(app.routes):
        path = str(route.path)
        if isinstance(route.original_route, WebSocketRoute):
            found.append(Operation("WEBSOCKET", path, ()))
            continue
        names: list[str] = []
        if isinstance(route.original_route, APIRoute):
            names += [one.alias for one in route.dependant.query_params]
            written = (route.openapi_extra or {}).get("parameters", ())
            names += [one["name"] for one in written if one["in"] == "query"]
        found += [Operation(method, path, tuple(names)) for method in sorted(route.methods or {"GET"})]
    return found


@contextmanager
def lines_of_log() -> Iterator[list[str]]:
    """The console output meanwhile: one item per write."""
    written = io.StringIO()
    lines: list[str] = []
    before = structlog.get_config()
    structlog.configure(
        processors=processors("console", colours=False),
        logger_factory=structlog.PrintLoggerFactory(written),
        wrapper_class=structlog.make_filtering_bound_logger(20),
        cache_logger_on_first_use=False,
    )
    try:
        yield lines
    finally:
        lines.extend(written.getvalue().split("\n")[:-1])
        structlog.configure(**before)


def _somebody_else() -> str:
    """An unused address: one that sent wrong credentials is rate-limited, and every request would be refused."""
    number = next(_addresses)
    return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


async def ask(app: FastAPI, asked: Asked, server: tuple[str, int]) -> int:
    """The status. An exception from the application propagates."""
    raw_path, _, query = asked.target.partition(b"?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "scheme": "http",
        "method": asked.method,
        "path": unquote(raw_path.decode("ascii")),
        "raw_path": raw_path,
        "query_string": query,
        "root_path": "",
        "headers": [(b"host", b"127.0.0.1"), *asked.headers],
        "client": (_somebody_else(), 1),
        "server": server,
        "state": {},
    }
    sent: list[Any] = []
    begun = asyncio.Event()
    messages = iter([{"type": "http.request", "body": asked.body, "more_body": False}])

    async def receive() -> Any:
        first = next(messages, None)
        if first is not None:
            return first
        await begun.wait()  # streams continue until the client leaves
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)
        begun.set()

    async with asyncio.timeout(WITHIN_S):
        await app(scope, receive, send)
    return int(next(message["status"] for message in sent if message["type"] == "http.response.start"))


async def talk(app: FastAPI, asked: Asked, messages: Sequence[str | bytes], server: tuple[str, int]) -> list[Any]:
    """The messages sent to a WebSocket, with a refusal of its handshake; it leaves when all its own are answered."""
    raw_path, _, query = asked.target.partition(b"?")
    scope = {
        "type": "websocket",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "scheme": "ws",
        "path": unquote(raw_path.decode("ascii")),
        "raw_path": raw_path,
        "query_string": query,
        "root_path": "",
        "headers": [(b"host", b"127.0.0.1"), *asked.headers],
        "client": (_somebody_else(), 1),
        "server": server,
        "subprotocols": [],
        "state": {},
        "extensions": {"websocket.http.response": {}},
    }
    sent: list[Any] = []
    answered = asyncio.Condition()
    said: list[Any] = [{"type": "websocket.connect"}]
    for message in messages:
        said.append({"type": "websocket.receive", "text" if isinstance(message, str) else "bytes": message})

    async def receive() -> Any:
        if said:
            return said.pop(0)
        async with answered:  # the accept, the greeting, and a frame for each message
            await answered.wait_for(lambda: len(sent) >= len(messages) + 2)
        return {"type": "websocket.disconnect", "code": 1000}

    async def send(message: Any) -> None:
        async with answered:
            sent.append(message)
            answered.notify_all()

    async with asyncio.timeout(WITHIN_S):
        await app(scope, receive, send)
    return sent
