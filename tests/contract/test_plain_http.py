"""PLANETWIRE_PLAIN_HTTP: uvicorn's own protocol serves streams, pushes and sockets as ours does; what can be bounded
before the application still is.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest
import pytest_asyncio
from websockets.asyncio.client import connect

from certificates import self_signed
from front_server import Served, front_server, get, post, upgrade
from live_streams import WAIT_S, SseClient
from planetwire.model.wire import PUSH_MAX_BYTES
from planetwire.model.wire import PUSH_PATH as PUSH
from planetwire.settings import PLAIN_OFF, Settings
from planetwire.supervise import doctor
from planetwire.tls import server_context
from web_processes import STOP_S, web_processes

TOKEN = "Authorization: Bearer ingest-token"
KIB = 1024
CHUNKED = "Transfer-Encoding: chunked"
CHUNK = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"


@pytest_asyncio.fixture
async def served() -> AsyncIterator[Served]:
    async with front_server(plain=True) as opened:
        yield opened


async def test_a_stream_is_replayed_from_its_cursor_and_goes_on_live(served: Served) -> None:
    live = served.live
    for number in range(3):
        live.publish("shanghai", type="x", number=number)
    client = await SseClient.connect(served.port, "/api/events?cities=shanghai&since_revision=1")
    assert [frame["type"] for frame in await client.frames(1)] == ["connected"]
    missed = await client.frames(2)
    live.publish("shanghai", type="x", number=3)
    now = await client.frames(1)
    assert [frame["number"] for frame in missed + now] == [1, 2, 3]
    assert [frame["revision"] for frame in missed + now] == [2, 3, 4]
    live.sse.drain()
    assert await client.frame() is None, "an end, rather than a break"
    assert len(client.retries) == 2, "at the start, and when to return"


async def test_a_push_is_taken_from_who_may(served: Served) -> None:
    patch = orjson.dumps({"city": "shanghai", "changes": {"temp": 21.5}})
    assert (await served.ask(post(PUSH, patch, TOKEN))).json == {"revision": 1, "duplicate": False}
    assert (await served.ask(post(PUSH, patch))).status == 401


async def test_a_socket_hears_what_is_published(served: Served) -> None:
    uri = f"ws://127.0.0.1:{served.port}/ws"
    async with connect(uri, compression=None, proxy=None) as socket, asyncio.timeout(WAIT_S):
        assert orjson.loads(await socket.recv())["type"] == "connected"
        await socket.send(orjson.dumps({"subscribe": ["earth_updates"]}).decode())
        assert orjson.loads(await socket.recv())["type"] == "subscribed"
        served.live.publish_earth("satellites")
        heard = orjson.loads(await socket.recv())
        assert (heard["channel"], heard["revision"]) == ("earth_updates", 1)


@pytest.mark.parametrize(
    ("request_", "status", "code"),
    [
        (get("/api/slow", host="evil.example"), 421, "wrong_host"),
        (get("/api/slow", "Host: localhost"), 400, "bad_request"),
        (get(f"/api/slow?name={'a' * 9 * KIB}"), 414, "uri_too_long"),
        (get("/api/slow", *(f"X-{number}: a" for number in range(128))), 431, "headers_too_large"),
        (get("/api/slow", f"X: {'a' * 33 * KIB}"), 431, "headers_too_large"),
        (post("/api/note", b"x" * (64 * KIB + 1)), 413, "too_large"),
        (get("/api/note", CHUNKED, method="POST") + CHUNK + b"1\r\nx\r\n0\r\n\r\n", 413, "too_large"),
        (get("/api/note", f"Content-Length: {PUSH_MAX_BYTES + 1}", method="POST"), 413, "too_large"),
        (upgrade(host="evil.example"), 421, "wrong_host"),
    ],
    ids=["host", "two hosts", "query", "lines", "head", "body", "chunks", "declared", "socket"],
)
async def test_what_a_request_may_be_is_looked_at_before_the_application(
    served: Served, request_: bytes, status: int, code: str
) -> None:
    answer = await served.ask(request_)
    assert (answer.status, answer.json["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/problem+json"
    assert served.front.refused == {code: 1}
    assert served.taken == [] and not served.entered.is_set()


async def test_what_is_within_its_bounds_passes(served: Served) -> None:
    whole = get("/api/note", "Content-Type: application/json", CHUNKED, method="POST")
    body = b'{"text": "' + b"x" * (64 * KIB - 12) + b'"}'
    chunked = f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"
    assert (await served.ask(whole + chunked)).json == {"taken": 64 * KIB - 12}
    assert (await served.ask(get("/healthz", host="evil.example"))).status == 200, "machines ask by any name"
    assert served.front.refused == {}


async def test_it_speaks_tls(tmp_path: Path) -> None:
    made = self_signed(tmp_path)
    context = server_context(Settings(data_dir=tmp_path, tls_cert=made.cert, tls_key=made.key))
    async with front_server(plain=True, certificate=context, trust=made.trust()) as served:
        assert (await served.ask(get("/healthz"))).status == 200


async def test_the_process_says_what_is_off_and_ends_its_streams_when_it_is_told_to_end(tmp_path: Path) -> None:
    """The whole web process, with its own store: a signal is seen without a class of ours that would be told."""
    async with web_processes(tmp_path) as processes:
        process = await processes.begin(plain_http="true")
        assert (await process.said("web.server.plain"))["off"] == PLAIN_OFF
        process.url = (await process.said("web.server.started"))["url"]
        port = int(process.url.rpartition(":")[2])
        before = await processes.revision(process, "shanghai", 1)
        client = await SseClient.connect(port, f"/api/events?cities=shanghai&since_revision={before - 1}")
        assert (await client.until("city_observation_patch.v1"))["revision"] == before
        after = await processes.revision(process, "shanghai", 2)
        assert (await client.until("city_observation_patch.v1"))["revision"] == after
        process.process.send_signal(signal.SIGTERM)
        while await client.frame() is not None:
            pass
        assert len(client.retries) == 2, "its clients are told when to return"
        async with asyncio.timeout(STOP_S):
            assert await process.process.wait() == 0


def test_doctor_warns_of_it(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, halves="terminal", plain_http=True)
    steps = {step["step"]: step for step in doctor.examine(settings)}
    assert steps["protocol"]["ok"], "a warning stops nothing"
    assert [found["code"] for found in steps["protocol"]["findings"]] == ["plain_http"]
    assert "protocol" not in {step["step"] for step in doctor.examine(Settings(data_dir=tmp_path, halves="terminal"))}
