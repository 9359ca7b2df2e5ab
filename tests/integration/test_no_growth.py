"""What held: connections that come and go leave nothing behind. Objects, tasks, descriptors are counted, not time."""

from __future__ import annotations

import asyncio
import collections
import gc
import os
from contextlib import suppress
from pathlib import Path

import orjson
import pytest
from websockets.asyncio.client import connect

from live_streams import CARRIERS, Live, SseClient, eventually, live_server

STREAM = "/api/events?cities=shanghai,tokyo&since_revision=0"
PATCH = "city_observation_patch.v1"
WARM_ROUNDS, ROUNDS, EACH = 2, 6, 5
OURS = ("planetwire.", "uvicorn.", "websockets.", "starlette.", "httptools.")


def held() -> collections.Counter[str]:
    """Objects of the server's own classes, by class; tasks; descriptors."""
    gc.collect()
    kinds = (type(each) for each in gc.get_objects())
    found = collections.Counter(
        f"{kind.__module__}.{kind.__qualname__}"
        for kind in kinds
        if str(kind.__module__).startswith(OURS) or kind is asyncio.Task
    )
    if Path("/proc/self/fd").exists():
        found["descriptors"] = len(os.listdir("/proc/self/fd"))
    return found


async def round_of(live: Live) -> None:
    """Streams read and left in each of the ways there are: closed, cut in the middle, refused, never finished."""
    for _ in range(EACH):
        reading = await SseClient.connect(live.port, STREAM)
        await reading.until("connected")
        live.publish("shanghai", "tokyo", type=PATCH, temp=1)
        await reading.until(PATCH)
        refused = await SseClient.connect(live.port, "/api/events?cities=")
        await refused.body()
        _, half = await asyncio.open_connection("127.0.0.1", live.port)
        half.write(b"GET /api/events?cities=shanghai HTTP/1.1\r\nhost: x\r\nx-half:")
        _, bad = await asyncio.open_connection("127.0.0.1", live.port)
        bad.write(b"GET /api/events HTTP/1.1\r\nhost : x\r\n\r\n")
        options = {"compression": None, "proxy": None}
        async with connect(f"ws://127.0.0.1:{live.port}/ws", **options) as page:  # type: ignore[arg-type]
            await page.send('{"subscribe": ["earth_updates", "datasource_tasks"]}')
            while orjson.loads(await page.recv())["type"] != "subscribed":
                pass
            live.publish_earth("satellites")
        for writer in (half, bad):
            writer.transport.abort()
            with suppress(OSError):
                await writer.wait_closed()
    await SseClient.close_all()
    await eventually(lambda: live.limits.connections == live.hub.connections == 0, "a slot or a subscription is kept")
    await eventually(lambda: live.earth.connections == 0, "a socket's subscription is kept")
    live.log.events.clear()
    live.earth_log.events.clear()


@pytest.mark.parametrize("carrier", CARRIERS)
async def test_streams_that_were_opened_and_left_leave_nothing(carrier: str) -> None:
    async with live_server(carrier, max_per_address=1_000) as live:
        for _ in range(WARM_ROUNDS):
            await round_of(live)
        await eventually(lambda: not live.connections, "a connection is kept")
        before = held()
        for _ in range(ROUNDS):
            await round_of(live)
        await eventually(lambda: not live.connections, "a connection is kept")
        grown = held() - before
        assert {name: more for name, more in grown.items() if more >= ROUNDS} == {}
