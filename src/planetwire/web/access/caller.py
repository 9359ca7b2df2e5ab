"""The sender of a request as plain values, the same for routes, the WebSocket and the protocol classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import Request
from starlette.requests import cookie_parser

from planetwire.model import Role
from planetwire.web.access.cookie import COOKIE
from planetwire.web.http.proxies import TrustedProxies, peer_of

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class Caller:
    """`user`: the user that a trusted proxy signed in, with the role from the proxy."""

    address: str
    authorization: str | None = None
    cookie: str | None = None
    origin: str | None = None
    host: str | None = None
    user: tuple[str, Role] | None = None
    writes: bool = False

    @property
    def bearer(self) -> str | None:
        """The token of an `Authorization: Bearer`; None without one."""
        scheme, _, given = (self.authorization or "").partition(" ")
        return given.strip() or None if scheme.lower() == "bearer" else None


def caller_of(
    headers: Sequence[tuple[bytes, bytes]], peer: str | None, proxies: TrustedProxies, *, writes: bool = False
) -> Caller:
    """`headers` with names in lower case, `peer` the other end of the connection."""
    first: dict[bytes, str] = {}
    for name, value in headers:
        first.setdefault(name, value.decode("latin-1"))
    cookies = cookie_parser(first[b"cookie"]) if b"cookie" in first else {}
    return Caller(
        proxies.client_address(peer, headers),
        first.get(b"authorization"),
        cookies.get(COOKIE),
        first.get(b"origin"),
        first.get(b"host"),
        proxies.user(peer, headers),
        writes,
    )


def caller_of_request(request: Request, proxies: TrustedProxies) -> Caller:
    """Of a route."""
    scope = request.scope
    return caller_of(scope["headers"], peer_of(scope), proxies, writes=scope["method"] not in SAFE_METHODS)


def same_origin(origin: str | None, host: str | None) -> bool:
    """Whether a browser's Origin is the host it spoke to. No Origin: False (a cookie write needs one)."""
    if origin is None or host is None:
        return False
    return origin.partition("://")[2].lower() == host.lower()
