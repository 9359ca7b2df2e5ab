"""The host names of this installation, as a defence against DNS rebinding.

Why: if evil.example is re-pointed to this machine's address, its page in a browser becomes same-origin with us. That
attack needs a name, so every IP literal is allowed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import ip_address

from planetwire.errors import SetupError

LOOPBACK_NAME = "localhost"
ANY = "*"
NAME = re.compile(r"(\*\.)?[a-z0-9_][a-z0-9_.-]{0,252}", re.ASCII)
HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?", re.ASCII | re.IGNORECASE)
HOST_MAX = 263  # a name of DNS and a port
SEEN_MAX = 256  # cached allowed names: every request repeats them


class AllowedHosts:
    """Loopback names and IP literals always; other names as listed: `example.org`, `*.example.org`, `*`."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        """Raises SetupError for an invalid name."""
        listed = [_checked(name) for name in names]
        self._all = ANY in listed
        self._names = frozenset(listed)
        self._seen: set[bytes] = set()

    def takes(self, header: bytes) -> bool:
        """`allows` for a header's bytes, cached."""
        if header in self._seen:
            return True
        allowed = self.allows(header.decode("latin-1"))
        if allowed and len(self._seen) < SEEN_MAX:
            self._seen.add(header)
        return allowed

    def allows(self, host: str) -> bool:
        """Whether a Host header, with a port or without, names us."""
        if len(host) > HOST_MAX or HOST.fullmatch(host) is None:
            return False
        if self._all:
            return True
        name = _without_port(host).rstrip(".").lower()
        if name in self._names or name == LOOPBACK_NAME or name.endswith(f".{LOOPBACK_NAME}"):
            return True
        return _is_address(name) or any(f"*.{above}" in self._names for above in _above(name))


def listed(setting: str) -> list[str]:
    """The names of a comma-separated setting."""
    return [name.strip() for name in setting.split(",") if name.strip()]


def _checked(name: str) -> str:
    folded = name.rstrip(".").lower()
    if folded != ANY and not _is_address(folded) and NAME.fullmatch(folded) is None:
        raise SetupError(
            f"PLANETWIRE_ALLOWED_HOSTS: {name!r} is no host's name; write example.org, without https:// and port"
        )
    return folded


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _above(name: str) -> Iterable[str]:
    parts = name.split(".")
    return (".".join(parts[number:]) for number in range(1, len(parts)))
