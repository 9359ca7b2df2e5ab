"""Wraps the undocumented parts of uvicorn that we use. No other module touches them.

Why: its protocol classes are internal and a release may change them. Then only this file must be adapted,
`tests/unit/test_uvicorn_seam.py` names the change, and PLANETWIRE_PLAIN_HTTP=true serves meanwhile: it needs only
`Server`.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, MutableMapping
from types import FrameType
from typing import Any, TypeAlias

import uvicorn
from uvicorn.protocols import utils
from uvicorn.protocols.http import httptools_impl
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.server import ServerProtocol

from planetwire.web.http.security import Headers

Plain = httptools_impl.HttpToolsProtocol
HttpScope: TypeAlias = MutableMapping[str, Any]  # ASGI's
NO_REQUESTS: deque[Any] = deque(maxlen=0)
HOOKS = {  # callback of uvicorn or the parser: our method, which a subclass may override
    "on_message_begin": "request_begins",
    "on_url": "url_comes",
    "on_header": "header_comes",
    "on_headers_complete": "headers_end",
    "on_body": "body_comes",
    "on_message_complete": "request_ends",
    "shutdown": "server_ends",
}


class Exchange:
    """A request that is answered in place of the application."""

    __slots__ = ("_cycle",)

    def __init__(self, cycle: httptools_impl.RequestResponseCycle) -> None:
        self._cycle = cycle

    @property
    def client(self) -> str:
        """The peer's address."""
        client = self._cycle.scope["client"]
        return client[0] if client else ""

    @property
    def gone(self) -> bool:
        """Whether the client has hung up."""
        return self._cycle.disconnected

    @property
    def is_last(self) -> bool:
        """Whether the connection ends with it."""
        return not self._cycle.keep_alive

    async def body(self) -> bytes | None:
        """The whole body; None if the client disconnected before its end."""
        body, more = b"", True
        while more:
            message = await self._cycle.receive()
            if message["type"] != "http.request":
                return None
            body += message["body"]
            more = message["more_body"]
        return body

    def finish(self, answer: bytes) -> None:
        """Send head and body at once, then start the next pipelined request."""
        cycle = self._cycle
        cycle.response_started = cycle.response_complete = True
        cycle.transport.write(answer)
        if not cycle.keep_alive:
            cycle.transport.close()
        cycle.on_response()

    def forget(self) -> None:
        """Break the reference cycle with the connection."""
        self._cycle.on_response = _nothing


Answer: TypeAlias = Callable[[Exchange], Coroutine[Any, Any, None]]


class HttpConnection(Plain):
    """An HTTP/1.1 connection. The parser calls the methods below in the order of the bytes; a subclass that overrides
    one calls `super()` last, or the request is not processed.
    """

    transport: asyncio.Transport  # asyncio's name; with TLS set after the handshake

    # --- parser callbacks

    request_begins = Plain.on_message_begin
    url_comes = Plain.on_url
    header_comes = Plain.on_header
    headers_end = Plain.on_headers_complete  # starts the request, or queues it behind the one that is being answered
    body_comes = Plain.on_body
    request_ends = Plain.on_message_complete

    def __init_subclass__(cls, **options: Any) -> None:
        """Alias their names to ours: the parser calls a dozen per request, and an extra call each would cost."""
        super().__init_subclass__(**options)
        for theirs, ours in HOOKS.items():
            setattr(cls, theirs, getattr(cls, ours))

    def parse(self, data: bytes) -> None:
        """Raises what httptools raises."""
        self.parser.feed_data(data)

    # --- the newest request

    @property
    def method(self) -> bytes:
        """As it was sent."""
        return bytes(self.parser.get_method())

    @property
    def target(self) -> bytes:
        """Path and query, as far as they have come."""
        return self.url

    @property
    def lines(self) -> list[tuple[bytes, bytes]]:
        """Headers, as far as they have come; trailers are added to the same list."""
        return self.headers

    @property
    def version(self) -> str:
        """Of HTTP."""
        return str(self.parser.get_http_version())

    @property
    def asks_to_upgrade(self) -> bool:
        """To any protocol."""
        return bool(self.parser.should_upgrade())

    @property
    def asks_for_websocket(self) -> bool:
        """Whether it upgrades to a WebSocket, which we support."""
        return self.asks_to_upgrade and self._should_upgrade()

    def note_request(self, method: str, path: str, query: bytes) -> None:
        """For the access log, of a request that is not started."""
        self.scope["method"], self.scope["path"], self.scope["query_string"] = method, path, query

    # --- the request being answered

    @property
    def had_request(self) -> bool:
        """Whether any was started."""
        return self.cycle is not None

    @property
    def idle(self) -> bool:
        """Whether no answer is being made."""
        return self.cycle is None or self.cycle.response_complete

    @property
    def queued(self) -> int:
        """Requests that wait for the answer of another."""
        return len(self.pipeline)

    def answerer(self, scope: HttpScope) -> Answer | None:
        """The handler that answers in place of the application; None: the application does."""
        return None

    def _start_asgi_task(self, cycle: httptools_impl.RequestResponseCycle, app: Any) -> None:
        """`app` is not the application when uvicorn itself refuses."""
        answer = self.answerer(cycle.scope) if app is self.app else None  # type: ignore[arg-type]
        if answer is None:
            super()._start_asgi_task(cycle, app)
        else:
            self.spawn(answer(Exchange(cycle)))

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """A task that the server waits for when it goes down."""
        task = self.loop.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    def on_response_complete(self) -> None:
        """As uvicorn's own, without a timer for each connection."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)
        else:
            self.all_answered()

    def all_answered(self) -> None:
        """Nothing waits behind the answer that is out."""

    def end_request(self) -> bool:
        """End the request whose body is refused; False if its response has begun, so no other can be sent."""
        cycle = self.cycle
        if cycle.response_started:
            (self.transport.close if cycle.response_complete else self.transport.abort)()
            return False
        waiting = bool(self.pipeline) and self.pipeline[0][0] is cycle
        if waiting:
            self.pipeline.popleft()
        cycle.disconnected = True  # a reader of the body sees a disconnected client
        cycle.response_complete = not waiting
        cycle.message_event.set()
        return True

    def newest_is_last(self) -> None:
        """The connection ends with the answer of the newest request."""
        last = self.pipeline[0][0] if self.pipeline else self.cycle
        last.keep_alive = False

    # --- the connection

    @property
    def peer(self) -> str | None:
        """The peer's address."""
        return self.client[0] if self.client else None

    @property
    def encrypted(self) -> bool:
        """Whether it speaks TLS."""
        return utils.is_ssl(self.transport)

    @property
    def reading_paused(self) -> bool:
        """Because of what is being answered."""
        return self.flow.read_paused

    @property
    def writing_paused(self) -> bool:
        """Between the transport's pause and its resume."""
        return self.flow.write_paused

    def stop_reading(self) -> None:
        """Until `read_on`; idempotent."""
        self.flow.pause_reading()

    def read_on(self) -> None:
        """Idempotent."""
        self.flow.resume_reading()

    def head_bytes(self, status: int, headers: Headers) -> bytes:
        """Status line, the headers of every answer, and these."""
        lines = [httptools_impl.STATUS_LINE[status]]
        for name, value in (*self.server_state.default_headers, *headers):
            lines += name, b": ", value, b"\r\n"
        lines.append(b"\r\n")
        return b"".join(lines)

    def count_request(self) -> None:
        """One that was answered otherwise than through an exchange or the application."""
        self.server_state.total_requests += 1

    def log_access(self, status: int) -> None:
        """As uvicorn does, where its access log is on."""
        if self.access_log:
            self.access_logger.info(
                '%s - "%s %s HTTP/%s" %d',
                utils.get_client_addr(self.scope),
                self.scope["method"],
                utils.get_path_with_query_string(self.scope),
                self.scope["http_version"],
                status,
            )

    def forget_requests(self) -> None:
        """Free what only requests need, a third of what a connection takes: none is taken here any more."""
        self.parser = self.scope = self.headers = None  # type: ignore[assignment]
        self.pipeline = NO_REQUESTS
        self.url = b""

    def become_websocket(self, state: Mapping[str, object]) -> None:
        """Hand the connection on; `state` is added to what the application sees as the socket's."""
        self.app_state = {**self.app_state, **state}
        self.handle_websocket_upgrade()

    def server_ends(self) -> None:
        """The server goes down: an idle connection is closed, another after its answer."""
        super().shutdown()


class SocketConnection(WebSocketsSansIOProtocol):
    """A WebSocket, with `handshake` in place of the library's own side of it; never compresses."""

    handshake: type[ServerProtocol] = ServerProtocol

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.conn = self.handshake(max_size=self.config.ws_max_size, logger=logging.getLogger("uvicorn.error"))

    @property
    def state(self) -> Mapping[str, Any]:
        """What `become_websocket` was given, among other things."""
        return self.app_state


class Server(uvicorn.Server):
    """Calls `on_exit` at the signal, for work that must end before the server."""

    def __init__(self, config: uvicorn.Config, on_exit: Callable[[], object]) -> None:
        super().__init__(config)
        self._on_exit = on_exit

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """As uvicorn's, but does not raise the signal again after serving, when other work has not ended yet."""
        self.force_exit |= self.should_exit and sig == signal.SIGINT
        self.should_exit = True
        self._on_exit()


def _nothing() -> None:
    """In place of a callback that was used."""
