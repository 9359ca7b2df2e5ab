"""Bounds the memory of a parsed body: `[{},{},…]` is small as bytes and huge as objects.

Every format separates its values by one of a few characters, so counting those bounds the number of objects.
"""

from __future__ import annotations

from planetwire.errors import FeedError

MARK_BYTES = 32  # a body of maximum size has at most one mark per so many bytes: 29,000 satellites, 13,000 quakes
MARKS_LEAST = 1_024
_JSON = (b",", b"[", b"{")
_LINES = (b"\n", b"\r", b"\x0b", b"\x0c", b"\x1c", b"\x1d", b"\x1e", b"\xc2\x85", b"\xe2\x80\xa8", b"\xe2\x80\xa9")
_TAGS = (b"<",)
_FIRST_BYTES = bytes({mark[0] for marks in (_JSON, _LINES, _TAGS) for mark in marks})


def marks_max(limit_bytes: int) -> int:
    """The number of values, lines or tags allowed in a body with this size limit."""
    return limit_bytes // MARK_BYTES + MARKS_LEAST


def check_marks(body: bytes, limit_bytes: int) -> None:
    """Raises FeedError `bad_body` for a body with more values, lines or tags than any real one."""
    most = marks_max(limit_bytes)
    if len(body) - len(body.translate(None, _FIRST_BYTES)) <= most:
        return  # marks of all kinds together: one pass over the body, and most are within
    if max(sum(map(body.count, marks)) for marks in (_JSON, _LINES, _TAGS)) > most:
        raise FeedError(f"the body holds more than {most:,} values", code="bad_body")
