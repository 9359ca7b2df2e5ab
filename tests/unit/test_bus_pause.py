"""How long the bus in PostgreSQL waits before it rings again."""

from __future__ import annotations

import asyncio

import pytest

from planetwire.stream import bus_postgres
from planetwire.stream.bus_postgres import PostgresBus


class Away:
    """A database that is not there, until it is."""

    def __init__(self) -> None:
        self.rings = 0

    async def execute(self, *_: object) -> None:
        self.rings += 1
        if self.rings != 9:
            raise ConnectionRefusedError


async def test_the_pause_after_a_loss_doubles_from_a_tenth_of_a_second_and_begins_anew_after_a_ring(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """S169."""
    pauses: list[float] = []

    async def noted(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 9:
            raise asyncio.CancelledError

    bus = PostgresBus(Away(), "postgresql://", "bell", lambda: None)  # type: ignore[arg-type]
    monkeypatch.setattr(bus_postgres.asyncio, "sleep", noted)
    bus.ring()
    with pytest.raises(asyncio.CancelledError):
        async with asyncio.TaskGroup() as group:
            ringing = group.create_task(bus._keep_ringing())
            while not ringing.done():
                bus._ringer.ring()
                await asyncio.wait([ringing], timeout=0.01)
            await ringing
    assert pauses[:7] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0]
    assert pauses[7:] == [5.0, 0.1]
