"""The non-blank lines of a body, by their places, so that a body of any length is in memory once."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence

from planetwire.collect.formats.records import MAX_RECORD_BYTES, Broken
from planetwire.errors import FeedError

MAX_LINES = 2_500_000  # MAX_RECORDS in the format with the most lines per record
_LINE = re.compile(rb"[^\r\n]+")


def lines_of(body: bytes) -> Iterator[tuple[int, int]]:
    """Start and end offset of each line, without the line end. Raises FeedError beyond `MAX_LINES`."""
    for count, match in enumerate(_LINE.finditer(body)):
        check_lines(count)
        start, end = match.span()
        if not body[start : min(end, start + MAX_RECORD_BYTES)].isspace():
            yield start, end


def check_lines(count: int) -> None:
    """Raises FeedError `bad_body` beyond `MAX_LINES`."""
    if count > MAX_LINES:
        raise FeedError(f"more than {MAX_LINES} lines in one body", code="bad_body")


def text_of(raw: bytes) -> str:
    """A line's text. Raises Broken for one longer than a record may be."""
    if len(raw) > MAX_RECORD_BYTES:
        raise Broken(f"a line has at most {MAX_RECORD_BYTES} bytes", "too_large")
    return raw.decode("utf-8", "replace")


def csv_row(raw: bytes) -> Sequence[str]:
    """The cells of one line: an unclosed quote affects this line only. Raises Broken."""
    try:
        return next(csv.reader([text_of(raw)]), [])
    except csv.Error as error:
        raise Broken(f"no row: {error}") from None
