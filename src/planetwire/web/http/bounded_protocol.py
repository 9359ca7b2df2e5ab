"""uvicorn's HTTP protocol with bounds in front of every request: what is over one is refused before it is kept.

Bytes are counted as they come: the parser is fed no more at once than the head of a request may have, and every piece
in which it saw neither the end of a head nor a byte of a body counts as head. A refusal is a problem document, the last
answer of its connection, and waits for the answers that stand before it.
"""

from __future__ import annotations

import asyncio
from typing import cast

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.protocols.utils import is_ssl

from planetwire.web.http.front import Front, Wait
from planetwire.web.http.request_head import Head, Refusal, body_too_large, head_too_large, too_late, url_too_long
from planetwire.web.http.security import STRICT, Headers

PIPELINED_MAX = 32  # requests that wait for the answer of another on their connection
LINE_EXTRA_BYTES = 4  # of a header line, beside name and value
SLACK_BYTES = 1024  # spaces and empty lines that are neither name nor value
LINGER_BYTES = 1024 * 1024  # of what a refused client still sends


class BoundedProtocol(HttpToolsProtocol):
    """Subclassed by `push_protocol` and `sse_protocol`; `front` is given by `make_protocol`."""

    front: Front

    waits: Wait | None = None
    reserved = False  # only health is answered here: every other descriptor is held by accepted work
    _deaf = False  # what the client still sends is ignored
    _dropped = False
    _head_bytes = 0  # since the last thing that was no head
    _ignored_bytes = 0
    _in_head = _in_body = _begun = False  # of the request that is coming; a further one began
    _body_max = _body_left = 0
    _refusal: Refusal | None = None  # waits for answers before it
    _raw: asyncio.Transport | None = None

    # --- connection

    def arrive(self, transport: asyncio.BaseTransport) -> None:
        """Counted, and from now on waited for. With TLS, `self.transport` comes only later."""
        self._raw = cast("asyncio.Transport", transport)
        if not self.front.opened(self, transport.get_extra_info("socket").fileno()):
            self.reserved = True

    def leave(self) -> None:
        """Out of every queue."""
        self.front.wait(self, None)
        self.front.gone(dropped=self._dropped)
        self._raw = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """With TLS, who arrived has shaken hands."""
        super().connection_made(cast("asyncio.Transport", transport))
        if not is_ssl(self.transport):
            self.arrive(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Not counted any more."""
        self.leave()
        super().connection_lost(exc)

    def drop(self) -> None:
        """See `Waiting`."""
        self._deaf = self._dropped = True
        if self._raw is not None:
            self._raw.abort()

    def expire(self, wait: Wait) -> None:
        """See `Waiting`. Who is not read from because of what is being answered is not late."""
        if self.transport is None and self._raw is not None:
            self._raw.abort()  # nothing can be said before there is a key to say it with
        elif wait in (Wait.HEAD, Wait.BODY) and self.flow.read_paused:
            self.front.wait(self, wait)
        elif wait is Wait.HEAD:
            self.refuse(too_late("headers", self.front.settings.header_s))
        elif wait is Wait.BODY:
            self.refuse(too_late("body", self.front.settings.body_s))
        elif wait is Wait.IDLE:
            self.transport.close()
        else:
            self.transport.abort()

    def shutdown(self) -> None:
        """The server goes down; a refused client is not waited for."""
        if self.waits is Wait.LINGER:
            self.transport.close()
        else:
            super().shutdown()

    # --- bytes

    def data_received(self, data: bytes) -> None:
        """Fed to the parser in pieces of at most what a head may have."""
        start = 0
        while start < len(data) and not self._deaf:
            room = self._head_max() + 1 - self._head_bytes
            piece = data if start == 0 and len(data) <= room else data[start : start + room]
            start += len(piece)
            self._head_bytes += len(piece)
            if not self._feed(piece):
                return
            if self._head_bytes >= self._head_max() + 1 and not self._deaf:
                self.refuse(head_too_large(self.front.settings))
        if self._deaf:
            self._ignore(len(data) - start)
        else:
            self._await_more()

    def _await_more(self) -> None:
        """Once for what came at once: most requests come as a whole, and were never waited for."""
        wait: Wait | None = None
        if self._in_body:
            wait = Wait.BODY
        elif self._in_head or self.cycle is None:  # the first head is waited for since the connection
            wait = Wait.HEAD
        elif self.cycle.response_complete:
            wait = Wait.IDLE
        if wait is not self.waits or self._begun:
            self.front.wait(self, wait)
        self._begun = False

    def _head_max(self) -> int:
        bounds = self.front.settings
        return bounds.header_bytes + LINE_EXTRA_BYTES * bounds.header_lines + SLACK_BYTES

    def _feed(self, piece: bytes) -> bool:
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserUpgrade:
            if not self._deaf and self._should_upgrade():
                self.front.wait(self, None)
                self.handle_websocket_upgrade()
            return False
        except httptools.HttpParserError:
            if self._may_still_refuse():
                self.refuse(Refusal(400, "bad_request", "not a request of HTTP/1.1"))
        return True

    def _may_still_refuse(self) -> bool:
        """Whether nothing was said yet that a refusal would contradict."""
        return not self._deaf

    def _ignore(self, count: int) -> None:
        """Only a refused client is counted: it has seconds to read why, and need not send on meanwhile."""
        self._ignored_bytes += count
        if self.waits is Wait.LINGER and self._ignored_bytes > LINGER_BYTES:
            self.front.wait(self, None)
            self.transport.abort()

    # --- what the parser sees

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        if self._deaf:
            return
        self._head_bytes = 0
        self._in_head = True
        self._begun = self.cycle is not None
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Counted as it comes."""
        if self._deaf:
            return
        super().on_url(url)
        if len(self.url) > self.front.settings.url_bytes:
            self.refuse(url_too_long(self.front.settings.url_bytes))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Counted as it comes: short lines take forty times their bytes. One after the body is nobody's, since the
        application has the request's own already.
        """
        if self._deaf or self._in_body:
            return
        super().on_header(name, value)
        if len(self.headers) > self.front.settings.header_lines:
            self.refuse(head_too_large(self.front.settings))

    def on_headers_complete(self) -> None:
        """The request is looked at for the first time."""
        if self._deaf:
            return
        self._head_bytes = 0
        head = Head(self.url, self.headers, self.parser.get_http_version(), self._upgrades())
        refusal = head.refusal(self.front, reserved=self.reserved)
        if refusal is not None:
            self.refuse(refusal)
            return
        self._body_max = self._body_left = self.front.body_max(head.path)
        self.take_request()
        self._in_head, self._in_body = False, not self._deaf

    def take_request(self) -> None:
        """It is within its bounds."""
        idle = self.cycle is None or self.cycle.response_complete
        if not idle and (len(self.pipeline) >= PIPELINED_MAX or self._upgrades()):
            self._close_after_answers()
            return
        super().on_headers_complete()
        if self.reserved and self.cycle is not None:
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        """Counted as it comes."""
        if self._deaf:
            return
        self._head_bytes = 0
        self._body_left -= len(body)
        if self._body_left < 0:
            self.refuse(body_too_large(self._body_max))
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is here as a whole."""
        if self._deaf:
            return
        self._head_bytes = 0
        self._in_body = False
        super().on_message_complete()

    def _upgrades(self) -> bool:
        return bool(self.parser.should_upgrade()) and self._should_upgrade()

    def on_response_complete(self) -> None:
        """As uvicorn's own, with the front's queues in place of a timer for each connection."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)
        elif self._refusal is not None:
            self._say(self._refusal)
        elif not self._deaf and self.waits is None:
            self.front.wait(self, Wait.IDLE)

    # --- refusing

    def refuse(self, refusal: Refusal) -> None:
        """The last answer of this connection."""
        self.front.refused[refusal.code] += 1
        self._deaf = True
        self.front.wait(self, None)
        if self._in_body and not self._end_request():
            return
        if self.cycle is None or self.cycle.response_complete:
            self._say(refusal)
        else:
            self._refusal = refusal
            self.flow.pause_reading()

    def _end_request(self) -> bool:
        """The request whose body is not taken; False: its answer has begun, so there is no other."""
        cycle = self.cycle
        if cycle.response_started:
            (self.transport.close if cycle.response_complete else self.transport.abort)()
            return False
        waiting = bool(self.pipeline) and self.pipeline[0][0] is cycle
        if waiting:
            self.pipeline.popleft()
        cycle.disconnected = True  # who reads the body is told that the client has gone
        cycle.response_complete = not waiting
        cycle.message_event.set()
        return True

    def _close_after_answers(self) -> None:
        """What comes now is not taken, and those before it are the last."""
        self._deaf = True
        self.front.wait(self, None)
        self.flow.pause_reading()
        last = self.pipeline[0][0] if self.pipeline else self.cycle
        last.keep_alive = False

    def _say(self, refusal: Refusal) -> None:
        """Answer, then let the client read: to close with its bytes unread would throw the answer away."""
        self._refusal = None
        response = refusal.response()
        self.transport.write(self.head_of(refusal.status, (*response.raw_headers, (b"connection", b"close"))))
        self.transport.write(bytes(response.body))
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.front.wait(self, Wait.LINGER)

    def head_of(self, status: int, headers: Headers) -> bytes:
        """Status line and headers, those of every response among them."""
        lines = [STATUS_LINE[status]]
        for name, value in (*self.server_state.default_headers, *STRICT, *headers):
            lines += name, b": ", value, b"\r\n"
        lines.append(b"\r\n")
        return b"".join(lines)
