"""A proxy between a client and a server that can be unplugged or made a black hole, to simulate network failures."""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType
from urllib.parse import urlsplit

CHUNK_BYTES = 64 * 1024


class Cable:
    """Forwards its own loopback port to `url`: `http://host:port`, or `unix:/path` of a socket.

    Unplugged, it resets open connections and refuses new ones. As a black hole it keeps all connections open and
    forwards nothing: neither side receives anything from the other, not even its end.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._target: tuple[str, int] | str = parts.path
        if parts.scheme != "unix":
            assert parts.hostname and parts.port
            self._target = (parts.hostname, parts.port)
        self._swallows = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._lines: set[_Line] = set()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Cable:
        self._thread.start()
        self.plug_in()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()

    def plug_in(self) -> None:
        """Forward again, on the same port."""
        self._do(self._start())

    def unplug(self) -> None:
        """Reset every connection and accept no new one."""
        self._do(self._stop())

    def swallow(self) -> None:
        """Be a black hole, for open and new connections."""
        self._do(self._set_hole(True))

    def heal(self) -> None:
        """Forward new connections again. Those in the black hole stay dead, as behind a router that restarted."""
        self._do(self._set_hole(False))

    async def _set_hole(self, swallows: bool) -> None:
        self._swallows = swallows
        if swallows:
            for line in self._lines:
                line.dead = True

    def _do(self, work: object) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(60)  # type: ignore[arg-type]

    async def _start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._open):
            writer.transport.abort()
        for line in self._lines:
            line.cut.set()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _end(self) -> None:
        """Close everything, so that nothing is left to be garbage-collected in another test, including connections that
        were accepted while it was being unplugged.
        """
        await self._stop()
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
        await asyncio.sleep(0)  # aborted connections are closed in the next turn

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        line = _Line(dead=self._swallows)
        self._tasks.add(task)
        self._lines.add(line)
        ends = {writer}
        self._open.add(writer)
        try:
            if not line.dead:
                there_reader, there = await self._dial()
                ends.add(there)
                self._open.add(there)
                await asyncio.gather(line.pump(reader, there), line.pump(there_reader, writer))
            if line.dead:
                await line.cut.wait()
        except OSError:
            pass
        finally:
            for end in ends:
                end.transport.abort()
            self._open -= ends
            self._lines.discard(line)
            self._tasks.discard(task)

    async def _dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if isinstance(self._target, str):
            return await asyncio.open_unix_connection(self._target)
        return await asyncio.open_connection(*self._target)


class _Line:
    """One connection through the cable."""

    def __init__(self, *, dead: bool) -> None:
        self.dead = dead
        self.cut = asyncio.Event()

    async def pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        """Forward until the source ends; once the line is dead, not even the end is forwarded."""
        try:
            while chunk := await source.read(CHUNK_BYTES):
                if not self.dead:
                    sink.write(chunk)
                    await sink.drain()
            if not self.dead:
                sink.write_eof()
        except (OSError, RuntimeError):
            if not self.dead:
                sink.transport.abort()
