"""Addresses as they may be shown: without the passwords and keys that stand in them."""

from __future__ import annotations

import re
from functools import partial

HIDDEN = "***"
VALUE_LENGTH = 20  # in the query of a web address what is longer is taken for a key, whatever its name

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
    if "@" not in place and ":" in place and "@" in rest:  # a password that should have been quoted: up to the last @
        more, _, rest = rest.rpartition("@")
        place = f"{place}{more}@{re.split('[/?#]', rest)[0]}"
        rest = rest[len(re.split("[/?#]", rest)[0]) :]
    web = scheme.lower() in ("http", "https", "ws", "wss")
    return f"{scheme}://{_place(place, web=web)}{_PART.sub(partial(_part, web=web), rest)}"


def _place(place: str, *, web: bool) -> str:
    """A user alone is a name of a database, and a key of the web."""
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
