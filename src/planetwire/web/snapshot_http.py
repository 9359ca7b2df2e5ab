"""Snapshots as HTTP answers: encoded once per content, strong ETag, 304, gzip when asked."""

from __future__ import annotations

import gzip
import hashlib
from collections import OrderedDict
from dataclasses import dataclass, field

import orjson
from fastapi import Request, Response

from planetwire.model import Cursor, Json

MEDIA_TYPE = "application/json"
GZIP_FROM_BYTES = 1_024
GZIP_LEVEL = 4
BODIES_MAX = 128  # remembered, the oldest goes first
GOOD_FOR_S = 5.0  # without a new event a snapshot changes only with the age of its readings


@dataclass(slots=True)
class Body:
    """One encoded snapshot. `etag` is the plain form's; the compressed form has its own."""

    raw: bytes
    cursor: Cursor
    etag: str
    _zipped: bytes | None = field(default=None, repr=False)

    @property
    def zipped(self) -> bytes:
        """Compressed once."""
        if self._zipped is None:
            self._zipped = gzip.compress(self.raw, GZIP_LEVEL, mtime=0)
        return self._zipped


@dataclass(slots=True)
class _Kept:
    body: Body
    content_hash: bytes
    checked_s: float


class SnapshotCache:
    """Keeps bodies by name. The same content keeps its bytes, its stamp and so its ETag."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    def get(self, name: str, cursor: Cursor, now_s: float) -> Body | None:
        """A body of exactly this cursor that was compared with the store in the last 5 s, or None."""
        kept = self._kept.get(name)
        if kept is None or kept.body.cursor != cursor or now_s - kept.checked_s >= GOOD_FOR_S:
            return None
        return kept.body

    def put(self, name: str, cursor: Cursor, content: Json, stamp: Json, now_s: float) -> Body:
        """The body of `content` with cursor and `stamp`; the one before when only the stamp differs."""
        content = {**content, "revision": cursor.revision, "epoch": cursor.epoch}
        digest = hashlib.sha256(orjson.dumps(content)).digest()
        before = self._kept.get(name)
        if before is not None and before.content_hash == digest:
            before.checked_s = now_s
            return before.body
        body = Body(orjson.dumps({**stamp, **content}), cursor, f'"{digest.hex()[:32]}-{_stamp_hash(stamp)}"')
        self._kept[name] = _Kept(body, digest, now_s)
        self._kept.move_to_end(name)
        while len(self._kept) > BODIES_MAX:
            self._kept.popitem(last=False)
        return body


def _stamp_hash(stamp: Json) -> str:
    return hashlib.sha256(orjson.dumps(stamp)).hexdigest()[:8]


def answer(request: Request, body: Body) -> Response:
    """200 with the body, plain or compressed, or 304 when the client has it."""
    zipped = len(body.raw) >= GZIP_FROM_BYTES and accepts_gzip(request.headers.get("accept-encoding", ""))
    etag = body.etag[:-1] + '-gz"' if zipped else body.etag
    headers = {
        "ETag": etag,
        "Cache-Control": "no-cache",
        "Vary": "Accept-Encoding",
        "X-Patch-Revision": str(body.cursor.revision),
        "X-Patch-Epoch": body.cursor.epoch,
    }
    if etag_matches(request.headers.get("if-none-match"), etag):
        return Response(status_code=304, headers=headers)
    if zipped:
        headers["Content-Encoding"] = "gzip"
    return Response(body.zipped if zipped else body.raw, headers=headers, media_type=MEDIA_TYPE)


def etag_matches(header: str | None, etag: str) -> bool:
    """If-None-Match compares weakly: a proxy may have put `W/` before our tag."""
    if header is None:
        return False
    tags = [tag.strip().removeprefix("W/") for tag in header.split(",")]
    return "*" in tags or etag in tags


def accepts_gzip(header: str) -> bool:
    """Whether an Accept-Encoding header takes gzip: named, or by `*`, and not with a weight of 0."""
    weights: dict[str, bool] = {}
    for part in header.lower().split(","):
        name, _, parameters = part.partition(";")
        weight = parameters.replace(" ", "").removeprefix("q=")
        weights[name.strip()] = weight.strip("0.") != "" or weight == ""
    return weights.get("gzip", weights.get("*", False))
