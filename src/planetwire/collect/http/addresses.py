"""Which addresses of the network a feed may lead us to, and where a name leads."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import TypeAlias

Ip: TypeAlias = IPv4Address | IPv6Address
Resolver: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]

ADDRESSES_MAX = 6  # of one name; more are not tried
_PUBLIC_V6 = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")


async def resolve(host: str, port: int) -> list[str]:
    """The addresses of a name, as the machine's own resolver gives them. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def ip_of(text: str) -> Ip | None:
    """The address that a text is; None for a name. A zone (`%eth0`) stays outside."""
    try:
        return ip_address(text.strip("[]").partition("%")[0])
    except ValueError:
        return None


def is_public(address: Ip) -> bool:
    """Whether it lies in the open network: not private, link-local, loopback, multicast, reserved or unspecified.

    An IPv6 address that stands for an IPv4 one (mapped, NAT64, 6to4) is what that one is.
    """
    if isinstance(address, IPv6Address):
        inner = _inner(address)
        if inner is not None:
            return is_public(inner)
        return address in _PUBLIC_V6 and address.is_global and address.teredo is None
    return address.is_global and not address.is_multicast


def _inner(address: IPv6Address) -> IPv4Address | None:
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour
