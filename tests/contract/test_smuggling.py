"""What held: a request whose end is not plain is 400 and the end of its connection, on every carrier alike.

Our protocol class answers streams and pushes by itself, the framework everything else; neither may see a request where
the other, or a proxy in front, sees a body.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
import pytest_asyncio
from fastapi import APIRouter, Request

from live_streams import WAIT_S, Live, SseClient, eventually, live_server, the_guard
from planetwire.model import Json
from planetwire.model.wire import PUSH_PATH
from planetwire.web.terminal import ingest
from smuggling import COMMON, HIDDEN, SOUND, shapes

STREAM = "/api/events?cities=shanghai"
PATCH = "city_observation_patch.v1"
LINES = {"stream": f"GET {STREAM}", "push": f"POST {PUSH_PATH}", "application": "POST /echo"}


@dataclass
class Carriers:
    """A server with all three, and what came to its own code."""

    live: Live
    seen: list[str] = field(default_factory=list)


async def raw(port: int, *pieces: bytes) -> bytes:
    """All that comes back until the server closes; each piece is sent once the one before is on its way."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        async with asyncio.timeout(WAIT_S):
            return await reader.read()
    finally:
        writer.transport.abort()


def statuses(answer: bytes) -> list[int]:
    """Of all responses in it."""
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", answer)]


@asynccontextmanager
async def opened(carrier: str) -> AsyncIterator[Carriers]:
    seen: list[str] = []
    routes = APIRouter()

    @routes.api_route("/{path:path}", methods=["GET", "POST"])
    async def anything(path: str, request: Request) -> dict[str, int]:
        body = await request.body()
        seen.append(path)
        return {"bytes": len(body)}

    async def accept(raws: Sequence[object]) -> Sequence[Json]:
        seen.append("pushed")
        return [{"revision": 1, "duplicate": False} for _ in raws]

    pushed = ingest.IngestEndpoint(accept, the_guard())
    routers = [ingest.router(pushed), routes]
    async with live_server(carrier, protocol={"pushed": pushed}, routers=routers) as live:
        yield Carriers(live, seen)


@pytest_asyncio.fixture(params=["protocol", "route"])
async def carriers(request: pytest.FixtureRequest) -> AsyncIterator[Carriers]:
    async with opened(request.param) as found:
        yield found


@pytest.mark.parametrize("where", LINES)
async def test_a_request_with_an_unclear_end_is_400_and_the_end_of_its_connection(
    carriers: Carriers, where: str
) -> None:
    """And what hides behind it reaches nobody."""
    wrong = {}
    for name, request in shapes(LINES[where]):
        answer = await raw(carriers.live.port, request)
        if statuses(answer) != [400] or carriers.seen:
            wrong[name] = (statuses(answer), list(carriers.seen))
        carriers.seen.clear()
    assert wrong == {}
    await eventually(lambda: carriers.live.limits.connections == 0, "a refused stream keeps its slot")


@pytest.mark.parametrize("where", ["push", "application"])
async def test_a_body_that_turns_out_wrong_later_is_the_end_of_its_connection_too(
    carriers: Carriers, where: str
) -> None:
    """The head is good and gone when the bad chunk comes: nothing of it is taken, and nothing behind it."""
    head = f"{LINES[where]} HTTP/1.1\r\n".encode() + COMMON + b"Transfer-Encoding: chunked\r\n\r\n"
    answer = await raw(carriers.live.port, head, b"2\r\n{}\r\n", b"zz\r\n" + HIDDEN)
    assert statuses(answer) in ([400], [])
    assert carriers.seen == []


@pytest.mark.parametrize("name", SOUND)
async def test_the_same_without_fault_is_answered_and_so_is_what_follows(carriers: Carriers, name: str) -> None:
    """Else the tests above would hold of a server that refuses everything."""
    for where in ("push", "application"):
        answer = await raw(carriers.live.port, f"{LINES[where]} HTTP/1.1\r\n".encode() + COMMON + SOUND[name] + HIDDEN)
        assert statuses(answer) == [200, 200]
        assert carriers.seen == ["pushed" if where == "push" else "echo", "hidden"]
        carriers.seen.clear()


# --- pipelining around the stream


def get(path: str, *lines: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: localhost", *lines]).encode() + b"\r\n\r\n"


async def test_a_stream_asked_for_behind_other_requests_comes_after_their_answers(carriers: Carriers) -> None:
    """Sent ahead in one piece: each answer whole and in its order, then the stream, live."""
    live = carriers.live
    reader, writer = await asyncio.open_connection("127.0.0.1", live.port)
    client = SseClient(reader, writer)
    writer.write(get("/one") + get("/two") + get(STREAM))
    async with asyncio.timeout(WAIT_S):
        for _ in range(2):
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200")
            assert await reader.readexactly(len(b'{"bytes":0}')) == b'{"bytes":0}'
        head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200") and b"text/event-stream" in head
    client.headers = {"transfer-encoding": "chunked"} if b"chunked" in head.lower() else {}
    await client.until("connected")
    live.publish("shanghai", type=PATCH, temp=1)
    assert (await client.until(PATCH))["temp"] == 1
    assert carriers.seen == ["one", "two"]
    await client.close()


async def test_what_is_sent_behind_a_stream_is_never_a_request(carriers: Carriers) -> None:
    """A stream has no end: nothing behind it is answered, in one piece or later, and no event of it is lost."""
    live = carriers.live
    ahead = {"x-first": "1\r\n\r\n" + get("/behind").decode().removesuffix("\r\n\r\n")}
    client = await SseClient.connect(live.port, STREAM, headers=ahead)
    await client.until("connected")
    client.writer.write(get("/later"))
    await client.writer.drain()
    for temp in range(3):
        live.publish("shanghai", type=PATCH, temp=temp)
        assert (await client.until(PATCH))["temp"] == temp
    assert carriers.seen == []
    assert live.limits.connections == 1


async def test_behind_a_stream_that_was_refused_nothing_is_answered_by_the_protocol_class() -> None:
    """It closes after its refusal; the framework, whose connection goes on, answers what follows, in order."""
    async with opened("protocol") as carriers:
        answer = await raw(carriers.live.port, get("/api/events?cities=") + get("/behind"))
        assert (statuses(answer), carriers.seen) == ([400], [])
    async with opened("route") as carriers:
        answer = await raw(carriers.live.port, get("/api/events?cities=") + get("/behind", "Connection: close"))
        assert (statuses(answer), carriers.seen) == ([400, 200], ["behind"])
