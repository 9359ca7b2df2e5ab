"""The ingest route on the wire, the same whether the protocol class answers or the application."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx
import orjson
import pytest
import pytest_asyncio
import uvicorn
from fastapi import FastAPI, Request, Response

from fix_observations import Observations
from live_streams import CARRIERS, WAIT_S, eventually, the_guard
from planetwire.collect.push.accept import Ingest
from planetwire.datasets.registry import observed_sources
from planetwire.model import Json
from planetwire.model.wire import PUSH_PATH as PATH
from planetwire.web.http import problems
from planetwire.web.live.sse_protocol import make_protocol
from planetwire.web.terminal import ingest

SOURCES = observed_sources()

TOKEN = {"authorization": "Bearer ingest-token"}
Accept = Callable[[Sequence[object]], Awaitable[Sequence[Json]]]


class Pushing:
    """A running server with the route, and a client of it."""

    def __init__(self) -> None:
        self.accept: Accept
        self.asked: list[str] = []  # paths that came to the application
        self.port = 0
        self.http: httpx.AsyncClient
        self.connections: set[Any] = set()

    async def taken(self, raws: Sequence[object]) -> Sequence[Json]:
        """What the endpoint calls; a test may put something else in its place."""
        return await self.accept(raws)

    async def raw(self, *pieces: bytes) -> bytes:
        """What comes back for these bytes until the server closes, each piece in a segment of its own."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        async with asyncio.timeout(WAIT_S):
            answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        return answer


@asynccontextmanager
async def serving(carrier: str, accept: Accept) -> AsyncIterator[Pushing]:
    pushing = Pushing()
    pushing.accept = accept
    endpoint = ingest.IngestEndpoint(pushing.taken, the_guard())
    app = FastAPI()
    problems.install(app)

    @app.middleware("http")
    async def noted(request: Request, go_on: Callable[[Request], Awaitable[Response]]) -> Response:
        pushing.asked.append(request.url.path)
        return await go_on(request)

    app.include_router(ingest.router(endpoint))
    http: Any = make_protocol(None, endpoint) if carrier == "protocol" else "httptools"
    config = uvicorn.Config(app, http=http, lifespan="off", log_config=None, access_log=False, server_header=False)
    server = uvicorn.Server(config)
    config.load()
    server.lifespan = config.lifespan_class(config)
    listener = socket.create_server(("127.0.0.1", 0))
    pushing.port = listener.getsockname()[1]
    await server.startup(sockets=[listener])
    server.server_state.default_headers = [(b"x-every", b"answer")]
    pushing.connections = server.server_state.connections
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{pushing.port}") as pushing.http:
            yield pushing
    finally:
        await server.shutdown(sockets=[listener])


@pytest.fixture(params=CARRIERS)
def carrier(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest_asyncio.fixture
async def pushing(carrier: str, observations: Observations) -> AsyncIterator[Pushing]:
    async with serving(carrier, Ingest(observations.store, observations.clock, SOURCES).accept) as opened:
        yield opened


def patch(city: str = "seoul", temp: object = 20.0, **inner: object) -> bytes:
    return orjson.dumps({"city": city, "changes": {"temp": temp, "obs_time": "2026-05-26T10:00:00Z", **inner}})


def request(body: bytes, *lines: str, length: int | None = None) -> bytes:
    """A whole request as bytes."""
    size = len(body) if length is None else length
    head = [
        f"POST {PATH} HTTP/1.1",
        "Host: localhost",
        "Authorization: Bearer ingest-token",
        f"Content-Length: {size}",
        *lines,
    ]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


async def test_a_patch_is_answered_with_its_revision(pushing: Pushing, carrier: str) -> None:
    """S183, F21: and a second time with the same; the protocol class does not trouble the application for it."""
    first = await pushing.http.post(PATH, content=patch(), headers=TOKEN)
    again = await pushing.http.post(PATH, content=patch(), headers=TOKEN)
    assert (first.status_code, first.json()) == (200, {"revision": 1, "duplicate": False})
    assert (again.status_code, again.json()) == (200, {"revision": 1, "duplicate": True})
    assert first.headers["content-type"] == "application/json"
    assert first.headers["x-every"] == "answer"
    assert pushing.asked == ([] if carrier == "protocol" else [PATH, PATH])


async def test_pushing_needs_the_ingest_token(pushing: Pushing) -> None:
    """Q35: no token 401, a wrong one 403, after too many of these from an address 429; a right one always passes."""
    missing = await pushing.http.post(PATH, content=patch())
    assert (missing.status_code, missing.headers["www-authenticate"]) == (401, "Bearer")
    seen = set()
    for _ in range(12):
        answer = await pushing.http.post(PATH, content=patch(), headers={"authorization": "Bearer guess"})
        assert answer.headers["content-type"] == problems.MEDIA_TYPE
        seen.add((answer.status_code, answer.json()["code"]))
    assert seen == {(403, "forbidden"), (429, "too_many_failures")}
    assert (await pushing.http.post(PATH, content=patch(), headers=TOKEN)).status_code == 200


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "bad_json"),
        (b"", 400, "bad_json"),
        (b"[]", 400, "no_patches"),
        (patch("atlantis"), 400, "unknown_city"),
        (patch(filler="x" * 16_384), 413, "too_large"),
        (b"[" + b",".join([patch()] * 501) + b"]", 413, "too_large"),
        (b" " * (2 * 1024 * 1024 + 1), 413, "too_large"),
    ],
)
async def test_what_is_refused_is_a_problem_document(pushing: Pushing, body: bytes, status: int, code: str) -> None:
    """S189, Q35."""
    answer = await pushing.http.post(PATH, content=body, headers=TOKEN)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.headers["content-type"] == problems.MEDIA_TYPE


async def test_an_array_of_two_megabytes_is_read_piece_by_piece(pushing: Pushing) -> None:
    """Bodies far above what a transport reads at once."""
    body = b"[" + b",".join([patch(filler="x" * 4_000)] * 400) + b"]"
    answer = await pushing.http.post(PATH, content=body, headers=TOKEN)
    assert (answer.status_code, answer.json()["accepted"], answer.json()["duplicates"]) == (200, 400, 399)


async def test_what_is_not_plain_is_the_applications(pushing: Pushing, carrier: str) -> None:
    """A body without a length, one to be asked for, a proxy on this machine: answered the same."""

    async def pieces() -> AsyncIterator[bytes]:
        yield patch()[:10]
        yield patch()[10:]

    chunked = await pushing.http.post(PATH, content=pieces(), headers=TOKEN)
    proxied = await pushing.http.post(PATH, content=patch(), headers={**TOKEN, "x-forwarded-for": "192.0.2.7"})
    asked = await pushing.raw(request(patch(), "Expect: 100-continue", "Connection: close"))
    assert chunked.json() == {"revision": 1, "duplicate": False}
    assert proxied.json() == {"revision": 1, "duplicate": True}
    assert asked.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")
    assert pushing.asked == [PATH] * 3


async def test_only_posts_are_taken(pushing: Pushing) -> None:
    """And other paths stay what they are."""
    assert (await pushing.http.get(PATH)).status_code == 405
    assert (await pushing.http.post(PATH + "/", content=patch(), headers=TOKEN)).status_code in (307, 404)


async def test_requests_sent_ahead_are_answered_in_their_order(pushing: Pushing, observations: Observations) -> None:
    """Three on one connection before the first is answered, cut at odd places; the last asks to close."""
    bodies = [patch("seoul"), patch("taipei"), patch("seoul", 21.0)]
    whole = request(bodies[0]) + request(bodies[1]) + request(bodies[2], "Connection: close")
    answer = await pushing.raw(whole[:50], whole[50:333], whole[333:])
    *_, first, second, third = answer.split(b"HTTP/1.1 200 OK\r\n")
    assert [orjson.loads(part.partition(b"\r\n\r\n")[2])["revision"] for part in (first, second, third)] == [1, 2, 3]
    assert b"connection: close" in third.lower()
    assert [event.topic for event in observations.heard] == ["city:seoul", "city:taipei", "city:seoul"]


async def test_a_failure_of_ours_is_told_and_the_next_push_works(pushing: Pushing) -> None:
    """Whatever the endpoint raises: 500 as a problem document, on a connection that goes on."""
    accept = pushing.accept

    async def broken(raws: Sequence[object]) -> Sequence[Json]:
        raise ZeroDivisionError

    pushing.accept = broken
    answer = await pushing.http.post(PATH, content=patch(), headers=TOKEN)
    pushing.accept = accept
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert (await pushing.http.post(PATH, content=patch(), headers=TOKEN)).status_code == 200


async def test_a_sender_that_goes_away_half_way_stores_nothing(pushing: Pushing, observations: Observations) -> None:
    """Whoever comes next is served."""
    called = asyncio.Event()
    accept = pushing.accept

    async def watched(raws: Sequence[object]) -> Sequence[Json]:
        called.set()
        return await accept(raws)

    pushing.accept = watched
    _, writer = await asyncio.open_connection("127.0.0.1", pushing.port)
    writer.write(request(patch()[:20], length=len(patch())))
    await writer.drain()
    writer.transport.abort()
    assert (await pushing.http.post(PATH, content=patch("taipei"), headers=TOKEN)).json()["revision"] == 1
    assert [event.topic for event in observations.heard] == ["city:taipei"]


async def test_an_answer_on_its_way_is_finished_when_the_server_goes_down(pushing: Pushing) -> None:
    """The connection closes after it."""
    entered, go_on = asyncio.Event(), asyncio.Event()
    accept = pushing.accept

    async def slow(raws: Sequence[object]) -> Sequence[Json]:
        entered.set()
        await go_on.wait()
        return await accept(raws)

    pushing.accept = slow
    answer = asyncio.create_task(pushing.raw(request(patch())))
    await entered.wait()
    for connection in list(pushing.connections):
        connection.shutdown()
    go_on.set()
    assert b'"revision":1' in await answer
    await eventually(lambda: not pushing.connections, "the connection is closed")
