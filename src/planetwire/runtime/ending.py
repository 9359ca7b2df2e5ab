"""Cancels tasks reliably."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

AGAIN_S = 0.5  # wait for a cancelled task before it is cancelled again


async def end_all(tasks: Iterable[asyncio.Future[None]], again_s: float = AGAIN_S) -> None:
    """Cancel until all have ended. Once is not enough: if a wait is cancelled and fails at the same time, Python 3.11's
    `wait_for` raises only the failure, and a loop that survives failures would run for ever.
    """
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=again_s)
