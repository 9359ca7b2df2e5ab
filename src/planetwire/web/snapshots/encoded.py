"""A body as it goes on the wire. Without the web framework: the diagnostic, which makes bodies too, serves nothing."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass

from planetwire.model import Cursor
from planetwire.web.snapshots.encodings import Encoding, compress


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
