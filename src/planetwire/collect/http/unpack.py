"""Decompresses a body piece by piece, so that a decompression bomb is never in memory as a whole.

Invariant: no step yields more than `PIECE_BYTES`, whatever its input.
"""

from __future__ import annotations

import zlib
from collections.abc import Generator, Iterator

from planetwire.collect.formats.body import GZIP_MAGIC
from planetwire.errors import FeedError

PIECE_BYTES = 256 * 1024
ASKED_FOR = "gzip"  # the Accept-Encoding of our requests; deflate is understood too
_GZIP, _ZLIB, _RAW = 31, 15, -15


class Unpacker:
    """One body: `feed` it in order, then `end` it. Gzip is detected by the header or by its first bytes.

    Raises FeedError: `truncated` for a stream that is broken or ends early, `bad_body` for one that is not in the
    declared coding or continues after its end.
    """

    def __init__(self, coding: str | None) -> None:
        self._coding = (coding or "identity").strip().lower()
        if self._coding not in ("identity", "gzip", "x-gzip", "deflate"):
            raise FeedError("the answer has a content encoding that was not asked for", code="bad_body")
        self._start = b""
        self._detected = False  # whether the coding was detected from the first bytes
        self._wbits: int | None = None  # None: not compressed
        self._member: zlib._Decompress | None = None
        self._members = 0

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Decompress the next piece of the body."""
        if not self._detected:
            self._start += piece
            if len(self._start) < len(GZIP_MAGIC):
                return
            piece, self._start = self._start, b""
            self._detect(piece)
        if self._wbits is None:
            yield piece
        else:
            yield from self._unpack(piece)

    def end(self) -> bytes:
        """The rest, once everything was fed."""
        if not self._detected and self._start and self._coding != "identity":
            raise FeedError("the packed stream ends early", code="truncated")
        if self._member is not None or (self._detected and self._wbits is not None and self._start):
            raise FeedError("the packed stream ends early", code="truncated")
        return self._start

    def _detect(self, start: bytes) -> None:
        self._detected = True
        if start.startswith(GZIP_MAGIC):
            self._wbits = _GZIP
        elif self._coding == "deflate":
            self._wbits = _ZLIB if start[0] & 15 == 8 and int.from_bytes(start[:2], "big") % 31 == 0 else _RAW
        elif self._coding != "identity":
            raise FeedError("the answer says gzip and is not", code="bad_body")

    def _unpack(self, rest: bytes) -> Iterator[bytes]:
        while rest:
            if self._member is None:
                rest = self._next_member(self._start + rest)
            else:
                rest = yield from self._through(self._member, rest)

    def _through(self, member: zlib._Decompress, packed: bytes) -> Generator[bytes, None, bytes]:
        """Decompress with one member; returns the bytes after its end."""
        while True:
            try:
                part = member.decompress(packed, PIECE_BYTES)
            except zlib.error as error:
                raise FeedError("the packed stream is broken", code="truncated") from error
            if part:
                yield part
            if member.eof:
                self._member = None
                return member.unused_data
            packed = member.unconsumed_tail
            if not packed and len(part) < PIECE_BYTES:
                return b""

    def _next_member(self, rest: bytes) -> bytes:
        """Begin the stream's first or next member; zeros after the last are padding."""
        self._start = b""
        if self._members:
            rest = rest.lstrip(b"\0")
        if self._members and len(rest) < len(GZIP_MAGIC):
            self._start = rest
            return b""
        if self._members and (self._wbits != _GZIP or not rest.startswith(GZIP_MAGIC)):
            raise FeedError("the packed stream goes on after its end", code="bad_body")
        self._member = zlib.decompressobj(wbits=self._wbits or _GZIP)
        self._members += 1
        return rest
