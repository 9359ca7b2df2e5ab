"""Locates the records of a JSON array in a body: broken ones are skipped, the others kept.

Invariant: every byte is read a bounded number of times, whatever is broken. A body is read in windows, and the total
cost of failed reads is bounded by its length.
"""

from __future__ import annotations

import json
import re
from typing import Any

from planetwire.collect.formats.body import sample_of
from planetwire.collect.formats.records import MAX_RECORD_BYTES, MAX_RECORDS, Broken, Records, json_value
from planetwire.errors import FeedError

WINDOW_BYTES = 4 * MAX_RECORD_BYTES
FAILED_SHARE = 2  # failed reads may read this many times the body, and …
FAILED_LEAST_BYTES = 1024 * 1024  # … this much of a small one
MAX_MEMBERS = 1_000  # besides the array of records
_SPACE = re.compile(rb"[ \t\r\n]*")
_NEXT_RECORD = re.compile(rb"\}\s*,\s*(?=\{)")
_LAST_RECORD = re.compile(rb"\}\s*(?=\][\s}]*\Z)")
_OPENING = re.compile(rb'\{\s*("[^"\\]{1,64}"\s*):')
_scan = json.JSONDecoder().raw_decode


class _Reader:
    """Reads values at offsets of a body. Bytes are decoded as Latin-1: of most values only the end is needed."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.read_bytes = 0  # in total: the cost of the body
        self.failed_bytes = 0
        self.next_alike: re.Pattern[bytes] | None = None  # matches the start of a record like the first one's
        self._text = ""
        self._start = self._end = 0

    def skip(self, at: int) -> int:
        """The offset of the next byte that is not white space."""
        match = _SPACE.match(self.body, at)
        return match.end() if match else at

    def byte(self, at: int) -> bytes:
        return self.body[at : at + 1]

    def value(self, at: int) -> tuple[Any, int]:
        """The value that begins at this offset, and the offset after it. Raises Broken."""
        self._see(at)
        try:
            value, end = _scan(self._text, at - self._start)
        except json.JSONDecodeError as error:
            raise self._failure(error.msg, error.pos) from None
        except (ValueError, RecursionError) as error:  # thousands of digits, or of levels
            raise self._failure(type(error).__name__, MAX_RECORD_BYTES) from None
        size = end - (at - self._start)
        self.read_bytes += size
        if size > MAX_RECORD_BYTES:
            self._end = 0
            raise Broken(f"a record has at most {MAX_RECORD_BYTES} bytes", "too_large")
        return value, self._start + end

    def _see(self, at: int) -> None:
        """Move the window to this offset."""
        whole = self._end == len(self.body)
        if not self._start <= at < self._end or (self._end - at <= MAX_RECORD_BYTES and not whole):
            self._start, self._end = at, min(len(self.body), at + WINDOW_BYTES)
            self._text = self.body[self._start : self._end].decode("latin-1")

    def _failure(self, why: str, read: int) -> Broken:
        self._end = 0  # start a new window: finding the line of the error has read this one from its start
        self.read_bytes += read
        self.failed_bytes += read
        return Broken(f"broken record: {why}")

    @property
    def spent(self) -> bool:
        """Whether failed reads have used up their limit."""
        return self.failed_bytes > max(FAILED_LEAST_BYTES, FAILED_SHARE * len(self.body))


def json_records(body: bytes, key: str | None = None, *, most: int = MAX_RECORDS, named: str | None = None) -> Records:
    """The records of the top-level array, of the array under `key`, or a single object. Raises FeedError `bad_body`.

    With `named`, a place has a third part: the value of that member.
    """
    out = Records(body, json_value, most)
    reader = _Reader(body)
    if key is not None:
        _in_object(reader, key, out, named)
    elif reader.byte(reader.skip(0)) == b"{":
        end = _record(reader, reader.skip(0), out, named)
        _ends(reader, end, out)
    else:
        at = _opened(reader, reader.skip(0))
        _ends(reader, _array(reader, at, out, named), out)
    out.read_bytes = reader.read_bytes
    return out


def _opened(reader: _Reader, at: int) -> int:
    if reader.byte(at) != b"[":
        raise FeedError(f"expected a JSON list of records, got {sample_of(reader.body)!r}", code="bad_body")
    return at + 1


def _ends(reader: _Reader, at: int | None, out: Records) -> None:
    """Check that only white space follows. None: the end was not found, which is already recorded."""
    if at is not None and (at := reader.skip(at)) < len(reader.body):
        out.refuse_trailing(at)


def _array(reader: _Reader, at: int, out: Records, named: str | None) -> int | None:
    """The offset after the closing bracket; None, and recorded, if there is none."""
    at = reader.skip(at)
    if opening := _OPENING.match(reader.body, at):
        reader.next_alike = re.compile(rb"\}\s*,\s*(?=\{\s*" + re.escape(opening[1]) + rb":)")
    while at < len(reader.body) and reader.byte(at) != b"]":
        end = _record(reader, at, out, named)
        if end is None:
            return None
        at = reader.skip(end)
        if reader.byte(at) == b",":
            at = reader.skip(at + 1)
    if at < len(reader.body):
        return at + 1
    out.refuse_cut_off()
    return None


def _record(reader: _Reader, at: int, out: Records, named: str | None) -> int | None:
    """Add the record, or a reject; returns the offset after it. None if nothing can be read after it."""
    try:
        value, end = reader.value(at)
    except Broken as broken:
        end = _resynchronised(reader, at)
        out.refuse_place(broken.code, broken.reason, at, end)
        if end < len(reader.body) and not reader.spent:
            return end
        out.complete = False
        if end < len(reader.body):
            out.refuse_place("broken", "too much is broken: the rest was not read", end, len(reader.body))
        return None
    out.add((at, end) if named is None else (at, end, value.get(named) if isinstance(value, dict) else None))
    return end


def _resynchronised(reader: _Reader, at: int) -> int:
    """Where to continue after a broken record: at one that opens as the first did, at any `,{`, at the end of the
    array, or at the end of the body. A pattern that was not found once is not searched again.
    """
    alike = reader.next_alike and reader.next_alike.search(reader.body, at)
    if alike is None:
        reader.next_alike = None
    found = alike or _NEXT_RECORD.search(reader.body, at) or _LAST_RECORD.search(reader.body, at)
    return len(reader.body) if found is None else found.start() + 1


def _in_object(reader: _Reader, key: str, out: Records, named: str | None) -> None:
    """The array under `key` of the top-level object, and its other members: numbers and objects of numbers."""
    at = reader.skip(0)
    if reader.byte(at) != b"{":
        raise FeedError(f"expected a JSON object, got {sample_of(reader.body)!r}", code="bad_body")
    try:
        at, found = _members(reader, reader.skip(at + 1), key, out)
    except Broken:
        at, found = _anywhere(reader, key, out)
    if not found:
        raise FeedError(f"no list of records under {key!r}: {sample_of(reader.body)!r}", code="bad_body")
    after = _array(reader, _opened(reader, at), out, named)
    if after is not None:
        _rest_of_object(reader, after, key, out)


def _rest_of_object(reader: _Reader, at: int, key: str, out: Records) -> None:
    at = reader.skip(at)
    try:
        again = False
        if reader.byte(at) == b",":
            at, again = _members(reader, reader.skip(at + 1), key, out)
    except Broken:
        again = True
    if again or (at < len(reader.body) and reader.byte(at) != b"}"):
        out.refuse_trailing(at)
    elif at >= len(reader.body):
        out.refuse_cut_off()
    else:
        _ends(reader, at + 1, out)


def _members(reader: _Reader, at: int, key: str, out: Records) -> tuple[int, bool]:
    """Members up to the value of `key`, or up to the end of the object. Raises Broken."""
    for _ in range(MAX_MEMBERS):
        if reader.byte(at) != b'"':
            return at, False
        name, at = reader.value(at)
        at = reader.skip(at)
        if reader.byte(at) != b":":
            raise Broken("a member without a value")
        at = reader.skip(at + 1)
        if name == key:
            return at, True
        out.around[str(name)], at = reader.value(at)
        at = reader.skip(at)
        if reader.byte(at) == b",":
            at = reader.skip(at + 1)
    raise Broken("too many members")


def _anywhere(reader: _Reader, key: str, out: Records) -> tuple[int, bool]:
    """Search the array's name anywhere, if the members before it cannot be read."""
    found = re.search(rb'"%s"\s*:\s*(?=\[)' % re.escape(key.encode()), reader.body)
    if found is None:
        return 0, False
    out.complete = False
    out.refuse_place("broken", "what is before the records cannot be read", 0, found.start())
    return found.end(), True
