"""Bodies unpacked in pieces: the same whatever the cut, never more than a piece at once, never less than the whole."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planetwire.collect.http.unpack import PIECE_BYTES, Unpacker
from planetwire.errors import FeedError

TEXT = b'[{"a": 1}, {"a": 2}]' * 50


def gzipped(body: bytes) -> bytes:
    return gzip.compress(body, mtime=0)


def raw_deflate(body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(body) + packer.flush()


def through(parts: Sequence[bytes], coding: str | None) -> bytes:
    unpacker = Unpacker(coding)
    out = b"".join(got for part in parts for got in unpacker.feed(part))
    return out + unpacker.end()


@pytest.mark.parametrize(
    ("packed", "coding"),
    [
        (TEXT, None),
        (TEXT, "identity"),
        (gzipped(TEXT), "gzip"),
        (gzipped(TEXT), " X-GZIP "),
        (gzipped(TEXT), None),
        (gzipped(TEXT[:50]) + gzipped(TEXT[50:]), "gzip"),
        (gzipped(TEXT) + b"\0" * 300, "gzip"),
        (zlib.compress(TEXT), "deflate"),
        (raw_deflate(TEXT), "deflate"),
    ],
)
@pytest.mark.parametrize("cut", [1, 2, 7, 10_000])
def test_the_body_is_the_same_however_it_comes(packed: bytes, coding: str | None, cut: int) -> None:
    assert through([packed[at : at + cut] for at in range(0, len(packed), cut)], coding) == TEXT


@pytest.mark.parametrize("body", [b"", b"x", b"\x1f"])
def test_the_shortest_bodies(body: bytes) -> None:
    assert through([body], None) == body


@pytest.mark.parametrize("packer", [gzipped, zlib.compress, raw_deflate])
def test_every_shorter_stream_is_truncated(packer: object) -> None:
    packed = packer(TEXT)  # type: ignore[operator]
    coding = "gzip" if packer is gzipped else "deflate"
    for end in range(1, len(packed)):
        with pytest.raises(FeedError) as caught:
            through([packed[:end]], coding)
        assert caught.value.code == "truncated", end


@pytest.mark.parametrize(
    ("packed", "coding"),
    [
        (gzipped(TEXT) + b"more", "gzip"),
        (gzipped(TEXT) + b"\0more", None),
        (zlib.compress(TEXT) + b"more", "deflate"),
        (TEXT, "gzip"),
        (TEXT, "br"),
        (TEXT, "gzip, gzip"),
        (TEXT, "\xb2"),
    ],
)
def test_a_body_that_is_not_what_it_says_is_refused(packed: bytes, coding: str) -> None:
    with pytest.raises(FeedError) as caught:
        through([packed], coding)
    assert caught.value.code == "bad_body"


def test_no_step_gives_more_than_a_piece() -> None:
    size, unpacker = 40 * PIECE_BYTES, Unpacker("gzip")
    sizes = [len(part) for part in unpacker.feed(gzipped(bytes(size)))]
    assert (max(sizes), sum(sizes)) == (PIECE_BYTES, size)


@given(st.lists(st.binary(max_size=40), max_size=6), st.sampled_from([None, "gzip", "deflate", "identity"]))
def test_any_bytes_are_unpacked_or_refused(parts: list[bytes], coding: str | None) -> None:
    try:
        through([b"\x1f\x8b\x08\0", *parts], coding)
        through(parts, coding)
    except FeedError as error:
        assert error.code in ("truncated", "bad_body")
