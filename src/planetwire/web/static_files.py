"""The built front end in memory, read at the start, each file in every coding that the build made.

Why in memory: a request is a look-up in a dictionary and never becomes a path, so no name can escape the folder; and a
server keeps serving one complete build while another replaces it on the disk.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from planetwire.web.snapshots.encoded import digest
from planetwire.web.snapshots.encodings import choose
from planetwire.web.snapshots.snapshot_http import etag_matches

Packed = Literal["br", "zstd", "gzip"]
Coding = Packed | Literal["identity"]

SUFFIXES: dict[str, Packed] = {".br": "br", ".zst": "zstd", ".gz": "gzip"}  # the smallest first
HASHED = "assets/"  # files here have a content hash in their names
FOR_EVER = "public, max-age=31536000, immutable"
ASK_AGAIN = "no-cache"
PIECE_BYTES = 64 << 10

# Not the machine's list: it varies, and browsers refuse a script of the wrong type.
MEDIA_TYPES = {
    ".avif": "image/avif",
    ".css": "text/css",
    ".csv": "text/csv",
    ".glb": "model/gltf-binary",
    ".html": "text/html",
    ".ico": "image/x-icon",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".js": "text/javascript",
    ".json": "application/json",
    ".ktx2": "image/ktx2",
    ".map": "application/json",
    ".mjs": "text/javascript",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
    ".wasm": "application/wasm",
    ".webmanifest": "application/manifest+json",
    ".webp": "image/webp",
    ".woff2": "font/woff2",
    ".xml": "application/xml",
}
UNKNOWN = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Form:
    """A file in one coding, and its strong tag."""

    body: bytes
    etag: str

    @classmethod
    def of(cls, path: Path) -> Form:
        """Read from the disk."""
        body = path.read_bytes()
        return cls(body, f'"{digest(body)}"')


@dataclass(frozen=True, slots=True)
class StaticFile:
    """One file of the build."""

    media_type: str
    cache_control: str
    plain: Form
    packed: Mapping[Packed, Form]

    def answer(self, request: Request, further: Mapping[str, str] | None = None) -> Response:
        """200 in the preferred coding, or 304 if the client has exactly these bytes. Raises NotAcceptable."""
        coding = choose(",".join(request.headers.getlist("accept-encoding")), tuple(self.packed))
        form = self.plain if coding == "identity" else self.packed[coding]
        headers = {"ETag": form.etag, "Cache-Control": self.cache_control, "Vary": "Accept-Encoding", **(further or {})}
        if etag_matches(",".join(request.headers.getlist("if-none-match")), form.etag):
            return Response(status_code=304, headers=headers)
        if coding != "identity":
            headers["Content-Encoding"] = coding
        return InPieces(form.body, headers=headers, media_type=self.media_type)


class InPieces(Response):
    """Waits for the client after each piece, so that a stalled one holds one piece, not the whole body, in memory."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As ASGI has it."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        body = memoryview(self.body)
        for start in range(0, max(len(body), 1), PIECE_BYTES):
            end = start + PIECE_BYTES
            piece = {"type": "http.response.body", "body": body[start:end], "more_body": end < len(body)}
            await send(piece)


def read(folder: Path) -> dict[str, StaticFile]:
    """By path below the folder, with `/`. A packed form is part of its file, and no file itself."""
    paths = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {name: _one(name, paths) for name in paths if not _is_packed(name, paths)}


def _is_packed(name: str, paths: Mapping[str, Path]) -> bool:
    return any(name.endswith(suffix) and name.removesuffix(suffix) in paths for suffix in SUFFIXES)


def _one(name: str, paths: Mapping[str, Path]) -> StaticFile:
    packed = {coding: Form.of(paths[name + suffix]) for suffix, coding in SUFFIXES.items() if name + suffix in paths}
    return StaticFile(
        media_type=MEDIA_TYPES.get(paths[name].suffix.lower(), UNKNOWN),
        cache_control=FOR_EVER if name.startswith(HASHED) else ASK_AGAIN,
        plain=Form.of(paths[name]),
        packed=packed,
    )
