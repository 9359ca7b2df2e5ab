"""Snapshots as HTTP answers, the same for every route: a strong ETag for each coding, 304, compressed when asked."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import Request, Response

from planetwire.model import Cursor
from planetwire.web.encodings import Encoding, compress, negotiate
from planetwire.web.openapi import answers

MEDIA_TYPE = "application/json"
RESPONSES: dict[int | str, dict[str, Any]] = {304: {"description": "The client has exactly this"}, **answers(406)}


def digest(body: bytes) -> str:
    """What tells one body from another."""
    return hashlib.blake2b(body, digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class Encoded:
    """One body as it goes on the wire, and its strong ETag with quotes, `"<epoch>:<revision>:<hash of the bytes>"`."""

    etag: str
    body: bytes | memoryview

    @classmethod
    def of(cls, cursor: Cursor, body: bytes) -> Encoded:
        """A body with its tag."""
        return cls(f'"{cursor.epoch}:{cursor.revision}:{digest(body)}"', body)

    @property
    def cursor(self) -> Cursor:
        """What the tag says of it."""
        epoch, revision, _ = self.etag.strip('"').split(":")
        return Cursor(epoch, int(revision))

    async def compressed(self, encoding: Encoding) -> Encoded:
        """This one, plain, in another coding: a representation of its own, with a tag of its own."""
        if encoding == "identity":
            return self
        return await asyncio.to_thread(lambda: Encoded.of(self.cursor, compress(self.body, encoding)))


def asked_encoding(request: Request) -> Encoding:
    """What the request's Accept-Encoding, in however many lines, wants most. Raises NotAcceptable."""
    return negotiate(",".join(request.headers.getlist("accept-encoding")))


def answer(
    request: Request, encoded: Encoded, encoding: Encoding, further: Mapping[str, str] | None = None
) -> Response:
    """200 with the body, or 304 when the client has exactly these bytes. Ranges are not served: the whole body is."""
    headers = {"ETag": encoded.etag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding", **(further or {})}
    if etag_matches(",".join(request.headers.getlist("if-none-match")), encoded.etag):
        return Response(status_code=304, headers=headers)
    if encoding != "identity":
        headers["Content-Encoding"] = encoding
    return Response(encoded.body, headers=headers, media_type=MEDIA_TYPE)


def etag_matches(header: str, etag: str) -> bool:
    """If-None-Match compares weakly: a proxy may have put `W/` before our tag."""
    tags = [tag.strip().removeprefix("W/") for tag in header.split(",")]
    return "*" in tags or etag in tags
