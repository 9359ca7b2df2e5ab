"""The reverse proxies with shipped examples, as real programs in front of a test server.

If a program is missing, its tests are skipped locally and fail in CI.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from live_streams import Live, SseClient, live_server
from missing import program

DEPLOY = Path(__file__).resolve().parents[1] / "deploy"
HEARTBEAT_S = 0.5
READ_TIMEOUT_S = 2

# The rest of the configuration, as in a distribution: with compression, also of streams unless our part disables it.
NGINX = """daemon off; pid {folder}/pid; error_log stderr; events {{}}
http {{
    types {{ text/javascript js; }}
    access_log off; gzip on; gzip_proxied any; gzip_min_length 0; gzip_types *;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
{example}}}
"""
CADDY = "{{\n\tadmin off\n\tauto_https off\n\tgrace_period 100ms\n}}\n{example}"


@dataclass
class Proxy:
    """A proxy with a shipped example: its start command, and the test's changes to the example."""

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

    def reading(self, static: Path) -> Proxy:
        """The same with the example's commented-out part: files of the page directly from disk."""
        example = (DEPLOY / self.file).read_text(encoding="utf-8")
        found = re.search(r"(?m)^(\s+)#(?:location|handle) /assets/[^}]*?(?:\{[^}]*\}[^}]*?)?^\1#\}\n", example)
        assert found is not None
        used = found[0].replace(f"{found[1]}#", found[1])
        path = re.search(r"\S+/planetwire/web/static(?=;|\n)", used)
        assert path is not None
        return replace(self, changes=(*self.changes, (found[0], used.replace(path[0], str(static)))))


NGINX_PROXY = Proxy(
    "nginx", "nginx.conf", NGINX, "listen 80;", ("-p", "{folder}", "-c", "{file}"),
    (("proxy_read_timeout 1h;", f"proxy_read_timeout {READ_TIMEOUT_S}s;"),),
)  # fmt: skip
CADDY_PROXY = Proxy("caddy", "Caddyfile", CADDY, ":80 {", ("run", "--adapter", "caddyfile", "--config", "{file}"))


@pytest.fixture(params=[NGINX_PROXY, CADDY_PROXY], ids=lambda each: each.program)
def proxy(request: pytest.FixtureRequest) -> Proxy:
    made: Proxy = request.param
    program(made.program)
    return made


@asynccontextmanager
async def running(proxy: Proxy, folder: Path, upstream: int) -> AsyncIterator[int]:
    """The proxy's port, once it listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    file = proxy.written(folder, port, upstream)
    executable = program(proxy.program)
    arguments = [each.format(folder=folder, file=file) for each in proxy.arguments]
    home = {**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    process = await asyncio.create_subprocess_exec(executable, *arguments, env=home)
    try:
        async with asyncio.timeout(60):
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
    """A server, and the port of the proxy in front of it."""
    async with live_server(heartbeat_s=HEARTBEAT_S, **settings) as live, running(proxy, folder, live.port) as port:
        yield live, port
        await SseClient.close_all()  # the proxy waits for its connections before it ends
