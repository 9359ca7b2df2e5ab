"""A TCP relay between a browser and a server that can be unplugged: the network, as tests need it."""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType
from urllib.parse import urlsplit

CHUNK_BYTES = 64 * 1024


class Cable:
    """Forwards a loopback port of its own to `url`. Unplugged, it resets what is open and refuses what is new."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname and parts.port
        self._target = (parts.hostname, parts.port)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Cable:
        self._thread.start()
        self.plug_in()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.unplug()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def plug_in(self) -> None:
        """Forward again, on the same port."""
        self._do(self._start())

    def unplug(self) -> None:
        """Reset every connection and take no new one."""
        self._do(self._stop())

    def _do(self, work: object) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)  # type: ignore[arg-type]

    async def _start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._open):
            writer.transport.abort()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            there_reader, there = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            self._tasks.discard(task)
            return
        self._open |= {writer, there}
        try:
            await asyncio.gather(_pump(reader, there), _pump(there_reader, writer))
        finally:
            for end in (writer, there):
                end.transport.abort()
                self._open.discard(end)
            self._tasks.discard(task)


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while chunk := await source.read(CHUNK_BYTES):
            sink.write(chunk)
            await sink.drain()
        sink.write_eof()
    except (OSError, RuntimeError):
        sink.transport.abort()
