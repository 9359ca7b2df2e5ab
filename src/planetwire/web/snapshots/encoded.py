"""An encoded response body. Free of the web framework, since the diagnostic builds bodies too."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass

from planetwire.model import Cursor
from planetwire.web.snapshots.encodings import Encoding, compress


def digest(body: bytes) -> str:
    """The hash that identifies a body."""
    return hashlib.blake2b(body, digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class Encoded:
    """One encoded body, and its strong ETag with quotes, `"<epoch>:<revision>:<hash of the bytes>"`."""

    etag: str
    body: bytes | memoryview

    @classmethod
    def of(cls, cursor: Cursor, body: bytes) -> Encoded:
        """A body with its tag."""
        return cls(f'"{cursor.epoch}:{cursor.revision}:{digest(body)}"', body)

    @property
    def cursor(self) -> Cursor:
        """The cursor in the tag."""
        epoch, revision, _ = self.etag.strip('"').split(":")
        return Cursor(epoch, int(revision))

    async def compressed(self, encoding: Encoding) -> Encoded:
        """This uncompressed body in another coding: another representation, with its own tag."""
        if encoding == "identity":
            return self
        return await asyncio.to_thread(lambda: Encoded.of(self.cursor, compress(self.body, encoding)))
