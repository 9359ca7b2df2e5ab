"""A build of the front end like that of `npm run build`, of a few small files."""

from __future__ import annotations

import gzip
from pathlib import Path

import zstandard

SCRIPT = b"export const answer = 42; // " + b"x" * 3_000
FONT = bytes(range(256)) * 8
INDEX = b"<!doctype html><title>built</title>" + b" " * 500
FOR_EVER = "public, max-age=31536000, immutable"
BROWSER = "gzip, deflate, br, zstd"
BROTLI = b"the bytes of a coding that Python cannot make are sent as they lie there"


def build(folder: Path) -> Path:
    """Writes the build, with a secret file beside it."""
    static = folder / "static"
    (static / "assets").mkdir(parents=True)
    (folder / "secret.txt").write_text("not of the build")
    (static / "index.html").write_bytes(INDEX)
    (static / "index.html.gz").write_bytes(gzip.compress(INDEX, mtime=0))
    (static / "assets" / "app-1a2b.js").write_bytes(SCRIPT)
    (static / "assets" / "app-1a2b.js.gz").write_bytes(gzip.compress(SCRIPT, mtime=0))
    (static / "assets" / "app-1a2b.js.zst").write_bytes(zstandard.compress(SCRIPT))
    (static / "assets" / "app-1a2b.js.br").write_bytes(BROTLI)
    (static / "assets" / "text-3c4d.woff2").write_bytes(FONT)
    (static / "assets" / "old.tar.gz").write_bytes(b"a file of its own: there is no old.tar")
    (static / "favicon.svg").write_bytes(b"<svg xmlns='http://www.w3.org/2000/svg'/>")
    (static / "empty.txt").write_bytes(b"")
    return static
