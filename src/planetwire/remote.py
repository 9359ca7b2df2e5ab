"""What is said of other hosts, and what is read of what they say: no secrets, no bytes of theirs, no surprises.

Whatever text a header or an address holds, these give a value of bounded size or None, and never raise.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.cookiejar import CookieJar, DefaultCookiePolicy
from urllib.parse import urlsplit

import httpx

HEADER_CHARS_MAX = 512  # of a value that is read or kept; what is longer counts as absent
DATE_CHARS_MAX = 64
DIGITS_MAX = 15
HOST_CHARS_MAX = 80
CAUSES_MAX = 10  # looked through behind an error
RETRY_AFTER_MAX_S = 86_400.0
_RETRY_AFTER = ("retry-after", "x-rate-limit-retry-after-seconds")
_WORDS: tuple[tuple[type[httpx.HTTPError], str], ...] = (
    (httpx.TimeoutException, "no answer in time"),
    (httpx.RemoteProtocolError, "the answer broke off or is no HTTP"),
    (httpx.ProxyError, "the proxy refused"),
    (httpx.NetworkError, "the connection broke"),
)


def host_of(address: str) -> str:
    """`host` or `host:port` of an address: never its user, password, path or query. For messages and logs."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "a malformed address"
    if not host:
        return "an address without a host"
    host = "".join(letter if letter.isprintable() else "?" for letter in host)[:HOST_CHARS_MAX]
    host = f"[{host}]" if ":" in host else host
    return host if port is None else f"{host}:{port}"


def in_our_words(error: httpx.HTTPError) -> str:
    """Why a request failed. The library's own texts may quote what the other side sent."""
    if isinstance(error, httpx.ConnectError):
        return why_unreachable(error)
    return next((words for kind, words in _WORDS if isinstance(error, kind)), "the request failed")


def why_unreachable(error: BaseException) -> str:
    """The system's own word for it, or that of our certificate check."""
    cause: BaseException | None = error
    for _ in range(CAUSES_MAX):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not accepted: {cause.verify_message}"
        if isinstance(cause, ssl.SSLError):
            return "no TLS connection"
        if isinstance(cause, OSError) and cause.errno is not None and cause.errno > 0:
            return os.strerror(cause.errno)
        if cause is None:
            break
        cause = cause.__cause__ or cause.__context__
    return "no connection"


def no_cookies() -> CookieJar:
    """A jar that takes none: what others set would pile up, and be sent back."""
    return CookieJar(DefaultCookiePolicy(allowed_domains=[]))


async def beginning_of(response: httpx.Response, most_bytes: int) -> bytes | None:
    """The body as sent, not unpacked; None when it is larger. What is left unread costs its connection."""
    got = bytearray()
    async for part in response.aiter_raw():
        got += part
        if len(got) > most_bytes:
            return None
    return bytes(got)


def plain_header(value: str | None) -> str | None:
    """A value of visible ASCII, as it may be kept and sent back; None for any other."""
    text = (value or "").strip(" \t")
    good = text and len(text) <= HEADER_CHARS_MAX and text.isascii() and text.isprintable()
    return text if good else None


def whole_number(value: str | None) -> int | None:
    """ASCII digits alone, at most 15 of them."""
    text = (value or "").strip(" \t")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX else None


def http_date(value: str | None) -> datetime | None:
    """A date in any of the forms of HTTP, aware UTC."""
    text = plain_header(value)
    if text is None or len(text) > DATE_CHARS_MAX:
        return None
    try:
        at = parsedate_to_datetime(text)
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds the other side asks to wait, 0 … one day; None when it does not say or says nonsense."""
    value = next((found for name in _RETRY_AFTER if (found := headers.get(name))), None)
    seconds = whole_number(value)
    if seconds is not None:
        return min(float(seconds), RETRY_AFTER_MAX_S)
    at = http_date(value)
    return None if at is None else min(max((at - now).total_seconds(), 0.0), RETRY_AFTER_MAX_S)
