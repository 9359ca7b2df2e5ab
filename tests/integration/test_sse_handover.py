"""Replay to live over real sockets with 16 kB buffers: default loopback buffers hide the race."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

from live_streams import CARRIERS, Live, SseClient, eventually, live_server

BUFFER = 16 << 10
CITIES = [f"c{number}" for number in range(10)]
PADDING = "x" * 450
PATCH = "city_observation_patch.v1"
_ID = re.compile(rb"^id: \w{12}-(\d+)$", re.MULTILINE)

Run = Callable[[Coroutine[Any, Any, None]], None]
RUNS = [pytest.param(asyncio.run, id="asyncio"), pytest.param(uvloop.run, id="uvloop")]


class Publisher:
    """Commits and hands over one to three patches per millisecond until stopped."""

    def __init__(self, live: Live, seed: int) -> None:
        self._live = live
        self._random = random.Random(seed)
        self._task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        while True:
            cities = self._random.choices(CITIES, k=self._random.randint(1, 3))
            self._live.publish(*cities, type=PATCH, pad=PADDING)
            await asyncio.sleep(0.001)

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


async def collect(live: Live, cities: list[str], since: int, more: int, *, slow: bool) -> None:
    """Connect with a cursor, read until `more` events beyond the head of that moment, compare with the log."""
    target = f"/api/events?cities={','.join(cities)}&since_revision={since}&replay_limit=2000"
    client = await SseClient.connect(live.port, target, rcvbuf=BUFFER)
    last = live.log.events[-1].revision + more
    topics = {f"city:{city}" for city in cities}
    text, seen = b"", 0
    async with asyncio.timeout(60):
        while seen < last:
            if slow:
                await asyncio.sleep(0.002)
            piece = await client.chunk()
            assert piece, "the stream ended"
            text += piece
            tail = _ID.findall(text[-4096:])
            seen = int(tail[-1]) if tail else seen
    await client.close()
    assert b"resync_required" not in text
    got = [int(revision) for revision in _ID.findall(text)]
    wanted = [e.revision for e in live.log.events if e.topic in topics and since < e.revision <= got[-1]]
    assert got == wanted


def options() -> dict[str, Any]:
    return {"protocol": {"sndbuf_bytes": BUFFER}, "max_per_address": 2000}


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize(("carrier", "connects"), [("protocol", 1000), ("route", 200)])
def test_handover_under_steady_publishing_loses_and_doubles_nothing(run: Run, carrier: str, connects: int) -> None:
    """S154, Q5: many connects during publishing, some slow; each sequence is complete and in order."""

    async def scenario() -> None:
        async with live_server(carrier, **options()) as live:
            dice = random.Random(7)
            live.publish(*dice.choices(CITIES, k=400), type=PATCH, pad=PADDING)
            publisher = Publisher(live, 11)
            for chunk in range(0, connects, 50):
                head = live.log.events[-1].revision
                await asyncio.gather(
                    *(
                        collect(
                            live,
                            dice.sample(CITIES, dice.randint(1, 4)),
                            head - dice.randint(0, 300),
                            dice.randint(1, 40),
                            slow=number % 5 == 0,
                        )
                        for number in range(chunk, chunk + 50)
                    )
                )
            await publisher.stop()
            await eventually(lambda: live.hub.connections == 0, "a connection was kept")
            assert live.limits.connections == 0

    run(scenario())


async def test_interleaved_cities_show_no_gap() -> None:
    """S194, Q1: of fifty cities two are followed; `prev_revision` chains without a hole, across reconnects."""
    async with live_server() as live:
        dice = random.Random(3)
        names = [f"c{number}" for number in range(50)]
        known = {"c7": 0, "c31": 0}
        since = 0
        for _ in range(10):
            live.publish(*dice.choices(names, k=500), type=PATCH)
            client = await SseClient.connect(live.port, f"/api/events?cities=c7,c31&since_revision={since}")
            await client.frame()
            live.publish(*dice.choices(names, k=500), "c7", type=PATCH)
            while since < live.hub.head:
                patch = await client.frame()
                assert patch is not None
                assert patch["prev_revision"] == known[patch["city"]]
                known[patch["city"]] = since = patch["revision"]
            await client.close()


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("carrier", CARRIERS)
def test_stalled_readers_are_cut_and_the_others_miss_nothing(run: Run, carrier: str) -> None:
    """The slow-reader rule on real sockets: bounded buffers, a cut after `stall_s`, nobody else waits."""

    async def scenario() -> None:
        async with live_server(carrier, stall_s=0.5, **options()) as live:
            target = "/api/events?cities=c1"
            stalled = [await SseClient.connect(live.port, target, rcvbuf=BUFFER) for _ in range(10)]
            healthy = await SseClient.connect(live.port, target)
            await healthy.until("connected")
            publishing, read = 3000, 0
            for number in range(publishing):
                live.publish("c1", type=PATCH, pad=PADDING * 4)
                if number % 10 == 9:
                    frames = await healthy.frames(10)
                    assert [frame["revision"] for frame in frames] == list(range(read + 1, read + 11))
                    read += 10
            await eventually(lambda: live.hub.cut == 10, "stalled readers were kept")
            assert (live.hub.connections, live.hub.lagged) == (1, 10)
            live.publish("c1", type=PATCH)
            assert (await healthy.frames(1))[0]["revision"] == publishing + 1
            for client in stalled:
                with pytest.raises((OSError, asyncio.IncompleteReadError, EOFError)):
                    while await client.chunk():
                        pass
                    raise EOFError

    run(scenario())


@pytest.mark.parametrize("run", RUNS)
def test_reader_that_pauses_comes_back_without_a_hole(run: Run) -> None:
    """It leaves the live set at its mark, and catches up from the ring or the log once it reads again."""

    async def scenario() -> None:
        async with live_server(**options()) as live:
            client = await SseClient.connect(live.port, "/api/events?cities=c1", rcvbuf=BUFFER)
            await client.until("connected")
            for _ in range(5):
                before = live.hub.head
                while not live.hub.lagging:
                    live.publish("c1", type=PATCH, pad=PADDING * 8)
                    await asyncio.sleep(0)
                live.publish(*["c1"] * 500, type=PATCH, pad=PADDING)
                frames = await client.frames(live.hub.head - before)
                assert [frame["revision"] for frame in frames] == list(range(before + 1, live.hub.head + 1))
            assert live.hub.lagged >= 5

    run(scenario())


@pytest.mark.parametrize("carrier", CARRIERS)
async def test_the_heartbeat_of_a_reader_that_lags_names_what_it_was_sent(carrier: str) -> None:
    """F36: not how far the server is, or what still waits for it would count as known."""
    async with live_server(carrier, **options()) as live:
        client = await SseClient.connect(live.port, "/api/events?cities=c1", rcvbuf=BUFFER)
        await client.until("connected")
        while not live.hub.lagging:
            live.publish("c1", type=PATCH, pad=PADDING * 8)
            await asyncio.sleep(0)
        live.publish(*["c1"] * 500, type=PATCH, pad=PADDING)
        await live.sse.beat()
        known, told = 0, []
        while known < live.hub.head:
            frame = await client.frame()
            assert frame is not None
            if frame["type"] == PATCH:
                known = frame["revision"]
            else:
                told.append((frame["type"], frame["cursor"], known))
        (kind, cursor, before) = told[0]
        assert (len(told), kind, cursor) == (1, "heartbeat", f"{live.log.epoch}-{before}")
        assert before < live.hub.head
