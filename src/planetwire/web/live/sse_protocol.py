"""A bounded connection with `GET /api/events` answered on the transport itself; plain pushes see `push_protocol`.

Why: an event is one `write` of shared bytes per connection, without a task, a queue or a message per connection.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Sequence
from typing import Any

from starlette.responses import Response

from planetwire.errors import PlanetwireError
from planetwire.log import get_logger
from planetwire.model.wire import EVENTS_PATH
from planetwire.web.http.front import Front
from planetwire.web.http.problems import of_error, problem
from planetwire.web.http.security import Headers
from planetwire.web.http.socket_protocol import CLOSED_KEY
from planetwire.web.live.sse import HEADERS, SseEndpoint, SseStream
from planetwire.web.live.ws_session import CUT_KEY
from planetwire.web.terminal.ingest import IngestEndpoint
from planetwire.web.terminal.push_protocol import PushProtocol

log = get_logger()

SNDBUF_BYTES = 64 << 10  # kernel memory of one stalled reader; Linux would grow it to megabytes
USER_TIMEOUT_MS = 30_000  # a peer that vanished without a word

_PATH = EVENTS_PATH.encode()


def tune(transport: asyncio.Transport, sndbuf_bytes: int) -> None:
    """Bound what one live connection may hold in the kernel, and how long a vanished peer is waited for."""
    sock = transport.get_extra_info("socket")
    if sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, sndbuf_bytes)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, USER_TIMEOUT_MS)


def reset(transport: asyncio.Transport) -> None:
    """Close by RST: a plain close would leave unsent bytes in the kernel until the peer reads them."""
    if transport.is_closing():
        return
    sock = transport.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


class Borrowed(socket.socket):
    """A second handle on a transport's descriptor, which stays the transport's: it is never closed from here."""

    __slots__ = ()

    def __del__(self) -> None:
        self.detach()


def borrow(transport: asyncio.Transport) -> Borrowed | None:
    """None where bytes are not the socket's own business, as with TLS."""
    sock = transport.get_extra_info("socket")
    if sock is None or transport.get_extra_info("sslcontext") is not None:
        return None
    borrowed = Borrowed(sock.family, sock.type, sock.proto, sock.fileno())
    borrowed.setblocking(False)
    return borrowed


class EventsProtocol(PushProtocol):
    """Subclassed by `make_protocol`, which gives it its endpoint. Also the stream's Carrier.

    Without an endpoint (the Terminal half is off) only WebSockets differ from plain uvicorn: they are bounded too.
    """

    endpoint: SseEndpoint | None = None
    sndbuf_bytes = SNDBUF_BYTES

    _taken = False  # this connection became a stream; what the client still sends is ignored
    _task: asyncio.Task[None] | None = None
    _stream: SseStream | None = None
    _borrowed: Borrowed | None = None

    # --- request

    def take_request(self) -> None:
        """Take the connection if it asks for the stream."""
        path = self.target.partition(b"?")[0]
        wanted = self.endpoint is not None and path == _PATH and self.method == b"GET"
        if self.idle and wanted and not self.asks_to_upgrade:
            self._take()
        else:
            super().take_request()

    def _take(self) -> None:
        self._taken = self._deaf = True
        self.front.wait(self, None)
        query = self.target.partition(b"?")[2]
        self.note_request("GET", EVENTS_PATH, query)
        # A copy: of what the client sends after it, lines may still be added to what only this request should say.
        self._task = self.spawn(self._open(query, tuple(self.lines)))

    def _may_still_refuse(self) -> bool:
        """Also what came with a request for the stream and is no HTTP, while the stream has not begun."""
        if self._taken and self._stream is None and self._task is not None:
            self._task.cancel()
            self._task = None
            self._taken = False
            return True
        return super()._may_still_refuse()

    # --- answer

    async def _open(self, query: bytes, headers: Sequence[tuple[bytes, bytes]]) -> None:
        endpoint = self.endpoint
        assert endpoint is not None  # else nothing was taken
        try:
            opening = await endpoint.admit(query, headers, self.peer)
        except PlanetwireError as error:
            self._refuse(of_error(error, EVENTS_PATH))
            return
        except Exception as error:
            log.error("web.request.crashed", path=EVENTS_PATH, exc_info=error)
            self._refuse(problem(500, "internal", "an error of ours; the log has the details"))
            return
        if self.transport.is_closing() or endpoint.draining:
            opening.slot.release()
            self.transport.close()
            return
        tune(self.transport, self.sndbuf_bytes)
        self._borrowed = borrow(self.transport)
        # Who is live has nothing in the buffer: see `send`. TLS calls a buffer full that holds as much as it may.
        self.transport.set_write_buffer_limits(high=0 if self._borrowed is not None else 1)
        self._write_head(200, HEADERS)
        if self._borrowed is not None:
            self.send = self._borrowed.send  # type: ignore[method-assign]  # the hub calls the kernel, and nothing else
        self.forget_requests()
        self._task = None
        self._stream = endpoint.join(opening, self)
        self._stream.start()

    def _refuse(self, response: Response) -> None:
        self._write_head(response.status_code, (*response.raw_headers, (b"connection", b"close")))
        self.transport.write(bytes(response.body))
        self.transport.close()

    def _write_head(self, status: int, headers: Headers) -> None:
        self.transport.write(self.head(status, headers))
        self.count_request()

    # --- carrier

    def send(self, data: bytes, /) -> int:
        """Replaced by the socket's own, where there is one.

        No byte overtakes another: the transport pauses the stream as soon as it holds any itself, and then the hub
        sends nothing until it is resumed.
        """
        self.transport.write(data)
        return len(data)

    def write(self, data: bytes, /) -> None:
        """Straight to the transport."""
        self.transport.write(data)

    def write_many(self, frames: Sequence[bytes], /) -> None:
        """One write for all."""
        self.transport.write(b"".join(frames))

    def pending_bytes(self) -> int:
        """Bytes in the transport's buffer."""
        return self.transport.get_write_buffer_size()

    def is_full(self) -> bool:
        """Between the transport's pause and its resume."""
        return self.writing_paused

    def finish(self) -> None:
        """Flush and close; a reader that is behind already is not waited for."""
        if self.is_full():
            self.cut()
        else:
            self.transport.close()

    def cut(self) -> None:
        """RST."""
        reset(self.transport)

    # --- transport

    def pause_writing(self) -> None:
        """The buffer is above its mark."""
        super().pause_writing()
        if self._stream is not None:
            self._stream.subscription.pause()

    def resume_writing(self) -> None:
        """The buffer has drained."""
        super().resume_writing()
        if self._stream is not None:
            self._stream.subscription.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        """Free the slot, whatever state it was in."""
        if self._task is not None:
            self._task.cancel()
        if self._stream is not None:
            self._stream.close()
        if self._borrowed is not None:  # the descriptor is closed next, and may be another's soon
            self._borrowed.detach()
        super().connection_lost(exc)

    def server_ends(self) -> None:
        """The first connection told drains the endpoint: all its streams."""
        if self.endpoint is not None:
            self.endpoint.drain()
        if not self._taken:
            super().server_ends()
        elif self._stream is None:
            self.transport.close()

    def upgrade(self) -> None:
        """Give the socket the same bounds, and the endpoint a way to reset it."""
        tune(self.transport, self.sndbuf_bytes)
        transport = self.transport
        self.become_websocket({CUT_KEY: lambda: reset(transport), CLOSED_KEY: self.front.gone})


def make_protocol(
    endpoint: SseEndpoint | None, pushed: IngestEndpoint | None = None, front: Front | None = None, **options: Any
) -> type[EventsProtocol]:
    """The class for `uvicorn.Config(http=…)`. Option: `sndbuf_bytes`."""
    given = {"endpoint": endpoint, "pushed": pushed, "front": front or Front(), **options}
    return type("PlanetwireProtocol", (EventsProtocol,), given)
