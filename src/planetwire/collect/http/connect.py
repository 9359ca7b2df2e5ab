"""Connections of one fetch, each to an address that was checked.

Invariant: a name is resolved once per connection, and the connection goes to the resolved and allowed address. So DNS
rebinding has no effect.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.request import getproxies, proxy_bypass

import httpcore

from planetwire.collect.http.addresses import ADDRESSES_MAX, Ip, Resolver, ip_of, is_public
from planetwire.errors import FeedError, SetupError
from planetwire.remote import host_of

NO_SUCH_HOST = "no such host"
AFTER_S = 0.2  # for a provider to close the connection, as requested, or to send more
ATTEMPT_S = 10.0  # per address of a name


class RecordingStream(httpcore.AsyncNetworkStream):
    """A connection that keeps its last read, to detect data after the end of a response."""

    def __init__(self, inner: httpcore.AsyncNetworkStream) -> None:
        self._inner = inner
        self._last = b""

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """See httpcore."""
        self._last = await self._inner.read(max_bytes, timeout)
        return self._last

    async def has_more(self, end: bytes) -> bool:
        """Whether data follows, now or in a moment, the response that ends with these bytes."""
        if not (self._last.endswith(end) or end.endswith(self._last)):
            return True
        try:
            return bool(await self._inner.read(1, AFTER_S))
        except (httpcore.NetworkError, httpcore.TimeoutException):
            return False

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """See httpcore."""
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        """See httpcore."""
        await self._inner.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        """See httpcore."""
        return RecordingStream(await self._inner.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        """See httpcore."""
        return self._inner.get_extra_info(info)


class Gate(httpcore.AsyncNetworkBackend):
    """Connects only to allowed addresses: public ones, and of others only the configured one.

    That is where the first connection went; a name that later resolves elsewhere is refused. The user of the gate sets
    `redirected` when it follows a redirect, `answered` when it gets a response.
    """

    def __init__(self, resolver: Resolver, *, private_ok: bool) -> None:
        self.redirected = self.answered = False
        self._resolver = resolver
        self._private_ok = private_ok
        self._first: tuple[Ip, int] | None = None
        self._plain = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first of the name's allowed addresses that answers. Raises FeedError if none is allowed."""
        problem: Exception = httpcore.ConnectError(NO_SUCH_HOST)
        for address in self._allowed(await self._addresses(host, port), port):
            try:
                stream = await self._plain.connect_tcp(
                    str(address), port, min(timeout or ATTEMPT_S, ATTEMPT_S), local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                problem = error
            else:
                self._first = self._first or (address, port)
                return RecordingStream(stream)
        raise problem

    async def _addresses(self, host: str, port: int) -> Sequence[Ip]:
        literal = ip_of(host)
        if literal is not None:
            return [literal]
        try:
            found = await self._resolver(host, port)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(NO_SUCH_HOST) from error
        return [address for text in found if (address := ip_of(text)) is not None]

    def _allowed(self, found: Sequence[Ip], port: int) -> list[Ip]:
        allowed = [address for address in found if self._may(address, port)][:ADDRESSES_MAX]
        if found and not allowed:
            raise refused_address(redirected=self.redirected)
        return allowed

    def _may(self, address: Ip, port: int) -> bool:
        if is_public(address):
            return True
        if self._first is not None:
            return (address, port) == self._first
        return self._private_ok and not self.redirected

    async def connect_unix_socket(self, *_: Any, **__: Any) -> httpcore.AsyncNetworkStream:
        """Always raises."""
        raise refused_address(redirected=True)

    async def sleep(self, seconds: float) -> None:
        """As in httpcore's own backend."""
        await self._plain.sleep(seconds)


def refused_address(*, redirected: bool) -> FeedError:
    """The error for a forbidden address."""
    if redirected:
        return FeedError("the provider redirects into a private network; not followed", code="redirect_refused")
    return FeedError("the provider's name leads into a private network", code="redirect_refused")


class Connections:
    """Connection pools of one fetch, by proxy; none is reused by the next fetch."""

    def __init__(self, gate: Gate, tls: ssl.SSLContext, proxies: Proxies) -> None:
        self._gate, self._tls, self._proxies = gate, tls, proxies
        self._pools: dict[str | None, httpcore.AsyncConnectionPool] = {}

    def to(self, scheme: str, host: str) -> httpcore.AsyncConnectionPool:
        """The pool for this host. Raises FeedError for an address that must not be requested through the proxy."""
        proxy = self._proxies.of(scheme, host)
        address = ip_of(host)
        if proxy is not None and address is not None and not is_public(address):
            raise refused_address(redirected=True)
        if proxy not in self._pools:
            self._pools[proxy] = self._made(proxy)
        return self._pools[proxy]

    def _made(self, proxy: str | None) -> httpcore.AsyncConnectionPool:
        if proxy is None:
            return httpcore.AsyncConnectionPool(ssl_context=self._tls, network_backend=self._gate)
        return httpcore.AsyncConnectionPool(ssl_context=self._tls, proxy=_proxy(proxy))

    async def aclose(self) -> None:
        """Close them all."""
        for pool in self._pools.values():
            await pool.aclose()


class Proxies:
    """The proxies of HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY. Loopback is never reached through a proxy.

    Raises SetupError for a proxy that is not an HTTP proxy.
    """

    def __init__(self) -> None:
        self._found = getproxies()
        for scheme in ("http", "https", "all"):
            address = self._found.get(scheme)
            if address and not address.startswith(("http://", "https://")):
                raise SetupError(f"{scheme.upper()}_PROXY: only http:// and https:// proxies, not {host_of(address)}")

    def of(self, scheme: str, host: str) -> str | None:
        """The proxy for this host; None: connect directly."""
        address = ip_of(host)
        if host == "localhost" or (address is not None and address.is_loopback):
            return None
        if proxy_bypass(host):
            return None
        return self._found.get(scheme) or self._found.get("all") or None


def _proxy(address: str) -> httpcore.Proxy:
    url = httpcore.URL(address)
    user, _, password = address.partition("://")[2].rpartition("@")[0].partition(":")
    return httpcore.Proxy(url, auth=(user, password) if user else None)
