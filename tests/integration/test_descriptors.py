"""A web process with few descriptors, as the product runs it: whatever holds them, health goes on being answered."""

from __future__ import annotations

import asyncio
import resource
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from web_processes import WebProcess, web_processes

DESCRIPTORS = 400
RESERVED = 16
SILENT = 2_000
ASK_EVERY = 100
STREAM = b"GET /api/events?cities=shanghai HTTP/1.1\r\nHost: localhost\r\n\r\n"
HALF = b"GET /healthz HTTP/1.1\r\nHost: loc"


@pytest.fixture(autouse=True)
def many() -> Iterator[None]:
    """The test itself holds all of them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, SILENT * 2), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest_asyncio.fixture
async def web(tmp_path: Path) -> AsyncIterator[WebProcess]:
    async with web_processes(tmp_path, DESCRIPTORS) as processes:
        (process,) = await processes.serve({}, stream__max_per_address="1000")
        yield process


class Crowd:
    """Connections that are held until the end."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.held: list[socket.socket] = []

    async def join(self, sent: bytes) -> socket.socket:
        sock = socket.socket()
        sock.setblocking(False)
        self.held.append(sock)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(sock, ("127.0.0.1", self.port))
        if sent:
            await loop.sock_sendall(sock, sent)
        return sock

    def open(self) -> int:
        """Those that the server has not closed."""
        return sum(_open(sock) for sock in self.held)

    def leave(self) -> None:
        for sock in self.held:
            sock.close()


def _open(sock: socket.socket) -> bool:
    try:
        return bool(sock.recv(65_536))
    except BlockingIOError:
        return True
    except OSError:
        return False


@pytest.fixture
def crowd(web: WebProcess) -> Iterator[Crowd]:
    made = Crowd(web.port)
    yield made
    made.leave()


async def healthy(web: WebProcess) -> bool:
    async with httpx.AsyncClient(base_url=web.url, trust_env=False, timeout=60) as http:
        return (await http.get("/healthz")).status_code == 200


@pytest.mark.parametrize("sent", [b"", HALF], ids=["silent", "half a head"])
async def test_health_is_answered_while_two_thousand_say_nothing(web: WebProcess, crowd: Crowd, sent: bytes) -> None:
    """E7: they held every descriptor, and everybody else was refused. The oldest go, the newest stay."""
    for number in range(SILENT):
        await crowd.join(sent)
        if number % ASK_EVERY == 0:
            assert await healthy(web)
    assert await healthy(web)
    held = crowd.open()
    assert DESCRIPTORS / 2 < held < DESCRIPTORS - RESERVED
    assert _open(crowd.held[-1])
    assert not _open(crowd.held[0])


async def test_the_reserve_is_not_for_streams(web: WebProcess, crowd: Crowd) -> None:
    """Accepted work is never closed for another's; who comes too late is told so, and health is answered."""
    loop = asyncio.get_running_loop()
    answers: list[bytes] = []
    for _ in range(DESCRIPTORS + 20):
        sock = await crowd.join(STREAM)
        async with asyncio.timeout(60):
            answers.append((await loop.sock_recv(sock, 65_536))[:12])
    served = answers.count(b"HTTP/1.1 200")
    assert DESCRIPTORS / 2 < served < DESCRIPTORS - RESERVED
    assert answers[served:] == [b"HTTP/1.1 503"] * (len(answers) - served)
    assert await healthy(web)
    assert all(_open(sock) for sock in crowd.held[:served])
