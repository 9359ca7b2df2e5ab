"""Checks the bytes of an answer, and unpacks gzip within a limit.

A body is checked before it is parsed, so that an error page or half a file never reaches the facts.
"""

from __future__ import annotations

import zlib

from planetwire.errors import FeedError

GZIP_MAGIC = b"\x1f\x8b"
BOM = b"\xef\xbb\xbf"
SAMPLE_CHARS = 80
_HTML_STARTS = (b"<!doctype html", b"<html", b"<head", b"<body")


def sample_of(body: bytes) -> str:
    """The first 80 characters on one line, for error messages; unprintable ones as dots."""
    text = " ".join(body[: SAMPLE_CHARS * 4].decode("utf-8", "replace").split())[:SAMPLE_CHARS]
    return "".join(letter if letter.isprintable() else "·" for letter in text)


def without_bom(body: bytes) -> bytes:
    """The body without a leading UTF-8 byte order mark."""
    return body.removeprefix(BOM)


def is_html(body: bytes) -> bool:
    """Whether the body starts like an HTML page."""
    return body[:256].lstrip().lower().startswith(_HTML_STARTS)


def gunzip(raw: bytes, limit_bytes: int) -> bytes:
    """All members of a gzip stream, at most `limit_bytes` of them."""
    parts: list[bytes] = []
    size = 0
    rest = raw
    while rest.startswith(GZIP_MAGIC):
        member = zlib.decompressobj(wbits=31)
        try:
            part = member.decompress(rest, limit_bytes - size + 1)
        except zlib.error as error:
            raise FeedError(f"broken gzip: {error}", code="truncated") from error
        size += len(part)
        if size > limit_bytes:
            raise FeedError(f"the unpacked body is larger than {limit_bytes} bytes", code="bad_body")
        if not member.eof:
            raise FeedError("the gzip stream ends early", code="truncated")
        parts.append(part)
        rest = member.unused_data
    return b"".join(parts)


def check_looks(body: bytes, *, first_bytes: bytes, status: int, content_type: str | None) -> None:
    """Raises FeedError `bad_body` for an HTML page, an empty body, or a wrong first byte."""
    start = body.lstrip()[:1]
    wrong = is_html(body) or (content_type or "").lower().startswith("text/html")
    if wrong or not start or (first_bytes and start not in first_bytes):
        kind = "HTML" if wrong else ("nothing" if not start else "something else")
        raise FeedError(
            f"expected data, got {kind} (status {status}, {content_type or 'no content type'}): {sample_of(body)!r}",
            code="bad_body",
            sample=sample_of(body),
        )
