"""The operator's key for a provider: where a request carries it, and how it is masked everywhere else."""

from __future__ import annotations

import base64
import html
import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlencode, urlsplit, urlunsplit

SECRET_CHARS_MIN = 8  # a shorter one may be a common word; answers are not searched for it
HIDDEN = "*"
_SECRET_NAME = re.compile(r"key|token|secret|pass|auth|sig|credential", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Credential:
    """How a feed takes its token: as the header, or the query parameter, of this name. `prefix`: `Bearer `, if any."""

    name: str
    place: Literal["header", "query"] = "header"
    prefix: str = ""


BEARER = Credential("Authorization", prefix="Bearer ")


@dataclass(frozen=True, slots=True)
class Access:
    """The operator's settings of a request: the token, and whether the address is the operator's own.

    Only that may be a private address; a declared one is public.
    """

    token: str | None = None
    credential: Credential = BEARER
    own_address: bool = True


PLAIN = Access()


def without_user(url: str) -> tuple[str, str | None]:
    """The address without `user:password@`, and the equivalent Authorization header."""
    parts = urlsplit(url)
    if parts.username is None and parts.password is None:
        return url, None
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    basic = base64.b64encode(f"{user}:{password}".encode()).decode()
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])), f"Basic {basic}"


def with_parameter(url: str, name: str, value: str) -> str:
    """The address with this query parameter, exactly once."""
    parts = urlsplit(url)
    others = "&".join(one for one in parts.query.split("&") if one and unquote(one.partition("=")[0]) != name)
    query = "&".join(part for part in (others, urlencode({name: value}, quote_via=quote)) if part)
    return urlunsplit(parts._replace(query=query))


def spellings(url: str, token: str | None) -> tuple[str, ...]:
    """Every form in which an answer may repeat our secrets: token, password, keys in the address's query."""
    parts = urlsplit(url)
    values = [value for name, value in parse_qsl(parts.query) if _SECRET_NAME.search(name)]
    secrets = {*values, token or "", unquote(parts.password or ""), (without_user(url)[1] or "").removeprefix("Basic ")}
    forms: set[str] = set()
    for secret in secrets:
        if len(secret) >= SECRET_CHARS_MIN:
            forms |= {
                secret,
                quote(secret, safe=""),
                quote_plus(secret),
                html.escape(secret),
                secret.replace("/", "\\/"),
            }
    return tuple(sorted(forms, key=len, reverse=True))


def masked(body: bytes, secrets: tuple[str, ...]) -> bytes:
    """The bytes with every secret masked, at the same length, so that a body otherwise stays intact."""
    for secret in secrets:
        encoded = secret.encode()
        if encoded in body:
            body = body.replace(encoded, HIDDEN.encode() * len(encoded))
    return body


def contains_secret(text: str | None, secrets: tuple[str, ...]) -> bool:
    """Whether a text contains one of the secrets."""
    return text is not None and any(secret in text for secret in secrets)
