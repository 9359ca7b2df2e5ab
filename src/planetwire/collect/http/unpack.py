"""A body unpacked piece by piece, so that what is small as sent and huge unpacked never lies in memory as a whole.

Invariant: no step gives more than `PIECE_BYTES`, whatever it is fed.
"""

from __future__ import annotations

import zlib
from collections.abc import Generator, Iterator

from planetwire.collect.formats.body import GZIP_MAGIC
from planetwire.errors import FeedError

PIECE_BYTES = 256 * 1024
ASKED_FOR = "gzip"  # the Accept-Encoding of our requests; deflate is understood besides
_GZIP, _ZLIB, _RAW = 31, 15, -15


class Unpacker:
    """One body: `feed` it in order, then `end` it. Gzip is known by the header or by its first bytes.

    Raises FeedError: `truncated` for a stream that is broken or ends early, `bad_body` for one that is not what it says
    or goes on after its end.
    """

    def __init__(self, coding: str | None) -> None:
        self._coding = (coding or "identity").strip().lower()
        if self._coding not in ("identity", "gzip", "x-gzip", "deflate"):
            raise FeedError("the answer has a content encoding that was not asked for", code="bad_body")
        self._start = b""
        self._told = False  # whether the first bytes said what the body is
        self._wbits: int | None = None  # None: not packed
        self._member: zlib._Decompress | None = None
        self._members = 0

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """What this much of the body unpacks to."""
        if not self._told:
            self._start += piece
            if len(self._start) < len(GZIP_MAGIC):
                return
            piece, self._start = self._start, b""
            self._tell(piece)
        if self._wbits is None:
            yield piece
        else:
            yield from self._unpack(piece)

    def end(self) -> bytes:
        """The rest, once all was fed."""
        if not self._told and self._start and self._coding != "identity":
            raise FeedError("the packed stream ends early", code="truncated")
        if self._member is not None or (self._told and self._wbits is not None and self._start):
            raise FeedError("the packed stream ends early", code="truncated")
        return self._start

    def _tell(self, start: bytes) -> None:
        self._told = True
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
        """What one member makes of this; the bytes after its end."""
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
