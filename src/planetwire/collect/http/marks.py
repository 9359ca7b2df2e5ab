"""How much a body may grow when it is read: `[{},{},…]` is small as bytes and huge as objects.

Every format a feed speaks separates its values by one of a few letters, so counting those bounds what a reader makes.
"""

from __future__ import annotations

from planetwire.errors import FeedError

MARK_BYTES = 32  # a body as large as it may be has at most one mark in so many: 29,000 satellites, 13,000 quakes
MARKS_LEAST = 1_024
_JSON = (b",", b"[", b"{")
_LINES = (b"\n", b"\r", b"\x0b", b"\x0c", b"\x1c", b"\x1d", b"\x1e", b"\xc2\x85", b"\xe2\x80\xa8", b"\xe2\x80\xa9")
_TAGS = (b"<",)


def marks_max(limit_bytes: int) -> int:
    """How many values, lines or tags a body of at most so many bytes may have."""
    return limit_bytes // MARK_BYTES + MARKS_LEAST


def check_marks(body: bytes, limit_bytes: int) -> None:
    """Raises FeedError `bad_body` for a body of more values, lines or tags than any real one has."""
    most = marks_max(limit_bytes)
    if max(sum(map(body.count, marks)) for marks in (_JSON, _LINES, _TAGS)) > most:
        raise FeedError(f"the body holds more than {most:,} values", code="bad_body")
