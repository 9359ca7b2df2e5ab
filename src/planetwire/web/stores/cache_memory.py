"""Encoded snapshots in this process: port `Cache`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from planetwire.model import Cursor
from planetwire.model.cache_names import is_meant

BYTES_MAX = 256 * 1024 * 1024
BODIES_MAX = 256  # many small ones would cost more than their bytes
NAMES_MAX = 1_024  # names whose generations are remembered one by one


class MemoryCache:
    """Bounded by bytes and number; what was read longest ago goes first. Used from one event loop only.

    Invariant: a body is stored only under the generation that was present when its reader began, so nothing read
    before an invalidation can come back after it.
    """

    def __init__(self, max_bytes: int = BYTES_MAX, max_bodies: int = BODIES_MAX) -> None:
        self._max_bytes = max_bytes
        self._max_bodies = max_bodies
        self._size_bytes = 0
        self._moves = 0
        self._generations: dict[str, int] = {}
        self._bodies: OrderedDict[str, bytes] = OrderedDict()

    def generation(self, name: str) -> int:
        """See the port. A name that was forgotten meanwhile has that of the newest invalidation, whatever it meant."""
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
        """No other process stores here; what this one has, `get` gives."""
        return None

    async def put(self, name: str, generation: int, cursor: Cursor, body: bytes) -> bool:
        """Store; False when the generation moved on, or the body is larger than the whole cache."""
        if generation != self.generation(name) or len(body) > self._max_bytes:
            return False
        self._drop(name)
        self._bodies[name] = body
        self._size_bytes += len(body)
        while self._size_bytes > self._max_bytes or len(self._bodies) > self._max_bodies:
            self._drop(next(iter(self._bodies)))
        return True

    async def invalidate(self, patterns: Sequence[str]) -> None:
        """Drop the bodies that a pattern means, and no other."""
        self._moves += 1
        for name in [name for name in self._generations if is_meant(name, patterns)]:
            self._generations[name] = self._moves
        for name in [name for name in self._bodies if is_meant(name, patterns)]:
            self._drop(name)

    async def aclose(self) -> None:
        """Nothing to release."""

    def _drop(self, name: str) -> None:
        self._size_bytes -= len(self._bodies.pop(name, b""))
