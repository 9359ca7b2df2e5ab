"""The shipped examples for a reverse proxy, in the real programs: what is live passes them as it comes.

A program that is missing: its tests are skipped at home and fail in CI.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
from websockets.asyncio.client import connect

from live_streams import Live, SseClient, live_server, the_guard
from planetwire.setting_texts import networks
from planetwire.web.proxies import TrustedProxies

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
PROGRAMS = f"{os.environ.get('PATH', '')}:/usr/sbin"  # Debian's nginx is not on everybody's path
HEARTBEAT_S = 0.5
READ_TIMEOUT_S = 2
SILENT_BEATS = 6  # for longer than the proxy would wait for a silent server
STREAM = "/api/events?cities=shanghai"
PATCH = "city_observation_patch.v1"

# Around our part, as a distribution has it: with compression that takes streams too unless our part says no.
NGINX = """daemon off; pid {folder}/pid; error_log stderr; events {{}}
http {{
    access_log off; gzip on; gzip_proxied any; gzip_min_length 0; gzip_types *;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
{example}}}
"""
CADDY = "{{\n\tadmin off\n\tauto_https off\n\tgrace_period 100ms\n}}\n{example}"


@dataclass
class Proxy:
    """A proxy that is shipped an example for: how it is started, and what of the example the test has to change."""

    program: str
    file: str
    around: str
    listen: str
    arguments: tuple[str, ...]
    changes: tuple[tuple[str, str], ...] = ()

    def written(self, folder: Path, port: int, upstream: int) -> Path:
        example = (DEPLOY / self.file).read_text(encoding="utf-8")
        changes = [(self.listen, self.listen.replace("80", str(port))), ("127.0.0.1:8000", f"127.0.0.1:{upstream}")]
        for old, new in [*changes, *self.changes]:
            assert old in example
            example = example.replace(old, new)
        made = folder / self.file
        made.write_text(self.around.format(folder=folder, example=example), encoding="utf-8")
        return made


NGINX_PROXY = Proxy(
    "nginx", "nginx.conf", NGINX, "listen 80;", ("-p", "{folder}", "-c", "{file}"),
    (("proxy_read_timeout 1h;", f"proxy_read_timeout {READ_TIMEOUT_S}s;"),),
)  # fmt: skip
CADDY_PROXY = Proxy("caddy", "Caddyfile", CADDY, ":80 {", ("run", "--adapter", "caddyfile", "--config", "{file}"))


@pytest.fixture(params=[NGINX_PROXY, CADDY_PROXY], ids=lambda each: each.program)
def proxy(request: pytest.FixtureRequest) -> Proxy:
    made: Proxy = request.param
    if shutil.which(made.program, path=PROGRAMS) is None:
        if os.environ.get("CI"):
            pytest.fail(f"no {made.program} on this machine; in CI that is a failure")
        pytest.skip(f"{made.program} is not installed")
    return made


@asynccontextmanager
async def running(proxy: Proxy, folder: Path, upstream: int) -> AsyncIterator[int]:
    """The proxy's port, once it listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    file = proxy.written(folder, port, upstream)
    program = shutil.which(proxy.program, path=PROGRAMS) or proxy.program
    arguments = [each.format(folder=folder, file=file) for each in proxy.arguments]
    home = {**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    process = await asyncio.create_subprocess_exec(program, *arguments, env=home)
    try:
        async with asyncio.timeout(20):
            while not await listens(port):
                assert process.returncode is None, "the proxy refuses the example"
                await asyncio.sleep(0.02)
        yield port
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


@asynccontextmanager
async def behind(proxy: Proxy, folder: Path, **settings: Any) -> AsyncIterator[tuple[Live, int]]:
    """A server, and the port of the proxy before it."""
    async with live_server(heartbeat_s=HEARTBEAT_S, **settings) as live, running(proxy, folder, live.port) as port:
        yield live, port
        await SseClient.close_all()  # a proxy that ends waits for its connections


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
        async with asyncio.timeout(10):
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
async def status_from(address: str, port: int) -> AsyncIterator[int]:
    """What a client with this address of its own is answered; its stream stays open meanwhile."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
    writer.write(f"GET {STREAM} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\r\n".encode())
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
