"""The page's files through the shipped examples, in the real programs: each arrives as Planetwire would send it."""

from __future__ import annotations

import gzip
from pathlib import Path

import httpx
import pytest

from fix_proxies import Proxy, behind, running
from live_streams import live_server
from planetwire.web import spa
from small_build import BROTLI, BROWSER, FONT, FOR_EVER, SCRIPT, build

SAID = ("content-encoding", "content-type", "cache-control", "etag", "vary")
SCRIPT_PATH = "/assets/app-1a2b.js"


async def raw(client: httpx.AsyncClient, path: str, codings: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """What was on the wire, unopened."""
    named = {"accept-encoding": codings} | {name.replace("_", "-"): value for name, value in headers.items()}
    async with client.stream("GET", path, headers=named) as answer:
        body = b"".join([piece async for piece in answer.aiter_raw()])
        return answer.status_code, {name: answer.headers[name] for name in SAID if name in answer.headers}, body


@pytest.mark.parametrize("codings", [BROWSER, "gzip", "zstd, gzip;q=0.5", "gzip;q=0"])
def client_of(port: int) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False)


async def test_files_pass_as_they_are(proxy: Proxy, tmp_path: Path) -> None:
    """Coding, tag, lifetime and bytes, although this proxy compresses whatever it may; and so does a 304."""
    async with (
        behind(proxy, tmp_path, routers=[spa.router(build(tmp_path))]) as (live, port),
        client_of(port) as through,
        client_of(live.port) as direct,
    ):
        for codings in (BROWSER, "gzip", "zstd, gzip;q=0.5", "gzip;q=0"):
            for path in (SCRIPT_PATH, "/", "/terminal"):
                sent = await raw(direct, path, codings)
                assert sent[0] == 200
                assert await raw(through, path, codings) == sent
                known = await raw(through, path, codings, if_none_match=sent[1]["etag"])
                assert (known[0], known[1]["etag"], known[2]) == (304, sent[1]["etag"], b"")
        assert (await raw(through, "/assets/text-3c4d.woff2", "gzip;q=0"))[2] == FONT
        assert (await raw(through, "/assets/gone-9z.js", BROWSER))[0] == 404


async def test_files_read_from_the_disk_are_packed_too(proxy: Proxy, data_dir: Path) -> None:
    """The part of the examples that lies behind `#`."""
    folder = data_dir.parent  # readable for the proxy's own user
    static = build(folder)
    async with (
        live_server() as live,
        running(proxy.reading(static), folder, live.port) as port,
        client_of(port) as client,
    ):
        status, said, body = await raw(client, SCRIPT_PATH, "gzip")
        assert (status, said["content-encoding"], body) == (200, "gzip", gzip.compress(SCRIPT, mtime=0))
        assert (said["cache-control"], said["vary"]) == (FOR_EVER, "Accept-Encoding")
        assert said["content-type"].startswith("text/javascript")
        assert (await raw(client, SCRIPT_PATH, "identity"))[2] == SCRIPT
        if proxy.program == "caddy":
            _, said, body = await raw(client, SCRIPT_PATH, BROWSER)
            assert (said["content-encoding"], body) == ("br", BROTLI)
        assert (await raw(client, "/other", "identity"))[0] == 200
        for path in ("/assets/../../secret.txt", "/assets/%2e%2e/%2e%2e/secret.txt", "/assets/..%2f..%2fsecret.txt"):
            assert (await raw(client, path, "identity"))[0] in (400, 404)
