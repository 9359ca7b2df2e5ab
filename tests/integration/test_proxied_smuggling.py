"""What held: behind the shipped proxies nobody's request hides in another's, and nobody gets another's answer.

A proxy keeps its connections to us and sends many people's requests over them. What would desynchronise one is tried
from outside; then others ask, each for something of their own.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
from fastapi import APIRouter, Request, Response

from fix_proxies import Proxy, behind
from smuggling import COMMON, HIDDEN, SOUND, shapes

END_S = 10.0
OTHERS = 2  # who ask after each try


class Application:
    """Answers with what was asked, and counts."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.routes = APIRouter()

        @self.routes.api_route("/{path:path}", methods=["GET", "POST"])
        async def anything(path: str, request: Request) -> Response:
            await request.body()
            self.seen.append(path)
            return Response(path, headers={"x-ours": "1"})


async def raw(port: int, request: bytes) -> bytes:
    """All that comes back until the proxy closes, as the hidden request asks for, or a refusal does."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        await writer.drain()
        async with asyncio.timeout(END_S):
            return await reader.read()
    except OSError:
        return b""  # reset: a refusal as well
    finally:
        writer.transport.abort()


@asynccontextmanager
async def proxied(proxy: Proxy, folder: Path) -> AsyncIterator[tuple[Application, int]]:
    application = Application()
    async with behind(proxy, folder, routers=[application.routes]) as (_, port):
        yield application, port


def client_of(port: int) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False)


def served(answer: bytes) -> int:
    """Responses of ours in it."""
    return len(re.findall(rb"(?i)\r\nx-ours: 1\r\n", answer))


async def test_nobody_gets_anothers_answer(proxy: Proxy, tmp_path: Path) -> None:
    """What a proxy lets pass is one request here as well; what comes after it, over the same connections, is whole."""
    wrong = {}
    async with proxied(proxy, tmp_path) as (application, port), client_of(port) as others:
        for number, (name, request) in enumerate(shapes("POST /echo")):
            answer = await raw(port, request)
            got = [(await others.get(f"/own-{number}-{other}")).text for other in range(OTHERS)]
            expected = [f"own-{number}-{other}" for other in range(OTHERS)]
            tried = application.seen[:-OTHERS]
            if got != expected or len(tried) != served(answer) or tried not in ([], ["echo"], ["echo", "hidden"]):
                wrong[name] = (answer, got, tried)
            application.seen.clear()
    assert wrong == {}


async def test_what_is_sound_passes_and_so_does_what_follows(proxy: Proxy, tmp_path: Path) -> None:
    """Else the test above would hold of a proxy that refuses everything."""
    async with proxied(proxy, tmp_path) as (application, port):
        for head in SOUND.values():
            answer = await raw(port, b"POST /echo HTTP/1.1\r\n" + COMMON + head + HIDDEN)
            assert (served(answer), application.seen) == (2, ["echo", "hidden"])
            application.seen.clear()
