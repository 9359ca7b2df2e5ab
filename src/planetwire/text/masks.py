"""Removes passwords and keys from addresses, so that they may be shown."""

from __future__ import annotations

import re
from functools import partial

HIDDEN = "***"
VALUE_LENGTH = 20  # a longer value in a URL's query is taken for a key, whatever its name

_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)(.*)", re.DOTALL)
_PART = re.compile(r"(?<=[?&;#])([^=&;#]*)=([^&;#]*)")
_PASSWORD = re.compile(r"pass|pwd|secret", re.IGNORECASE)
_KEY = re.compile(r"pass|pwd|secret|token|key|sign|sig$|auth|cred|appid|api|code|hash|user|login", re.IGNORECASE)
_WORDS = re.compile(r"(?i)\b(\w*password)\s*=\s*('[^']*'|\S+)")


def masked(text: str) -> str:
    """The text; of an address without its password and the keys of its query."""
    found = _ADDRESS.fullmatch(text)
    if found is None:
        return _WORDS.sub(rf"\1={HIDDEN}", text)
    scheme, place, rest = found.groups()
    if "@" not in place and ":" in place and "@" in rest:  # an unquoted @ in the password: it ends at the last @
        more, _, rest = rest.rpartition("@")
        place = f"{place}{more}@{re.split('[/?#]', rest)[0]}"
        rest = rest[len(re.split("[/?#]", rest)[0]) :]
    web = scheme.lower() in ("http", "https", "ws", "wss")
    return f"{scheme}://{_place(place, web=web)}{_PART.sub(partial(_part, web=web), rest)}"


def _place(place: str, *, web: bool) -> str:
    """A user without a password is a name in a database address, but may be a key in a web address."""
    user, at, host = place.rpartition("@")
    if not at:
        return place
    name, colon, _ = user.partition(":")
    if colon:
        return f"{name}:{HIDDEN}@{host}"
    return f"{HIDDEN if web else user}@{host}"


def _part(found: re.Match[str], *, web: bool) -> str:
    name, value = found.groups()
    secret = _KEY.search(name) or len(value) >= VALUE_LENGTH if web else _PASSWORD.search(name)
    return f"{name}={HIDDEN if secret and value else value}"
