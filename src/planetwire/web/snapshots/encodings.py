"""Content codings: which one a request gets (RFC 9110, 12.5.3), and the bytes of a snapshot in each."""

from __future__ import annotations

import gzip
import re
from collections.abc import Sequence
from typing import Literal, TypeVar

import zstandard

from planetwire.errors import NotAcceptable

Encoding = Literal["identity", "gzip", "zstd"]
C = TypeVar("C", bound=str)
ENCODINGS: tuple[Encoding, ...] = ("identity", "gzip", "zstd")

# A layer of satellites: gzip 6 and zstd 1 make the same size, zstd in a ninth of the CPU time. Its window of 512 KiB
# stays far below the 8 MiB that a reader has to grant (RFC 9659).
GZIP_LEVEL = 6
ZSTD_LEVEL = 1

_UNNAMED = 0.0005  # identity is always acceptable unless excluded, and below any weight that a header can express
_ITEM = re.compile(r"\s*([^\s;]+)\s*(?:;\s*q=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)\s*)?")


def negotiate(header: str) -> Encoding:
    """The coding of a snapshot: of equal weights zstd, gzip, none. Raises NotAcceptable when all are refused."""
    return choose(header, ("zstd", "gzip"))


def choose(header: str, offered: Sequence[C]) -> C | Literal["identity"]:
    """The coding with the largest weight; of equal ones the first, and none last. Raises NotAcceptable.

    `*` means gzip first, which every client can decode.
    """
    given = _weights(header)
    others = given.get("*", 0.0)
    offers: list[tuple[float, C | Literal["identity"]]] = [
        *((given.get(coding, 0.0), coding) for coding in offered),
        *((given.get(coding, others), coding) for coding in sorted(offered, key=lambda coding: coding != "gzip")),
        (given.get("identity", given.get("*", _UNNAMED)), "identity"),
    ]
    weight, chosen = max(offers, key=lambda offer: offer[0])  # the first of equals
    if not weight:
        left = ", ".join((*offered, "identity"))
        raise NotAcceptable(f"Accept-Encoding leaves none of {left}", code="no_acceptable_encoding")
    return chosen


def _weights(header: str) -> dict[str, float]:
    """By coding; invalid items are ignored."""
    items = (_ITEM.fullmatch(item) for item in header.lower().split(","))
    return {found[1].removeprefix("x-"): float(found[2] or 1) for found in items if found}


def compress(body: bytes | memoryview, encoding: Encoding) -> bytes:
    """Deterministic. Blocks the thread, but releases the interpreter's lock."""
    if encoding == "gzip":
        return gzip.compress(body, GZIP_LEVEL, mtime=0)
    if encoding == "zstd":
        return zstandard.ZstdCompressor(level=ZSTD_LEVEL).compress(body)
    return bytes(body)
