"""Shares one build among all concurrent requests for the same key."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """The key must contain everything that the result depends on."""

    def __init__(self) -> None:
        self._flights: dict[Hashable, asyncio.Task[T]] = {}

    async def share(self, key: Hashable, build: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of `build`, or of one already running; its exception is raised to all."""
        flight = self._flights.get(key)
        if flight is None:
            flight = asyncio.create_task(build(), name=f"build {key}")
            self._flights[key] = flight
            flight.add_done_callback(lambda done: self._landed(key, done))
        return await asyncio.shield(flight)  # a client that disconnects must not cancel the others' build

    def _landed(self, key: Hashable, flight: asyncio.Task[T]) -> None:
        self._flights.pop(key, None)
        if not flight.cancelled():
            flight.exception()  # retrieved, so that asyncio does not warn if no caller waits any more

    async def aclose(self) -> None:
        """Cancel running builds."""
        flights = list(self._flights.values())
        for flight in flights:
            flight.cancel()
        await asyncio.gather(*flights, return_exceptions=True)
