"""Safe error texts about other hosts, and safe parsing of their headers: no secrets and none of their bytes.

Whatever text a header or an address holds, the result is of bounded size or None; nothing raises.
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

HEADER_CHARS_MAX = 512  # of a header value; a longer one counts as absent
DATE_CHARS_MAX = 64
DIGITS_MAX = 15
HOST_CHARS_MAX = 80
CAUSES_MAX = 10  # followed in the chain of an error
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


def describe_error(error: httpx.HTTPError) -> str:
    """Why a request failed, in our own words: the library's texts may quote what the other side sent."""
    if isinstance(error, httpx.ConnectError):
        return why_unreachable(error)
    return next((words for kind, words in _WORDS if isinstance(error, kind)), "the request failed")


def why_unreachable(error: BaseException) -> str:
    """The operating system's error text, or that of the certificate check."""
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
    """A jar that stores nothing: cookies of others would accumulate, and be sent back."""
    return CookieJar(DefaultCookiePolicy(allowed_domains=[]))


async def read_bounded(response: httpx.Response, most_bytes: int) -> bytes | None:
    """The body as sent, not decompressed; None if it is larger. An unread rest costs the connection."""
    got = bytearray()
    async for part in response.aiter_raw():
        got += part
        if len(got) > most_bytes:
            return None
    return bytes(got)


def plain_header(value: str | None) -> str | None:
    """A header value that may be stored and sent back, visible ASCII; None for any other."""
    text = (value or "").strip(" \t")
    good = text and len(text) <= HEADER_CHARS_MAX and text.isascii() and text.isprintable()
    return text if good else None


def whole_number(value: str | None) -> int | None:
    """At most 15 ASCII digits; None for any other value."""
    text = (value or "").strip(" \t")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX else None


def http_date(value: str | None) -> datetime | None:
    """A date in any of HTTP's formats, as aware UTC; None for any other value."""
    text = plain_header(value)
    if text is None or len(text) > DATE_CHARS_MAX:
        return None
    try:
        at = parsedate_to_datetime(text)
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds that the other side asks to wait, 0 … one day; None if absent or invalid."""
    value = next((found for name in _RETRY_AFTER if (found := headers.get(name))), None)
    seconds = whole_number(value)
    if seconds is not None:
        return min(float(seconds), RETRY_AFTER_MAX_S)
    at = http_date(value)
    return None if at is None else min(max((at - now).total_seconds(), 0.0), RETRY_AFTER_MAX_S)
