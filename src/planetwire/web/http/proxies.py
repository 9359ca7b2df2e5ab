"""The origin of a request that may come through a reverse proxy.

Invariant: `X-Forwarded-For`, `X-Forwarded-Proto` and the header with the signed-in user are trusted only from the
addresses of PLANETWIRE_TRUSTED_PROXIES; by default from none, not even from this machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from planetwire.model import Role
from planetwire.setting_texts import networks, role_mapping
from planetwire.settings import Settings

PEER = "planetwire.peer"  # in an ASGI scope: the real peer of the connection
HOPS_MAX = 20  # read of `X-Forwarded-For`; with more, the last one read is the client
USER_MAX = 100  # characters of a name
UNKNOWN = "unknown"

Headers = Iterable[tuple[bytes, bytes]]
RANKS = {role: rank for rank, role in enumerate(Role)}


@dataclass(frozen=True, slots=True)
class TrustedProxies:
    """`roles`: by user, or by value of the role header if there is one; `*`: all others, by default viewers."""

    trusted: tuple[IPv4Network | IPv6Network, ...] = ()
    user_header: bytes | None = None
    role_header: bytes | None = None
    roles: Mapping[str, Role] = field(default_factory=dict)

    def client_address(self, peer: str | None, headers: Headers) -> str:
        """The address to rate-limit: the peer, or behind trusted proxies the right-most address not of them."""
        if not peer:
            return UNKNOWN
        if not self.trusted or not self._trusts(_address(peer)):
            return peer
        seen = peer
        for hop in reversed(_forwarded(headers)[-HOPS_MAX:]):
            address = _address(hop)
            if address is None:
                break  # not an address: entries further left cannot be trusted
            seen = str(address)
            if not self._trusts(address):
                break
        return seen

    def scheme(self, peer: str | None, headers: Headers, own: str) -> str:
        """`https` if the trusted proxy reports that its client used it; else `own`."""
        if peer is None or not self.trusted or not self._trusts(_address(peer)):
            return own
        values = [value for name, value in headers if name == b"x-forwarded-proto"]
        word = values[-1].rpartition(b",")[2].strip().lower() if values else b""
        if word not in (b"http", b"https", b"ws", b"wss"):
            return own
        secure = word in (b"https", b"wss")
        return ("wss" if secure else "ws") if own in ("ws", "wss") else ("https" if secure else "http")

    def user(self, peer: str | None, headers: Headers) -> tuple[str, Role] | None:
        """The user that a trusted proxy signed in; None if the header is repeated, since one of the two is forged."""
        if self.user_header is None or peer is None or not self._trusts(_address(peer)):
            return None
        name = _only(headers, self.user_header)
        return (name, self._role(name, headers)) if name else None

    def _role(self, name: str, headers: Headers) -> Role:
        fallback = self.roles.get("*", Role.VIEWER)
        if self.role_header is None:
            return self.roles.get(name, fallback)
        words = [word.strip() for word in (_only(headers, self.role_header) or "").split(",")]
        found = [role for role in (self._named(word) for word in words if word != "*") if role is not None]
        return max(found, key=RANKS.__getitem__, default=fallback)

    def _named(self, word: str) -> Role | None:
        if word in self.roles:
            return self.roles[word]
        return Role(word) if word in tuple(Role) else None

    def _trusts(self, address: IPv4Address | IPv6Address | None) -> bool:
        return address is not None and any(address in network for network in self.trusted)


NOBODY = TrustedProxies()


def proxies_of(settings: Settings) -> TrustedProxies:
    """From the settings."""
    return TrustedProxies(
        networks(settings.trusted_proxies),
        _header_name(settings.proxy_user_header),
        _header_name(settings.proxy_role_header),
        role_mapping(settings.proxy_roles),
    )


def _header_name(text: str | None) -> bytes | None:
    return text.strip().lower().encode("ascii") if text else None


def _only(headers: Headers, wanted: bytes) -> str | None:
    values = [value for name, value in headers if name == wanted]
    if len(values) != 1 or not 0 < len(values[0]) <= USER_MAX * 4:
        return None
    text = values[0].decode("utf-8", "replace").strip()
    return text if text.isprintable() and "\ufffd" not in text and len(text) <= USER_MAX else None


def _forwarded(headers: Headers) -> list[str]:
    values = [value.decode("latin-1") for name, value in headers if name == b"x-forwarded-for"]
    return [hop for hop in ",".join(values).rsplit(",", HOPS_MAX) if hop.strip()]


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """Also with a port, in brackets, and IPv4 written as IPv6."""
    host = text.strip()
    if host.startswith("["):
        host = host[1:].partition("]")[0]
    elif host.count(":") == 1:
        host = host.partition(":")[0]
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def peer_of(scope: MutableMapping[str, Any]) -> str | None:
    """The peer of the connection, regardless of proxy headers."""
    if PEER in scope:
        peer: str | None = scope[PEER]
        return peer
    client = scope.get("client")
    return client[0] if client else None


class BehindProxies:
    """ASGI: sets `client` and `scheme` of each request from trusted proxies."""

    def __init__(self, app: ASGIApp, proxies: TrustedProxies) -> None:
        self._app = app
        self._proxies = proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on."""
        if scope["type"] in ("http", "websocket"):
            peer, headers = peer_of(scope), scope["headers"]
            address = self._proxies.client_address(peer, headers)
            scheme = self._proxies.scheme(peer, headers, scope["scheme"])
            port = scope["client"][1] if scope.get("client") and address == peer else 0
            scope = {**scope, PEER: peer, "scheme": scheme, "client": (address, port) if peer else scope.get("client")}
        await self._app(scope, receive, send)
