"""Encoded snapshots in this process: port `Cache`."""

from __future__ import annotations

from collections import OrderedDict

from planetwire.model import Cursor

BYTES_MAX = 256 * 1024 * 1024
BODIES_MAX = 256  # many small ones would cost more than their bytes


class MemoryCache:
    """Bounded by bytes and number; what was read longest ago goes first. Used from one event loop only.

    Invariant: a body is stored only under the generation that was present when its reader began, so nothing read
    before an invalidation can come back after it.
    """

    def __init__(self, max_bytes: int = BYTES_MAX, max_bodies: int = BODIES_MAX) -> None:
        self._max_bytes = max_bytes
        self._max_bodies = max_bodies
        self._size_bytes = 0
        self._generations: dict[str, int] = {}
        self._bodies: OrderedDict[tuple[str, str], bytes] = OrderedDict()

    def generation(self, layer: str) -> int:
        """Rises with every invalidation of the layer."""
        return self._generations.get(layer, 0)

    async def get(self, layer: str, variant: str) -> bytes | None:
        """The stored body of the present generation, or None."""
        body = self._bodies.get((layer, variant))
        if body is not None:
            self._bodies.move_to_end((layer, variant))
        return body

    async def find(self, layer: str, variant: str, cursor: Cursor) -> bytes | None:
        """No other process stores here; what this one has, `get` gives."""
        return None

    async def put(self, layer: str, variant: str, generation: int, cursor: Cursor, body: bytes) -> bool:
        """Store; False when the generation moved on, or the body is larger than the whole cache."""
        if generation != self.generation(layer) or len(body) > self._max_bytes:
            return False
        self._drop((layer, variant))
        self._bodies[layer, variant] = body
        self._size_bytes += len(body)
        while self._size_bytes > self._max_bytes or len(self._bodies) > self._max_bodies:
            self._drop(next(iter(self._bodies)))
        return True

    async def invalidate(self, layer: str) -> int:
        """Drop the layer's bodies; the new generation."""
        self._generations[layer] = self.generation(layer) + 1
        for key in [key for key in self._bodies if key[0] == layer]:
            self._drop(key)
        return self._generations[layer]

    async def aclose(self) -> None:
        """Nothing to release."""

    def _drop(self, key: tuple[str, str]) -> None:
        self._size_bytes -= len(self._bodies.pop(key, b""))
