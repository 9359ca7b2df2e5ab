"""The bus of a single web process: port `Bus`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class MemoryBus:
    """Rings stay in this process."""

    connected = True

    def __init__(self, on_ring: Callable[[], None]) -> None:
        self._on_ring = on_ring

    def ring(self) -> None:
        """See the port."""
        self._on_ring()

    async def run(self) -> None:
        """See the port: nothing to carry."""
        await asyncio.Event().wait()
