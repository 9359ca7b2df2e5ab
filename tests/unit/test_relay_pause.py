"""How long the relay leaves a database alone that failed."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from planetwire.errors import BackendError
from planetwire.layers.registry import EarthLayerAdapterRegistry
from planetwire.outbox.wakeup_memory import MemoryWakeup
from planetwire.relay.relay import Relay
from planetwire.runtime.clock import ManualClock
from planetwire.settings import RelaySettings


class Away:
    """A database that does not answer."""

    async def lead(self, *_: object) -> int | None:
        raise BackendError("away")


class Noted(ManualClock):
    """Ends the loop with the fifth pause."""

    def __init__(self) -> None:
        super().__init__(datetime(2026, 1, 1, tzinfo=UTC))
        self.pauses: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        if len(self.pauses) == 5:
            raise asyncio.CancelledError


async def test_after_a_failure_it_tries_again_within_two_seconds_however_often_it_failed() -> None:
    """S32."""

    async def invalidate(_: str) -> None: ...

    clock, away = Noted(), Away()
    nothing: Any = lambda events: None  # noqa: E731
    relay = Relay(
        away,  # type: ignore[arg-type]
        EarthLayerAdapterRegistry(),
        invalidate,
        MemoryWakeup(),
        RelaySettings(),
        clock,
        nothing,
    )
    with pytest.raises(asyncio.CancelledError):
        await relay.run()
    assert clock.pauses == [0.5, 1.0, 2.0, 2.0, 2.0]
