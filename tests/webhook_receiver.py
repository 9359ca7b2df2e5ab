"""The receiver of the webhook: a real HTTP server that records accepted messages, and can refuse, hang or stop."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from ledger_tools import until

SECRET = "secret-of-the-test"


@dataclass
class Taken:
    """One request answered with 2xx."""

    headers: dict[str, str]
    body: dict[str, Any]
    raw: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]


@dataclass
class Receiver:
    """`answer` decides the status of a request, and may wait first; by default everything is accepted."""

    answer: Callable[[dict[str, Any]], Awaitable[tuple[int, str]]] | None = None
    taken: list[Taken] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    port: int = 0
    _server: asyncio.Server | None = None
    _open: set[asyncio.StreamWriter] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Refuse connections, drop open ones."""
        if self._server is not None:
            self._server.close()
            for writer in list(self._open):
                writer.close()
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            while await self._one(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._open.discard(writer)
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)
        }
        raw = await reader.readexactly(int(headers["content-length"]))
        body = orjson.loads(raw)
        self.asked.append(body["id"])
        status, extra = await self.answer(body) if self.answer else (204, "")
        if 200 <= status < 300:
            self.taken.append(Taken(headers, body, raw))
        writer.write(f"HTTP/1.1 {status} X\r\n{extra}content-length: 0\r\n\r\n".encode())
        await writer.drain()
        return True

    # --- what came

    async def has(self, count: int, within_s: float = 60.0) -> None:
        """Wait until so many distinct messages were accepted."""

        async def so() -> bool:
            return len({taken.id for taken in self.taken}) >= count

        await until(so, within_s)

    def by_key(self) -> dict[str, list[int]]:
        """Revisions of each layer, in order of first arrival."""
        seen: dict[str, list[int]] = defaultdict(list)
        for taken in self.taken:
            if taken.body["revision"] not in seen[taken.body["key"]]:
                seen[taken.body["key"]].append(taken.body["revision"])
        return dict(seen)


def signed(taken: Taken, secret: str = SECRET) -> bool:
    """Verifies the signature as a receiver does."""
    text = f"{taken.headers['webhook-id']}.{taken.headers['webhook-timestamp']}.".encode() + taken.raw
    wanted = base64.b64encode(hmac.new(secret.encode(), text, hashlib.sha256).digest()).decode()
    return f"v1,{wanted}" in taken.headers["webhook-signature"].split(" ")
