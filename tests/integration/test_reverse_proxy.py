"""The shipped examples for a reverse proxy, in the real programs: what is live passes them as it comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
from websockets.asyncio.client import connect

from fix_proxies import Proxy, behind
from live_streams import SseClient, the_guard
from planetwire.setting_texts import networks
from planetwire.web.http.front import Front
from planetwire.web.http.hosts import AllowedHosts
from planetwire.web.http.proxies import TrustedProxies

SILENT_BEATS = 6  # for longer than the proxy would wait for a silent server
STREAM = "/api/events?cities=shanghai"
PATCH = "city_observation_patch.v1"


async def test_each_event_arrives_before_the_next_is_made_and_is_not_compressed(proxy: Proxy, tmp_path: Path) -> None:
    """S228: no buffer on the way, although this proxy compresses whatever it may and buffers by default."""
    async with behind(proxy, tmp_path) as (live, port):
        client = await SseClient.connect(port, STREAM, headers={"accept-encoding": "gzip"})
        assert client.status == 200
        assert client.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert "content-encoding" not in client.headers
        await client.until("connected")
        for temp in range(3):
            live.publish("shanghai", type=PATCH, temp=temp)
            assert (await client.until(PATCH))["temp"] == temp


async def test_a_quiet_stream_is_held_by_its_heartbeats(proxy: Proxy, tmp_path: Path) -> None:
    """S228: the server says nothing else for longer than the proxy waits for a silent one."""
    async with behind(proxy, tmp_path) as (live, port):
        client = await SseClient.connect(port, STREAM)
        for _ in range(SILENT_BEATS):
            await client.until("heartbeat")
        live.publish("shanghai", type=PATCH, temp=1)
        assert (await client.until(PATCH))["temp"] == 1


async def test_a_browser_that_returns_is_replayed_what_it_missed(proxy: Proxy, tmp_path: Path) -> None:
    """S228, S184: Last-Event-ID passes; and who left is noticed through the proxy."""
    async with behind(proxy, tmp_path) as (live, port):
        client = await SseClient.connect(port, STREAM)
        await client.until("connected")
        live.publish("shanghai", type=PATCH, temp=1)
        await client.until(PATCH)
        seen = client.ids[-1]
        assert seen is not None
        await client.close()
        live.publish("shanghai", type=PATCH, temp=2)
        live.publish("shanghai", type=PATCH, temp=3)
        again = await SseClient.connect(port, f"{STREAM}&since_revision=0", headers={"last-event-id": seen})
        assert [frame["type"] for frame in await again.frames(1)] == ["connected"]
        assert [frame["temp"] for frame in await again.frames(2)] == [2, 3]
        async with asyncio.timeout(60):
            while live.limits.connections > 1:
                live.publish("shanghai", type=PATCH, temp=4)  # a proxy notices who has gone when it writes to them
                await asyncio.sleep(0.02)


async def test_a_websocket_is_upgraded_and_a_page_of_the_same_address_is_let_in(proxy: Proxy, tmp_path: Path) -> None:
    """S228: the Host that the browser spoke to arrives, or its Origin would be another site's."""
    async with behind(proxy, tmp_path) as (live, port):
        options: dict[str, Any] = {"origin": f"http://127.0.0.1:{port}", "compression": None, "proxy": None}
        async with connect(f"ws://127.0.0.1:{port}/ws", **options) as page:
            assert orjson.loads(await page.recv())["type"] == "connected"
            await page.send('{"subscribe": ["earth_updates"]}')
            beats = 0
            while beats < SILENT_BEATS:
                beats += orjson.loads(await page.recv())["type"] == "heartbeat"
            live.publish_earth("satellites")
            while (frame := orjson.loads(await page.recv())).get("channel") != "earth_updates":
                assert frame["type"] == "heartbeat"
            assert frame["data"]["layers"] == ["satellites"]


@asynccontextmanager
async def status_from(address: str, port: int, host: str = "127.0.0.1") -> AsyncIterator[int]:
    """What a client with this address of its own is answered; its stream stays open meanwhile."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
    writer.write(f"GET {STREAM} HTTP/1.1\r\nhost: {host}:{port}\r\n\r\n".encode())
    try:
        yield int((await reader.readuntil(b"\r\n")).split()[1])
    finally:
        await SseClient(reader, writer).close()


async def test_connections_are_counted_by_the_clients_address(proxy: Proxy, tmp_path: Path) -> None:
    """S228, F33: and not as one crowd behind the proxy, which the settings name."""
    guard = the_guard(proxies=TrustedProxies(networks("127.0.0.1")))
    async with (
        behind(proxy, tmp_path, guard=guard, max_per_address=1) as (live, port),
        status_from("127.0.0.1", port) as one,
        status_from("127.0.0.2", port) as another,
        status_from("127.0.0.2", port) as once_more,
    ):
        assert (one, another, once_more) == (200, 200, 503)
        assert live.limits.connections == 2


async def test_the_name_that_a_proxy_is_reached_by_is_set(proxy: Proxy, tmp_path: Path) -> None:
    """It arrives as the browser sent it, and is refused until PLANETWIRE_ALLOWED_HOSTS has it."""
    name = "earth.example.org"
    front = Front(hosts=AllowedHosts([name]))
    async with (
        behind(proxy, tmp_path, protocol={"front": front}) as (_, port),
        status_from("127.0.0.1", port, name) as ours,
        status_from("127.0.0.1", port, "evil.example") as foreign,
    ):
        assert (ours, foreign) == (200, 421)
