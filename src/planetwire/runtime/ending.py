"""Ends tasks for certain."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

AGAIN_S = 0.5  # how long a task that was told to end is waited for before it is told again


async def end_all(tasks: Iterable[asyncio.Future[None]], again_s: float = AGAIN_S) -> None:
    """Until all have ended. Once is not enough: where a wait is cancelled and fails in the same moment, Python 3.11's
    `wait_for` reports the failure alone, and a loop that survives failures goes on for ever.
    """
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=again_s)
