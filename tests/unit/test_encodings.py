"""Content codings: what an Accept-Encoding header gets, and bytes that every reader can open."""

from __future__ import annotations

import gzip

import httpx
import pytest
import zstandard
from fastapi import FastAPI, Request

from planetwire.errors import NotAcceptable
from planetwire.web.snapshots.encodings import ENCODINGS, compress, negotiate
from planetwire.web.snapshots.snapshot_http import asked_encoding

BROWSER = "gzip, deflate, br, zstd"
WINDOW_MAX_BYTES = 8 << 20


@pytest.mark.parametrize(
    ("header", "coding"),
    [
        (BROWSER, "zstd"),
        ("gzip, deflate, br", "gzip"),
        ("GZIP", "gzip"),
        ("x-gzip", "gzip"),
        ("br, GZIP;q=0.5", "gzip"),
        ("gzip;q=1.0, zstd;q=0.9", "gzip"),
        ("gzip;q=0.5,zstd ; q=0.501", "zstd"),
        ("gzip;q=0.001", "gzip"),
        ("identity, gzip;q=0.5", "identity"),
        ("identity;q=0.5, gzip;q=0.1", "identity"),
        ("identity;q=0.5, gzip;q=0.5", "gzip"),
        ("*", "gzip"),
        ("*;q=0.1", "gzip"),
        ("*, gzip;q=0", "zstd"),
        ("*, gzip;q=0, zstd;q=0.000", "identity"),
        ("*;q=0.5, identity", "identity"),
        ("*;q=0, zstd", "zstd"),
        ("identity;q=0, gzip", "gzip"),
        ("identity;q=0, *", "gzip"),
        ("gzip;q=0", "identity"),
        ("gzip;q=0, zstd;q=0", "identity"),
        ("br", "identity"),
        ("", "identity"),
        (",, ,", "identity"),
        ("gzip;q=2, zstd;q=x, gzip;q=", "identity"),
        ("gzip;level=3", "identity"),
        ("gzip;q=0.12345", "identity"),
        ("identity;q=nothing", "identity"),
    ],
)
def test_the_coding_with_the_largest_weight_is_sent(header: str, coding: str) -> None:
    """RFC 9110, 12.5.3; what cannot be read is as if it were absent."""
    assert negotiate(header) == coding


@pytest.mark.parametrize("header", ["identity;q=0", "*;q=0", "br, identity;q=0", "*;q=0, gzip;q=0.0", "br, *;q=0.000"])
def test_who_takes_nothing_that_there_is_gets_406(header: str) -> None:
    """RFC 9110, 12.5.3: plain bytes are not sent to who excludes them."""
    with pytest.raises(NotAcceptable) as refused:
        negotiate(header)
    assert (refused.value.status, refused.value.code) == (406, "no_acceptable_encoding")


async def test_a_header_in_several_lines_is_one_list() -> None:
    """RFC 9110, 5.3."""
    app = FastAPI()

    @app.get("/")
    async def chosen(request: Request) -> str:
        return asked_encoding(request)

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        lines = [("Accept-Encoding", "gzip;q=0.5"), ("Accept-Encoding", "zstd")]
        assert (await client.get("/", headers=lines)).json() == "zstd"


def test_what_is_compressed_opens_to_the_same_bytes_and_is_the_same_each_time() -> None:
    body = b'{"features":[' + b",".join(b'{"id":%d}' % n for n in range(1_000)) + b"]}"
    opened = {"identity": bytes, "gzip": gzip.decompress, "zstd": zstandard.decompress}
    for encoding in ENCODINGS:
        packed = compress(memoryview(body), encoding)
        assert opened[encoding](packed) == body
        assert packed == compress(body, encoding)


def test_a_zstd_body_asks_no_reader_for_more_memory_than_browsers_grant() -> None:
    """RFC 9659: a window of at most 8 MiB, also of a body that is larger."""
    packed = compress(bytes(9 << 20), "zstd")
    assert zstandard.get_frame_parameters(packed).window_size <= WINDOW_MAX_BYTES
