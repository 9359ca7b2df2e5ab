"""Parses and validates the texts of some settings and secret files."""

from __future__ import annotations

import re
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from planetwire.model import Role

HEADER = re.compile(r"[A-Za-z0-9-]{1,64}")
SECRET_MIN = 24  # characters of a token or key
LOOPBACK_NAMES = frozenset({"localhost", "ip6-localhost"})


def secret_fault(secret: str) -> str | None:
    """What is wrong with a token or key, without quoting it; None: nothing."""
    if not secret.isascii() or not secret.isprintable() or " " in secret:
        return "a secret consists of printable ASCII characters without spaces"
    if len(secret) < SECRET_MIN:
        return f"a secret has at least {SECRET_MIN} characters, this one {len(secret)}"
    return None


def networks(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    """Parses comma-separated addresses and networks. Raises ValueError."""
    try:
        return tuple(ip_network(word.strip(), strict=False) for word in text.split(",") if word.strip())
    except ValueError as error:
        raise ValueError(f"addresses and networks such as 127.0.0.1, 10.0.0.0/8 are needed: {error}") from error


def role_mapping(text: str) -> dict[str, Role]:
    """Parses comma-separated `name=role`. Raises ValueError."""
    roles: dict[str, Role] = {}
    for word in filter(None, (word.strip() for word in text.split(","))):
        name, _, role = (part.strip() for part in word.partition("="))
        if not name or role not in tuple(Role):
            raise ValueError(f"{word[:40]!r} is not name=viewer, name=operator or name=admin")
        roles[name] = Role(role)
    return roles


def is_loopback(host: str) -> bool:
    """Whether a server that listens on this host is reachable from this machine only."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() in LOOPBACK_NAMES
