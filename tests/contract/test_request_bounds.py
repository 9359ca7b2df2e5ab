"""What a stranger may send, on every way in: the application's routes, pushes, streams, sockets. No test waits on time:
deadlines are short, and each test waits for what the server does.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from front_server import Raw, Served, front_server, get, post, upgrade
from live_streams import eventually
from planetwire.model.wire import PUSH_PATH as PUSH
from planetwire.web.http.bounded_protocol import LINGER_BYTES, PIPELINED_MAX
from planetwire.web.http.front import BODIES, Wait

SHORT_S = 0.05
KIB = 1024
TOKEN = "Authorization: Bearer ingest-token"
WAYS_IN = {
    "route": get("/api/slow")[:-2],
    "push": get(PUSH, TOKEN, "Content-Length: 2", method="POST")[:-2],
    "stream": get("/api/events?cities=shanghai")[:-2],
    "socket": upgrade()[:-2],
}


@pytest_asyncio.fixture
async def served() -> AsyncIterator[Served]:
    async with front_server() as opened:
        yield opened


@pytest.fixture(params=list(WAYS_IN))
def way(request: pytest.FixtureRequest) -> bytes:
    """All of a head but its end."""
    return WAYS_IN[request.param]


# --- headers


async def test_headers_over_their_bytes_are_refused(served: Served, way: bytes) -> None:
    """E7: on an upgrade too, which was never answered."""
    answer = await served.ask(way + b"X: " + b"a" * 70_000 + b"\r\n\r\n")
    answer.is_problem(431, "headers_too_large")
    lines = b"".join(b"X-%d: %s\r\n" % (number, b"a" * 7_000) for number in range(5))
    (await served.ask(way + lines + b"\r\n")).is_problem(431, "headers_too_large")


async def test_headers_within_their_bytes_are_read(served: Served) -> None:
    lines = [f"X-{number}: {'a' * 7_000}" for number in range(4)]
    assert (await served.ask(post("/api/note", b"{}", *lines))).status == 200
    raw = await served.open()
    await raw.send(upgrade(*lines))
    assert (await raw.answer()).status == 101
    raw.close()


async def test_header_lines_are_counted(served: Served, way: bytes) -> None:
    (await served.ask(way + b"a:b\r\n" * 130 + b"\r\n")).is_problem(431, "headers_too_large")


@pytest.mark.parametrize("piece", [b"a" * 65_536, b"a:b\r\n" * 13_000, b"\r\n" * 30_000, b" \t" * 30_000])
async def test_headers_without_an_end_are_not_kept(served: Served, way: bytes, piece: bytes) -> None:
    """E8: 100 MB of one line, 20 MB of `a:b` lines; counted as they come, also what the parser keeps to itself."""
    raw = await served.open()
    await raw.send(way if piece[:1] != b"\r" else b"")
    await raw.send(b"X: " if piece[:1] in b" a" and b":" not in piece else b"")
    kept: list[int] = []

    def seen() -> None:
        for connection in served.server.server_state.connections:
            kept.append(len(connection.headers or ()))

    sent = 0
    while sent < 200 and not raw.reader._buffer and not raw.reader.at_eof():  # type: ignore[attr-defined]
        await raw.send(piece)
        await asyncio.sleep(0)
        seen()
        sent += 1
    assert sent < 200, "it goes on reading"
    (await raw.answer()).is_problem(431, "headers_too_large")
    assert max(kept) <= served.front.settings.header_lines + 1
    raw.close()


async def test_a_url_over_its_bytes_is_refused(served: Served) -> None:
    (await served.ask(get("/" + "a" * 8_192))).is_problem(414, "uri_too_long")
    (await served.ask(get("/api/events?cities=" + "a" * 8_192))).is_problem(414, "uri_too_long")
    (await served.ask(upgrade(path="/ws?" + "a" * 8_100))).is_problem(414, "uri_too_long")
    assert (await served.ask(get("/api/slow?" + "a" * 8_000, method="POST"))).status == 405


# --- bodies


@pytest.mark.parametrize(("path", "limit"), [("/api/note", 64 * KIB), ("/api/bodiless", 64 * KIB), (PUSH, 2048 * KIB)])
async def test_a_declared_body_is_refused_before_it_is_sent(served: Served, path: str, limit: int) -> None:
    """Each route has its own bound; nothing is read, nobody signed in."""
    (await served.ask(get(path, f"Content-Length: {limit + 1}", method="POST"))).is_problem(413, "too_large")
    asked = get(path, f"Content-Length: {limit + 1}", "Expect: 100-continue", method="POST")
    (await served.ask(asked)).is_problem(413, "too_large")
    assert served.taken == []


@pytest.mark.parametrize(("path", "limit"), [("/api/note", 64 * KIB), ("/api/bodiless", 64 * KIB), (PUSH, 2048 * KIB)])
async def test_a_chunked_body_is_refused_as_soon_as_it_goes_over(served: Served, path: str, limit: int) -> None:
    """E2: 300 MB of zeros, no sign-in; the application never holds more than its bound."""
    raw = await served.open()
    await raw.send(get(path, TOKEN, "Transfer-Encoding: chunked", method="POST"))
    piece = b"4000\r\n" + b"\0" * 16 * KIB + b"\r\n"
    taken = await raw.flood(piece, 20_000)
    assert taken * 16 * KIB < limit + 8 * KIB * KIB, "a socket's buffers, and no more"
    answer = await raw.answer()
    if path != "/api/bodiless":  # which answers at once, whatever comes after
        answer.is_problem(413, "too_large")
        assert served.taken == []
    raw.close()


async def test_bodies_within_their_bounds_are_taken(served: Served) -> None:
    text = b'{"text": "%s"}' % (b"x" * (64 * KIB - 12))
    assert (await served.ask(post("/api/note", text))).json == {"taken": 64 * KIB - 12}
    chunks = b"".join(
        b"%x\r\n%s\r\n" % (len(text[at : at + 999]), text[at : at + 999]) for at in range(0, len(text), 999)
    )
    whole = get("/api/note", "Content-Type: application/json", "Transfer-Encoding: chunked", method="POST")
    assert (await served.ask(whole + chunks + b"0\r\n\r\n")).json == {"taken": 64 * KIB - 12}
    patches = b"[" + b" " * (BODIES[PUSH.encode()] - 4) + b"{}]"
    assert (await served.ask(post(PUSH, patches, TOKEN))).status == 200


@pytest.mark.parametrize("tail", [b"5;" + b"a" * 80_000, b"0\r\n" + b"a:b\r\n" * 20_000, b"0\r\nX: " + b"a" * 80_000])
async def test_what_stands_around_chunks_is_bounded_too(served: Served, tail: bytes) -> None:
    raw = await served.open()
    await raw.send(get("/api/note", "Transfer-Encoding: chunked", method="POST") + tail)
    (await raw.answer()).is_problem(431, "headers_too_large")
    raw.close()


async def test_a_line_after_the_body_is_nobodys(served: Served) -> None:
    """A trailer that comes with its request would have been one of its headers: the application starts after both."""
    raw = await served.open()
    await raw.send(get("/api/slow", "Transfer-Encoding: chunked") + b"0\r\nx-forwarded-for: 192.0.2.7\r\nx: y\r\n\r\n")
    await served.entered.wait()
    (connection,) = served.server.server_state.connections
    assert b"x-forwarded-for" not in dict(connection.cycle.scope["headers"])
    served.go_on.set()
    assert (await raw.answer()).status == 200
    raw.close()


async def test_an_upgrade_has_no_body(served: Served) -> None:
    """E7: it was waited for, and never answered."""
    (await served.ask(upgrade("Content-Length: 5"))).is_problem(413, "too_large")
    (await served.ask(upgrade("Transfer-Encoding: chunked"))).is_problem(413, "too_large")
    (await served.ask(upgrade(f"X: {'a' * 8_001}"))).is_problem(431, "headers_too_large")


# --- time


@pytest.mark.parametrize(
    "sent", [b"", b"GET / HT", get("/api/slow")[:-2]], ids=["nothing", "a line", "all but the end"]
)
async def test_headers_that_do_not_come_are_not_waited_for(sent: bytes) -> None:
    """E7: silent TCP, half the headers."""
    async with front_server(header_s=SHORT_S) as served:
        (await served.ask(sent)).is_problem(408, "request_timeout")


@pytest.mark.parametrize("path", ["/api/note", PUSH])
async def test_a_body_that_does_not_come_is_not_waited_for(path: str) -> None:
    """E7: one byte after another does not help: the time is that of the whole body."""
    async with front_server(body_s=SHORT_S) as served:
        raw = await served.open()
        await raw.send(get(path, TOKEN, "Content-Length: 1000", method="POST"))
        while not raw.reader._buffer:  # type: ignore[attr-defined]
            await raw.send(b" ")
            await asyncio.sleep(0.01)
        (await raw.answer()).is_problem(408, "request_timeout")
        assert served.taken == []
        raw.close()


async def test_a_connection_that_asks_nothing_more_is_closed() -> None:
    """Without a word: there is no request to answer. A further request has the time of its own headers."""
    async with front_server(idle_s=SHORT_S, header_s=SHORT_S) as served:
        raw = await served.open()
        await raw.send(post("/api/note", b"{}"))
        assert (await raw.answer()).status == 200
        assert await raw.ended() == b""
        again = await served.open()
        await again.send(post("/api/note", b"{}") + b"GET /api/s")
        assert (await again.answer()).status == 200
        (await again.answer()).is_problem(408, "request_timeout")


async def test_an_answer_that_takes_long_is_waited_for() -> None:
    """Only what the client owes has a deadline; nor is it late with what we do not read."""
    async with front_server(header_s=SHORT_S, body_s=SHORT_S, idle_s=SHORT_S) as served:
        raw = await served.open()
        await raw.send(get("/api/slow?name=a") + get("/api/slow?name=b") + b"GET /api/slow?name=c HT")
        await served.entered.wait()
        (connection,) = served.server.server_state.connections
        at, served.front._now = served.front._now, lambda: at() + 3_600
        served.front.sweep()
        served.front._now = at
        assert connection.waits is Wait.HEAD  # type: ignore[union-attr]
        served.go_on.set()
        assert [(await raw.answer()).json for _ in range(2)] == [{"name": "a"}, {"name": "b"}]
        raw.close()


async def test_live_streams_and_sockets_are_in_no_queue(served: Served) -> None:
    """Ten thousand of them cost no sweep and no timer."""
    stream, socket = await served.open(), await served.open()
    await stream.send(get("/api/events?cities=shanghai"))
    await socket.send(upgrade())
    assert (await socket.answer()).status == 101
    assert (await stream.answer()).status == 200
    assert [len(queue) for queue in served.front._queues] == [0, 0, 0, 0]
    assert served.front._open == 2
    stream.close()
    socket.close()
    await eventually(lambda: served.front._open == 0, "both are gone")


# --- several requests on one connection


async def test_a_refusal_waits_for_the_answers_before_it(served: Served) -> None:
    """And is the last: what comes after it is not looked at."""
    raw = await served.open()
    await raw.send(
        get("/api/slow?name=a") + get("/api/slow?name=b") + get("/x", host="evil.example") + get("/api/slow")
    )
    await served.entered.wait()
    served.go_on.set()
    assert (await raw.answer()).json == {"name": "a"}
    assert (await raw.answer()).json == {"name": "b"}
    (await raw.answer()).is_problem(421, "wrong_host")
    assert await raw.ended() == b""


async def test_a_queued_body_that_goes_over_is_refused_after_the_answers_before_it(served: Served) -> None:
    raw = await served.open()
    chunked = get("/api/note", "Transfer-Encoding: chunked", method="POST")
    await raw.send(get("/api/slow?name=a") + chunked + b"11000\r\n" + b"x" * 0x11000)
    await served.entered.wait()
    served.go_on.set()
    assert (await raw.answer()).json == {"name": "a"}
    (await raw.answer()).is_problem(413, "too_large")
    assert served.taken == []


async def test_requests_sent_ahead_are_bounded(served: Served) -> None:
    """Those beyond are not taken; the last that is says so."""
    raw = await served.open()
    await raw.send(get("/api/slow") * 2_000)
    await served.entered.wait()
    (connection,) = served.server.server_state.connections
    assert len(connection.pipeline) == PIPELINED_MAX
    served.go_on.set()
    answers = [await raw.answer() for _ in range(1 + PIPELINED_MAX)]
    assert [answer.status for answer in answers] == [200] * (1 + PIPELINED_MAX)
    assert ["connection" in answer.headers for answer in answers] == [False] * PIPELINED_MAX + [True]
    assert await raw.ended() == b""


async def test_an_upgrade_behind_an_unanswered_request_is_not_taken(served: Served) -> None:
    """Two protocols would write to one connection."""
    raw = await served.open()
    await raw.send(get("/api/slow?name=a") + upgrade())
    await served.entered.wait()
    served.go_on.set()
    answer = await raw.answer()
    assert (answer.json, answer.headers["connection"]) == ({"name": "a"}, "close")
    assert await raw.ended() == b""


async def test_a_refused_client_that_goes_on_sending_is_cut(served: Served) -> None:
    """It is read for a while, so that it can read why; not for ever."""
    raw = await served.open()
    await raw.send(get("/", host="evil.example"))
    (await raw.answer()).is_problem(421, "wrong_host")
    for _ in range(64):
        await raw.send(b"a" * (LINGER_BYTES // 8))
    await eventually(lambda: not served.server.server_state.connections, "it is cut")


async def test_what_is_no_request_is_a_problem_document(served: Served) -> None:
    for sent in (
        b"\x16\x03\x01\x00\xf4",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nA\0: b\r\n\r\n",
        b"GET /\x01 HTTP/1.1\r\n\r\n",
    ):
        (await served.ask(sent)).is_problem(400, "bad_request")


async def test_refusals_are_counted_by_their_code(served: Served) -> None:
    await served.ask(get("/", host="evil.example"))
    await served.ask(get("/" + "a" * 9_000))
    await served.ask(get("/" + "a" * 9_000))
    assert served.front.refused == {"wrong_host": 1, "uri_too_long": 2}


# --- descriptors


async def test_only_health_is_answered_from_the_reserve() -> None:
    """Where every other descriptor is held by accepted work."""
    async with front_server(descriptors=1) as served:
        answer = await served.ask(get("/healthz", host="anything.example"))
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        await eventually(lambda: served.front._open == 0, "it is closed")
        (await served.ask(get("/api/slow"))).is_problem(503, "too_many_connections")


async def test_the_oldest_without_a_request_is_closed_for_a_newer_one(served: Served) -> None:
    first: list[Raw] = [await served.open() for _ in range(3)]
    await first[0].send(get("/api/slow?name=kept"))
    await served.entered.wait()
    await eventually(lambda: served.front._open == 3, "all are known")
    served.front._reserve_from = served.front._others + 3
    newest = await served.open()
    assert await first[1].ended() == b""
    await newest.send(post("/api/note", b"{}"))
    assert (await newest.answer()).status == 200
    served.go_on.set()
    assert (await first[0].answer()).json == {"name": "kept"}
    for raw in (first[2], newest):
        raw.close()
