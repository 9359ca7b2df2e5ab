"""Checks a request's head before it is handled: its size, its Host, its upgrade, the declared body."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.responses import Response

from planetwire.settings import RequestSettings
from planetwire.web.http.front import Front
from planetwire.web.http.hosts import AllowedHosts
from planetwire.web.http.problems import RETRY_AFTER_S, problem

EXEMPT = frozenset({b"/healthz", b"/readyz"})  # probes use any host name, and must work without free descriptors
SOCKET_LINE_BYTES = 8_000  # of an upgrade: limits of the WebSocket library, per line
SOCKET_LINES = 128  # and in number


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is refused."""

    status: int
    code: str
    detail: str

    def response(self) -> Response:
        """As a problem document."""
        headers = {"Retry-After": str(RETRY_AFTER_S)} if self.status == 503 else None
        return problem(self.status, self.code, self.detail, headers)


@dataclass(slots=True)
class Head:
    """The head as sent, and what it requires of its connection."""

    url: bytes
    headers: Sequence[tuple[bytes, bytes]]
    version: str
    upgrades: bool

    @property
    def path(self) -> bytes:
        """As it was sent, without the query."""
        return self.url.partition(b"?")[0]

    def refusal(self, front: Front, *, reserved: bool) -> Refusal | None:
        """None: accepted. `reserved`: only health checks are answered on this connection."""
        size, hosts, length, chunked = len(self.url), [], b"", False
        for name, value in self.headers:
            size += len(name) + len(value)
            if name == b"host":
                hosts.append(value)
            elif name == b"content-length":
                length = value
            elif name == b"transfer-encoding":
                chunked = True
        if size > front.settings.header_bytes:
            return head_too_large(front.settings)
        path = self.path
        if path not in EXEMPT:
            refusal = self._wrong_host(front.hosts, hosts)
            if refusal is not None or reserved:
                return refusal or Refusal(503, "too_many_connections", "too many connections; try again in a moment")
        if self.upgrades:
            return self._bad_upgrade(chunked or bool(length.strip(b"0")))
        limit = front.body_max(path)
        return body_too_large(limit) if length and int(length) > limit else None

    def _wrong_host(self, ours: AllowedHosts, named: list[bytes]) -> Refusal | None:
        """RFC 9112, 3.2: exactly one Host from HTTP/1.1 on; an absolute target has another."""
        if len(named) > 1 or (not named and self.version != "1.0"):
            return Refusal(400, "bad_request", "a request has one Host header")
        if not self.url.isascii():
            return Refusal(400, "bad_request", "a path is written in ASCII, with %XX for the rest")
        if not self.url.startswith((b"/", b"*")):
            named.append(self.url.partition(b"://")[2].partition(b"/")[0].rpartition(b"@")[2])
        if all(map(ours.takes, named)):
            return None
        return Refusal(421, "wrong_host", "not a name of this installation; PLANETWIRE_ALLOWED_HOSTS adds one")

    def _bad_upgrade(self, has_body: bool) -> Refusal | None:
        if has_body:
            return Refusal(413, "too_large", "an upgrade has no body")
        if len(self.url) > SOCKET_LINE_BYTES:
            return url_too_long(SOCKET_LINE_BYTES)
        longest = max(len(name) + len(value) for name, value in self.headers)
        if longest > SOCKET_LINE_BYTES or len(self.headers) > SOCKET_LINES:
            detail = f"an upgrade has at most {SOCKET_LINES} header lines of {SOCKET_LINE_BYTES} bytes"
            return Refusal(431, "headers_too_large", detail)
        return None


def head_too_large(bounds: RequestSettings) -> Refusal:
    """431."""
    detail = f"a request has at most {bounds.header_bytes} bytes of headers in {bounds.header_lines} lines"
    return Refusal(431, "headers_too_large", detail)


def url_too_long(limit: int) -> Refusal:
    """414."""
    return Refusal(414, "uri_too_long", f"path and query have at most {limit} bytes")


def body_too_large(limit: int) -> Refusal:
    """413."""
    return Refusal(413, "too_large", f"the body has at most {limit} bytes")


def too_late(what: str, within_s: float) -> Refusal:
    """408."""
    return Refusal(408, "request_timeout", f"the {what} did not come within {within_s:g} s")
