"""Requests whose end two parsers may see at different places, each followed by a second one."""

from __future__ import annotations

from collections.abc import Iterator

ENDS = b"\r\n\r\n"
HIDDEN = b"GET /hidden HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
COMMON = b"Host: localhost\r\nAuthorization: Bearer ingest-token\r\nContent-Type: application/json\r\n"
LENGTH = b"Content-Length: 2\r\n"

# Name → the text after the request line and `COMMON`.
HEADS: dict[str, bytes] = {
    "a length, then chunks": b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks, then a length": b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
    "two lengths": b"Content-Length: 0\r\nContent-Length: 56\r\n\r\n",
    "the same length twice": LENGTH + LENGTH + b"\r\n{}",
    "lengths in a list": b"Content-Length: 2, 2\r\n\r\n{}",
    "bare LF everywhere": b"Content-Length: 2\n\n{}",
    "bare LF once": b"X-A: b\n" + LENGTH + b"\r\n{}",
    "bare LF at the end": LENGTH + b"\n{}",
    "bare CR": b"X-A: b\r" + LENGTH + b"\r\n{}",
    "a folded header": b"X-A: b\r\n c\r\n" + LENGTH + b"\r\n{}",
    "chunks in a fold": b"X-A: b\r\n\tTransfer-Encoding: chunked\r\n" + LENGTH + b"\r\n{}",
    "a folded length": b"Content-Length:\r\n 2\r\n\r\n{}",
    "a space before the colon": b"Content-Length : 2\r\n\r\n{}",
    "a space before the colon of chunks": b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "a tab before the colon": b"Content-Length\t: 2\r\n\r\n{}",
    "a space in a name": b"X A: b\r\n" + LENGTH + b"\r\n{}",
    "NUL in a value": b"X-A: b\0c\r\n" + LENGTH + b"\r\n{}",
    "no colon": b"X-A\r\n" + LENGTH + b"\r\n{}",
    "no name": b": a\r\n" + LENGTH + b"\r\n{}",
    "two codings": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "a bad trailer": b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nContent-Length : 3\r\n\r\n",
    **{
        f"a length of {length!r}": b"Content-Length: " + length + b"\r\n\r\n{}"
        for length in (b"+2", b"-2", b"0x2", b"2 2", b"", b"2.0", b"2_0", b"\xb2", b"99999999999999999999")
    },
    **{
        f"a coding of {coding!r}": b"Transfer-Encoding: " + coding + b"\r\n\r\n0\r\n\r\n"
        for coding in (
            b"xchunked", b"identity", b"gzip", b"chunked, identity", b"chunked\x0b", b"\x0bchunked", b'"chunked"',
            b"chunked;q=1", b"chunked, chunked",
        )
    },
    **{
        f"a chunk of {chunk!r}": b"Transfer-Encoding: chunked\r\n\r\n" + chunk + b"0\r\n\r\n"
        for chunk in (
            b"zz\r\n", b"-1\r\n", b"0x2\r\n{}\r\n", b"2\n{}\r\n", b"2\r\n{}X\r\n", b"2 \r\n{}\r\n", b"2;\n\r\n{}\r\n",
            b"\r\n", b"2\r\n{}0\r\n", b"ffffffffffffffffff\r\n",
        )
    },
}  # fmt: skip

# The same without errors: answered, and so is the request after it.
SOUND: dict[str, bytes] = {
    "a length": LENGTH + b"\r\n{}",
    "chunks": b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "chunks in capitals": b"TRANSFER-ENCODING: CHUNKED\r\n\r\n2;a=b\r\n{}\r\n0\r\nX-A: b\r\n\r\n",
}


def shapes(line: str) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of each faulty request for `METHOD /path`, followed by the hidden one."""
    for name, head in HEADS.items():
        yield name, f"{line} HTTP/1.1\r\n".encode() + COMMON + head + HIDDEN
