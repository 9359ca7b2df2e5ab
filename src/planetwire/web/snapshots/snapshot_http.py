"""Snapshots as HTTP answers, the same for every route: a strong ETag for each coding, 304, compressed when asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import Request, Response

from planetwire.web.http.answers import answers
from planetwire.web.snapshots.encoded import Encoded
from planetwire.web.snapshots.encodings import Encoding, negotiate

MEDIA_TYPE = "application/json"
RESPONSES: dict[int | str, dict[str, Any]] = {304: {"description": "The client has exactly this"}, **answers(406)}


def asked_encoding(request: Request) -> Encoding:
    """The preferred coding of the request's Accept-Encoding lines. Raises NotAcceptable."""
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
