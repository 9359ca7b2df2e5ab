"""How a role ends: every loop is over before the stores close, also a loop that lost its first cancellation."""

from __future__ import annotations

import asyncio

import pytest

from planetwire.supervise import roles


async def test_a_loop_that_lost_a_cancellation_is_cancelled_again() -> None:
    """A driver may answer a cancelled wait with its own error; the loop takes that for trouble and goes on."""
    lost = 0
    running = asyncio.Event()

    async def loses_two() -> None:
        nonlocal lost
        while True:
            try:
                running.set()
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                lost += 1
                if lost > 2:
                    raise

    async with asyncio.timeout(60):
        async with roles.running_loops({"loses": loses_two}, again_s=0.01):
            await running.wait()
    assert lost == 3


async def test_a_loop_that_fails_ends_the_process_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []
    monkeypatch.setattr(roles.signal, "raise_signal", told.append)

    async def fails() -> None:
        raise ValueError("a bug")

    with pytest.raises(SystemExit):
        async with roles.running_loops({"fails": fails}) as failed:
            await failed
    assert told == [roles.signal.SIGTERM]


async def test_loops_that_end_when_told_leave_no_error() -> None:
    async def forever() -> None:
        await asyncio.sleep(3600)

    async with roles.running_loops({"one": forever, "two": forever}):
        pass
