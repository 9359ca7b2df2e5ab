"""Frames of one connection on their way to an awaited `send`: a transport's buffer for those who have none.

Invariant: at most the high-water mark and one page are held; beyond it the hub keeps only a cursor.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from planetwire.ports import Subscription

HIGH_BYTES = 64 << 10


class Outgoing:
    """Filled by the hub and the session, emptied by one sender task."""

    def __init__(self, high_bytes: int = HIGH_BYTES) -> None:
        self._high_bytes = high_bytes
        self._frames: list[bytes] = []
        self._bytes = 0
        self._ready = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self.follower: Subscription | None = None  # told when the buffer is full, and when it is empty again
        self.full = False
        self.finishing = False

    def send(self, frame: bytes, /) -> int:
        """As `write`; all of it."""
        self.write(frame)
        return len(frame)

    def write(self, frame: bytes, /) -> None:
        """Take one frame; pauses the follower beyond the high-water mark."""
        self.write_many((frame,))

    def write_many(self, frames: Sequence[bytes], /) -> None:
        """Take several, each on its own; as `write`."""
        self._frames += frames
        self._bytes += sum(map(len, frames))
        self._ready.set()
        if not self.full and self._bytes > self._high_bytes:
            self.full = True
            self._room.clear()
            if self.follower is not None:
                self.follower.pause()

    def pending_bytes(self) -> int:
        """Bytes not yet accepted by the transport."""
        return self._bytes

    def wake(self) -> None:
        """Let the sender look, for something that is not in this buffer."""
        self._ready.set()

    def finish(self) -> None:
        """No more is coming: the sender sends what there is and ends."""
        self.finishing = True
        self._ready.set()

    async def ready(self) -> list[bytes]:
        """Wait until there is something to do, and take all frames."""
        await self._ready.wait()
        self._ready.clear()
        frames, self._frames = self._frames, []
        return frames

    def sent(self, size: int) -> None:
        """The transport took so many bytes; the follower goes on once nothing is left."""
        self._bytes -= size
        if self.full and self._bytes == 0:
            self.full = False
            self._room.set()
            if self.follower is not None:
                self.follower.resume()

    async def room(self) -> None:
        """Wait until the buffer is not full."""
        await self._room.wait()
