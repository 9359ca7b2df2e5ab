"""Headers that protect a browser stand on every answer, whoever made it: the application, the protocol class, uvicorn,
the WebSocket library.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from front_server import Answer, Served, front_server, get, post, upgrade
from planetwire.model.wire import PUSH_PATH as PUSH
from planetwire.web.http.security import NOTHING, page_policy

TOKEN = "Authorization: Bearer ingest-token"
ANSWERS = {
    "route": (get("/healthz"), 200),
    "problem": (post("/api/note", b"{"), 400),
    "no route": (get("/api/nothing"), 404),
    "wrong method": (post("/healthz", b""), 405),
    "no page": (get("/nothing.js"), 404),
    "HEAD": (get("/healthz", method="HEAD"), 200),
    "push": (post(PUSH, b"{}", TOKEN), 200),
    "refused push": (post(PUSH, b"{}"), 401),
    "stream": (get("/api/events?cities=shanghai"), 200),
    "refused stream": (get("/api/events?cities="), 400),
    "no request": (b"GET /\x01\r\n\r\n", 400),
    "wrong host": (get("/", host="evil.example"), 421),
    "headers": (get("/", f"X: {'a' * 40_000}"), 431),
    "url": (get("/" + "a" * 9_000), 414),
    "body": (get("/api/note", "Content-Length: 99999", method="POST"), 413),
    "socket": (upgrade(), 101),
    "refused socket": (upgrade("Origin: http://evil.example"), 403),
    "no such socket": (upgrade(path="/nothing"), 403),
    "no socket": (get("/ws", "Upgrade: websocket", "Connection: Upgrade"), 400),
}


@pytest_asyncio.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<!doctype html>")
    (tmp_path / "assets" / "worker.js").write_text("// a worker")
    async with front_server(static=tmp_path) as opened:
        yield opened


def always(answer: Answer) -> None:
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "same-origin"


@pytest.mark.parametrize("name", list(ANSWERS))
async def test_whatever_is_no_page_may_do_nothing(served: Served, name: str) -> None:
    sent, status = ANSWERS[name]
    raw = await served.open()
    await raw.send(sent)
    head = (await raw.reader.readuntil(b"\r\n\r\n")).decode()
    lines = head.strip().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
    assert int(lines[0].split()[1]) == status
    always(Answer(status, headers, b""))
    assert headers["content-security-policy"] == NOTHING
    assert all(head.lower().count(f"\r\n{each}:") == 1 for each in ("content-security-policy", "referrer-policy"))


@pytest.mark.parametrize("path", ["/", "/earth", "/assets/worker.js"])
async def test_a_page_may_speak_to_its_own_host_only(served: Served, path: str) -> None:
    """A worker obeys the policy of its own file."""
    answer = await served.ask(get(path, "Accept: text/html", host="localhost:8000"))
    always(answer)
    policy = dict(part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; "))
    assert policy["connect-src"] == "'self' ws://localhost:8000 wss://localhost:8000"
    assert policy["base-uri"] == policy["frame-ancestors"] == policy["object-src"] == "'none'"
    assert policy["form-action"] == policy["default-src"] == "'self'"


@pytest.mark.parametrize("host", ["", "[::1]:8000", "a b", "x;script-src *", "x,y", "é"])
def test_a_host_that_the_policy_cannot_name_is_left_out(host: str) -> None:
    assert "connect-src 'self';" in page_policy(host)


async def test_an_answer_with_a_policy_of_its_own_keeps_it(served: Served) -> None:
    app = served.server.config.loaded_app
    (api,) = [served.server.config.app]

    @api.get("/api/own", include_in_schema=False)  # type: ignore[attr-defined]
    async def own() -> object:
        from fastapi.responses import HTMLResponse

        return HTMLResponse("", headers={"Content-Security-Policy": "default-src 'self'"})

    api.router.routes.insert(0, api.router.routes.pop())  # type: ignore[attr-defined]
    assert app is not None
    answer = await served.ask(get("/api/own"))
    assert answer.headers["content-security-policy"] == "default-src 'self'"
