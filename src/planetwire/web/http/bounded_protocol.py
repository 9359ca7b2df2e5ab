"""An HTTP connection with bounds in front of every request: what is over one is refused before it is kept.

Bytes are counted as they come: the parser is fed no more at once than the head of a request may have, and every piece
in which it saw neither the end of a head nor a byte of a body counts as head. A refusal is a problem document, the last
answer of its connection, and waits for the answers that stand before it.
"""

from __future__ import annotations

import asyncio
from typing import cast

import httptools

from planetwire.web.http.front import Front, Wait
from planetwire.web.http.request_head import Head, Refusal, body_too_large, head_too_large, too_late, url_too_long
from planetwire.web.http.security import STRICT, Headers
from planetwire.web.http.uvicorn_seam import HttpConnection

PIPELINED_MAX = 32  # requests that wait for the answer of another on their connection
LINE_EXTRA_BYTES = 4  # of a header line, beside name and value
SLACK_BYTES = 1024  # spaces and empty lines that are neither name nor value
LINGER_BYTES = 1024 * 1024  # of what a refused client still sends


class BoundedProtocol(HttpConnection):
    """Subclassed by `push_protocol` and `sse_protocol`; `front` is given by `make_protocol`."""

    front: Front

    waits: Wait | None = None
    reserved = False  # only health is answered here: every other descriptor is held by accepted work
    _deaf = False  # what the client still sends is ignored
    _dropped = False
    _head_bytes = 0  # since the last thing that was no head
    _head_lines = 0
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
        if not self.encrypted:
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
        elif wait in (Wait.HEAD, Wait.BODY) and self.reading_paused:
            self.front.wait(self, wait)
        elif wait is Wait.HEAD:
            self.refuse(too_late("headers", self.front.settings.header_s))
        elif wait is Wait.BODY:
            self.refuse(too_late("body", self.front.settings.body_s))
        elif wait is Wait.IDLE:
            self.transport.close()
        else:
            self.transport.abort()

    def server_ends(self) -> None:
        """A refused client is not waited for."""
        if self.waits is Wait.LINGER:
            self.transport.close()
        else:
            super().server_ends()

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
        elif self._in_head or not self.had_request:  # the first head is waited for since the connection
            wait = Wait.HEAD
        elif self.idle:
            wait = Wait.IDLE
        if wait is not self.waits or self._begun:
            self.front.wait(self, wait)
        self._begun = False

    def _head_max(self) -> int:
        bounds = self.front.settings
        return bounds.header_bytes + LINE_EXTRA_BYTES * bounds.header_lines + SLACK_BYTES

    def _feed(self, piece: bytes) -> bool:
        try:
            self.parse(piece)
        except httptools.HttpParserUpgrade:
            if not self._deaf and self.asks_for_websocket:
                self.front.wait(self, None)
                self.upgrade()
            return False
        except httptools.HttpParserError:
            if self._may_still_refuse():
                self.refuse(Refusal(400, "bad_request", "not a request of HTTP/1.1"))
        return True

    def upgrade(self) -> None:
        """It is a WebSocket's from now on."""
        self.become_websocket({})

    def _may_still_refuse(self) -> bool:
        """Whether nothing was said yet that a refusal would contradict."""
        return not self._deaf

    def _ignore(self, count: int) -> None:
        """Only a refused client is counted: it has seconds to read why, and need not send on meanwhile."""
        self._ignored_bytes += count
        if self.waits is Wait.LINGER and self._ignored_bytes > LINGER_BYTES:
            self.front.wait(self, None)
            self.transport.abort()

    # --- what comes

    def request_begins(self) -> None:
        """The first byte of a request."""
        if self._deaf:
            return
        self._head_bytes = self._head_lines = 0
        self._in_head = True
        self._begun = self.had_request
        super().request_begins()

    def url_comes(self, url: bytes) -> None:
        """Counted as it comes."""
        if self._deaf:
            return
        super().url_comes(url)
        if len(self.target) > self.front.settings.url_bytes:
            self.refuse(url_too_long(self.front.settings.url_bytes))

    def header_comes(self, name: bytes, value: bytes) -> None:
        """Counted as it comes: short lines take forty times their bytes. One after the body is nobody's, since the
        application has the request's own already.
        """
        if self._deaf or self._in_body:
            return
        super().header_comes(name, value)
        self._head_lines += 1
        if self._head_lines > self.front.settings.header_lines:
            self.refuse(head_too_large(self.front.settings))

    def headers_end(self) -> None:
        """The request is looked at for the first time."""
        if self._deaf:
            return
        self._head_bytes = 0
        head = Head(self.target, self.lines, self.version, self.asks_for_websocket)
        refusal = head.refusal(self.front, reserved=self.reserved)
        if refusal is not None:
            self.refuse(refusal)
            return
        self._body_max = self._body_left = self.front.body_max(head.path)
        self.take_request()
        self._in_head, self._in_body = False, not self._deaf

    def take_request(self) -> None:
        """It is within its bounds."""
        if not self.idle and (self.queued >= PIPELINED_MAX or self.asks_for_websocket):
            self._close_after_answers()
            return
        super().headers_end()
        if self.reserved and self.had_request:
            self.newest_is_last()

    def body_comes(self, body: bytes) -> None:
        """Counted as it comes."""
        if self._deaf:
            return
        self._head_bytes = 0
        self._body_left -= len(body)
        if self._body_left < 0:
            self.refuse(body_too_large(self._body_max))
        else:
            super().body_comes(body)

    def request_ends(self) -> None:
        """The request is here as a whole."""
        if self._deaf:
            return
        self._head_bytes = 0
        self._in_body = False
        super().request_ends()

    def all_answered(self) -> None:
        """The turn of a refusal that has waited, or of a further request."""
        if self._refusal is not None:
            self._say(self._refusal)
        elif not self._deaf and self.waits is None:
            self.front.wait(self, Wait.IDLE)

    # --- refusing

    def refuse(self, refusal: Refusal) -> None:
        """The last answer of this connection."""
        self.front.refused[refusal.code] += 1
        self._deaf = True
        self.front.wait(self, None)
        if self._in_body and not self.end_request():
            return
        if self.idle:
            self._say(refusal)
        else:
            self._refusal = refusal
            self.stop_reading()

    def _close_after_answers(self) -> None:
        """What comes now is not taken, and those before it are the last."""
        self._deaf = True
        self.front.wait(self, None)
        self.stop_reading()
        self.newest_is_last()

    def _say(self, refusal: Refusal) -> None:
        """Answer, then let the client read: to close with its bytes unread would throw the answer away."""
        self._refusal = None
        response = refusal.response()
        self.transport.write(self.head_of(refusal.status, (*response.raw_headers, (b"connection", b"close"))))
        self.transport.write(bytes(response.body))
        self.read_on()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.front.wait(self, Wait.LINGER)

    def head_of(self, status: int, headers: Headers) -> bytes:
        """Status line and headers, those of every response among them."""
        return self.head_bytes(status, (*STRICT, *headers))
