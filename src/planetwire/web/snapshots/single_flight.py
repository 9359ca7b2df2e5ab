"""One build for everybody who asks for the same thing while it is under way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """The key must name all that the result depends on: who comes with another key never joins."""

    def __init__(self) -> None:
        self._flights: dict[Hashable, asyncio.Task[T]] = {}

    async def share(self, key: Hashable, build: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of `build`, of whoever began it; raises what it raises, to all."""
        flight = self._flights.get(key)
        if flight is None:
            flight = asyncio.create_task(build(), name=f"build {key}")
            self._flights[key] = flight
            flight.add_done_callback(lambda done: self._landed(key, done))
        return await asyncio.shield(flight)  # a client that leaves does not take the others' result with it

    def _landed(self, key: Hashable, flight: asyncio.Task[T]) -> None:
        self._flights.pop(key, None)
        if not flight.cancelled():
            flight.exception()  # seen, also when nobody waits any more

    async def aclose(self) -> None:
        """End what is being built."""
        flights = list(self._flights.values())
        for flight in flights:
            flight.cancel()
        await asyncio.gather(*flights, return_exceptions=True)
