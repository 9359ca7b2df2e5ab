"""Encoded snapshots in this process: port `Cache`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from planetwire.model import Cursor
from planetwire.model.cache_names import is_meant

BYTES_MAX = 256 * 1024 * 1024
BODIES_MAX = 256  # bounds the overhead of many small bodies
NAMES_MAX = 1_024  # names with a generation of their own


class MemoryCache:
    """An LRU cache bounded by bytes and number. Used from one event loop only.

    Invariant: a body is stored only if the generation is still the one at the start of its read, so that no data read
    before an invalidation can be stored after it.
    """

    def __init__(self, max_bytes: int = BYTES_MAX, max_bodies: int = BODIES_MAX) -> None:
        self._max_bytes = max_bytes
        self._max_bodies = max_bodies
        self._size_bytes = 0
        self._moves = 0
        self._generations: dict[str, int] = {}
        self._bodies: OrderedDict[str, bytes] = OrderedDict()

    def generation(self, name: str) -> int:
        """See the port. A name that was evicted has the generation of the newest invalidation of any name."""
        known = self._generations.get(name)
        if known is None:
            known = self._generations[name] = self._moves
            if len(self._generations) > NAMES_MAX:
                del self._generations[next(iter(self._generations))]
        return known

    async def get(self, name: str) -> bytes | None:
        """The stored body of the present generation, or None."""
        body = self._bodies.get(name)
        if body is not None:
            self._bodies.move_to_end(name)
        return body

    async def find(self, name: str, cursor: Cursor) -> bytes | None:
        """Always None: no other process stores here."""
        return None

    async def put(self, name: str, generation: int, cursor: Cursor, body: bytes) -> bool:
        """Store; False if the generation has changed, or the body is larger than the whole cache."""
        if generation != self.generation(name) or len(body) > self._max_bytes:
            return False
        self._drop(name)
        self._bodies[name] = body
        self._size_bytes += len(body)
        while self._size_bytes > self._max_bytes or len(self._bodies) > self._max_bodies:
            self._drop(next(iter(self._bodies)))
        return True

    async def invalidate(self, patterns: Sequence[str]) -> None:
        """Drop exactly the bodies that match a pattern."""
        self._moves += 1
        for name in [name for name in self._generations if is_meant(name, patterns)]:
            self._generations[name] = self._moves
        for name in [name for name in self._bodies if is_meant(name, patterns)]:
            self._drop(name)

    async def aclose(self) -> None:
        """Nothing to release."""

    def _drop(self, name: str) -> None:
        self._size_bytes -= len(self._bodies.pop(name, b""))
