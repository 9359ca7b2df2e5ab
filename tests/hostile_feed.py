"""A malicious feed: a real HTTP server on loopback whose answers are written byte by byte, by scripts.

Two loopback addresses stand for two hosts. Every script ends when the client disconnects.
"""

from __future__ import annotations

import asyncio
import gzip
import threading
import zlib
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

MIB = 1024 * 1024
BLOCK = b"x" * (64 * 1024)
START_S = 60.0
OTHER_HOST = "127.0.0.2"

Script = Callable[[asyncio.StreamWriter], Awaitable[None]]


def bomb(size_bytes: int) -> bytes:
    """So many zeros as gzip, compressed to a thousandth; without the end, which no reader should reach."""
    packer = zlib.compressobj(9, wbits=31)
    start = packer.compress(bytes(MIB)) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(bytes(MIB)) + packer.flush(zlib.Z_FULL_FLUSH)
    return start + block * (size_bytes // MIB - 1)


def head(status: int = 200, **headers: str | int) -> bytes:
    """Status line and headers; underscores in names are hyphens.

    Every connection ends with its answer, and the answer says so: a client that kept it would reuse a closing one.
    """
    lines = [
        f"HTTP/1.1 {status} X",
        "Connection: close",
        *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join((*lines, "", "")).encode("latin-1")


def plainly(*parts: bytes) -> Script:
    """These bytes, then the end of the connection."""

    async def script(writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()

    return script


def at_length(first: bytes, block: bytes, size_bytes: int | None) -> Script:
    """The first bytes, then blocks up to a size; None: endless."""

    async def script(writer: asyncio.StreamWriter) -> None:
        writer.write(first)
        sent = 0
        while size_bytes is None or sent < size_bytes:
            writer.write(block)
            sent += len(block)
            await writer.drain()

    return script


def chunked(block: bytes, size_bytes: int | None, status: int = 200, first: bytes = b"", **headers: str) -> Script:
    """Blocks as chunks, preceded by `first` as a chunk; ended only if there is a size."""
    chunk = b"%x\r\n%b\r\n" % (len(block), block)
    start = head(status, Transfer_Encoding="chunked", **headers)
    start += b"%x\r\n%b\r\n" % (len(first), first) if first else b""

    async def script(writer: asyncio.StreamWriter) -> None:
        await at_length(start, chunk, size_bytes)(writer)
        writer.write(b"0\r\n\r\n")

    return script


def dripping(first: bytes, drop: bytes) -> Script:
    """The first bytes, then one drop after the other until the client disconnects."""

    async def script(writer: asyncio.StreamWriter) -> None:
        writer.write(first)
        while not writer.is_closing():
            writer.write(drop)
            await writer.drain()
            await asyncio.sleep(0.02)

    return script


def answer(body: bytes, status: int = 200, **headers: str | int) -> Script:
    """A complete, correct answer."""
    return plainly(head(status, Content_Length=len(body), **headers), body)


def packed(body: bytes, status: int = 200, **headers: str) -> Script:
    """The same as gzip."""
    return answer(gzip.compress(body), status, Content_Encoding="gzip", **headers)


@dataclass
class Asked:
    """One received request."""

    host: str
    target: str
    headers: dict[str, str]


@dataclass
class HostileFeed:
    """Scripts by path; a path without one is a 404. `asked` has every request to either address."""

    scripts: dict[str, Script] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    port: int = 0
    _servers: list[asyncio.Server] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def other_url(self) -> str:
        return f"http://{OTHER_HOST}:{self.port}"

    def paths(self) -> list[str]:
        """The requested paths, in order."""
        return [one.target for one in self.asked]

    async def start(self) -> None:
        for host in ("127.0.0.1", OTHER_HOST):
            server = await asyncio.start_server(lambda r, w, host=host: self._serve(host, r, w), host, self.port)
            self._servers.append(server)
            self.port = server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        for server in self._servers:
            server.close()

    async def _serve(self, host: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            target = lines[0].split(" ")[1]
            pairs = (line.partition(":") for line in lines[1:] if line)
            self.asked.append(Asked(host, target, {name.lower(): value.strip() for name, _, value in pairs}))
            await reader.readexactly(int(self.asked[-1].headers.get("content-length", "0")))
            script = self.scripts.get(target.partition("?")[0], answer(b"nothing here", 404))
            await script(writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client disconnected, as it should
        finally:
            writer.close()


@contextmanager
def running_hostile_feed() -> Iterator[HostileFeed]:
    """Started, in its own thread."""
    feed, loop = HostileFeed(), asyncio.new_event_loop()
    started, stop = threading.Event(), asyncio.Event()

    async def serve() -> None:
        await feed.start()
        started.set()
        await stop.wait()
        await feed.stop()

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(serve())

    thread = threading.Thread(target=run, name="hostile-feed")
    thread.start()
    try:
        assert started.wait(START_S), "the hostile feed did not start"
        yield feed
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(START_S)
        assert not thread.is_alive()
