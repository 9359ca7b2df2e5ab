"""A name that is not ours is refused before anything else, on every way in; only health is asked by any name."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from front_server import Served, front_server, get, post, upgrade
from planetwire.model.wire import PUSH_PATH as PUSH
from planetwire.web.http.hosts import AllowedHosts

EVIL = "evil.example:8000"
WAYS_IN = {
    "page": get("/", host=EVIL),
    "route": get("/api/slow", host=EVIL),
    "body": get("/api/note", "Content-Length: 99999", host=EVIL, method="POST"),
    "push": get(PUSH, "Content-Length: 2", "Authorization: Bearer ingest-token", host=EVIL, method="POST") + b"{}",
    "stream": get("/api/events?cities=shanghai", host=EVIL),
    "socket": upgrade(f"Origin: http://{EVIL}", host=EVIL),
    "absolute target": get(f"http://{EVIL}/api/slow"),
    "empty": get("/api/slow", host=""),
    "tunnel": get(EVIL, method="CONNECT"),
}


@pytest_asyncio.fixture
async def served() -> AsyncIterator[Served]:
    async with front_server(hosts=AllowedHosts(["earth.example.org"])) as opened:
        yield opened


@pytest.mark.parametrize("sent", list(WAYS_IN.values()), ids=list(WAYS_IN))
async def test_a_name_that_is_not_ours_is_refused(served: Served, sent: bytes) -> None:
    """Also with the Origin that goes with it: that is how a foreign page would come in."""
    (await served.ask(sent)).is_problem(421, "wrong_host")
    assert served.live.limits.connections == 0
    assert not served.entered.is_set()


@pytest.mark.parametrize("host", ["earth.example.org", "EARTH.example.org:443", "127.0.0.1:8000", "[::1]", "localhost"])
async def test_our_own_names_are_taken(served: Served, host: str) -> None:
    assert (await served.ask(get("/api/nothing", host=host))).status == 404
    raw = await served.open()
    await raw.send(upgrade(f"Origin: https://{host}", host=host))
    assert (await raw.answer()).status == 101


async def test_health_is_asked_by_any_name(served: Served) -> None:
    assert (await served.ask(get("/healthz", host="10-0-0-7.pod.cluster.example"))).status == 200
    assert (await served.ask(get("/healthz?now", host="evil.example"))).status == 200
    assert (await served.ask(b"GET /healthz HTTP/1.1\r\n\r\n")).status == 200
    (await served.ask(get("/healthz/../", host="evil.example"))).is_problem(421, "wrong_host")


async def test_a_request_has_one_host(served: Served) -> None:
    """RFC 9112, 3.2. Older programs have none, and are no browsers."""
    (await served.ask(get("/api/nothing", "Host: evil.example"))).is_problem(400, "bad_request")
    (await served.ask(b"GET /api/nothing HTTP/1.1\r\n\r\n")).is_problem(400, "bad_request")
    assert (await served.ask(b"GET /api/nothing HTTP/1.0\r\n\r\n")).status == 404
    (await served.ask(b"GET /api/nothing HTTP/1.0\r\nHost: evil.example\r\n\r\n")).is_problem(421, "wrong_host")


async def test_what_stands_behind_a_refused_request_is_not_looked_at(served: Served) -> None:
    raw = await served.open()
    await raw.send(get("/", host=EVIL) + post("/api/note", b"{}"))
    (await raw.answer()).is_problem(421, "wrong_host")
    assert await raw.ended() == b""
    assert served.taken == []
