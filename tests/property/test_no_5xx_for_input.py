"""Whatever a request holds, over every route of the application: no 5xx, and at most one bounded line in the log.

The routes are those of the application's own table: a new one is in this test by itself.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote_from_bytes

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asgi_asking import LINE_MAX, Asked, Operation, ask, lines_of_log, operations, talk
from fix_earth import INGEST, TOKEN, Earth, running_earth
from fix_postgres import database_of
from long_form import examples
from nasty import BODIES, HEADERS, MESSAGES, NASTY
from planetwire.database.postgres import open_pool
from planetwire.supervise.embedded_postgres import EmbeddedPostgres

EXAMPLES = examples(120)
QUERY = ("limit", "source", "cursor", "status", "q", "layer", "ids", "cities", "since_revision", "replay_limit")
ADMIN = (b"authorization", b"Bearer " + TOKEN.encode())
INGESTS = (b"authorization", b"Bearer " + INGEST.encode())
JSON = (b"content-type", b"application/json")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029]")


class Asker:
    """The real application – both halves, real stores, its loops running – on a loop of its own."""

    def __init__(self, dsn: str, folder: Path) -> None:
        self.runner = asyncio.Runner()
        self.stack = AsyncExitStack()
        self.earth: Earth = self.runner.run(self._open(dsn, folder))
        self.operations = operations(self.earth.web.app)
        self.server = ("127.0.0.1", int(self.earth.url.rpartition(":")[2]))

    async def _open(self, dsn: str, folder: Path) -> Earth:
        pool = await open_pool(dsn, application="test")
        self.stack.push_async_callback(pool.close)
        return await self.stack.enter_async_context(running_earth(dsn, pool, folder))

    def close(self) -> None:
        self.runner.run(self.stack.aclose())
        self.runner.close()

    def check(self, asked: Asked, messages: list[str | bytes] | None = None) -> int:
        """Ask, and hold what this file promises."""
        app, frames, status = self.earth.web.app, [], 0
        with lines_of_log() as lines:
            if asked.method == "WEBSOCKET":
                frames = self.runner.run(talk(app, asked, messages or [], self.server))
            else:
                status = self.runner.run(ask(app, asked, self.server))
        shown = f"{asked.method} {asked.target[:200]!r} {asked.headers} {asked.body[:200]!r} {str(messages)[:200]}"
        assert status < 500, shown
        assert all(frame.get("status", 0) < 500 for frame in frames), shown
        assert len(lines) <= 1, (shown, lines)
        assert all(len(line) <= LINE_MAX and not CONTROL.search(line) for line in lines), (shown, lines)
        return status


@pytest.fixture(scope="module")
def asker(pg_cluster: EmbeddedPostgres) -> Iterator[Asker]:
    with database_of(pg_cluster) as dsn, tempfile.TemporaryDirectory() as folder:
        made = Asker(dsn, Path(folder))
        try:
            yield made
        finally:
            made.close()


def path_of(operation: Operation, value: bytes) -> bytes:
    """The route's path with the value in each of its places."""
    return re.sub(rb"\{[^}]*\}", lambda _: quote_from_bytes(value, safe="").encode(), operation.path.encode())


def query_of(names: tuple[str, ...], value: bytes) -> bytes:
    return b"&".join(name.encode() + b"=" + quote_from_bytes(value).encode() for name in names)


def usual(operation: Operation) -> list[tuple[bytes, bytes]]:
    """The right of whoever may do it: else every request would end at the door."""
    return [INGESTS if "internal" in operation.path else ADMIN, JSON]


def test_the_table_is_the_application_s_own(asker: Asker) -> None:
    known = {(one.method, one.path) for one in asker.operations}
    assert {("GET", "/readyz"), ("WEBSOCKET", "/ws"), ("POST", "/api/v1/jobs"), ("GET", "/{path:path}")} <= known
    assert {("POST", "/api/internal/collector-patch"), ("GET", "/api/events"), ("GET", "/api/openapi.json")} <= known
    search = next(one for one in asker.operations if one.path == "/api/v1/search")
    assert set(search.names) == {"q", "layer", "limit"}


def test_every_known_trap_in_every_place_of_every_route(asker: Asker) -> None:
    for operation in asker.operations:
        if operation.method == "HEAD" or operation.path == "/api/v1/diagnostics":
            continue  # HEAD is answered as GET; the diagnostic reads nothing, and each canary takes a while
        path, names = path_of(operation, b"1"), tuple(dict.fromkeys((*operation.names, *QUERY)))
        assert asker.check(Asked(operation.method, path, usual(operation))) not in (401, 403, 429), operation
        for value in NASTY:
            asker.check(Asked(operation.method, path_of(operation, value), usual(operation)))
            asker.check(Asked(operation.method, path + b"?" + query_of(names, value), usual(operation)))
            for name in operation.names:  # by itself: another that is wrong would be looked at first
                asker.check(Asked(operation.method, path + b"?" + query_of((name,), value), usual(operation)))
            asker.check(Asked(operation.method, path + b"?" + value.replace(b"\r\n", b""), usual(operation)))
            for place in (b"planetwire_session=" + value, value):
                cookie = place.replace(b"\r", b"").replace(b"\n", b"").replace(b"\x00", b"")
                asker.check(Asked(operation.method, path, [(b"cookie", cookie)]))
        for body in BODIES if operation.method not in ("GET", "WEBSOCKET") else ():
            asker.check(Asked(operation.method, path, usual(operation), body))
            asker.check(Asked(operation.method, path, usual(operation)[:1], body))
        if operation.method == "WEBSOCKET":
            for message in MESSAGES:
                asker.check(Asked(operation.method, path), [message])


def test_the_page_and_its_files_take_any_path(asker: Asker) -> None:
    for value in NASTY:
        target = b"/" + quote_from_bytes(value, safe="/").encode()
        for accept in (b"*/*", b"text/html"):
            asker.check(Asked("GET", target, [(b"accept", accept)]))
    for length in (255, 256, 300, 4_095, 4_096, 6_000):
        asker.check(Asked("GET", b"/" + b"n" * length))
        asker.check(Asked("GET", b"/assets/" + b"n/" * (length // 2)))
    for name in (
        b"/favicon.svg/x",
        b"/assets",
        b"/assets/",
        b"//",
        b"/./",
        b"/%2e%2e/%2e%2e/etc/passwd",
        b"/favicon.svg%00",
    ):
        asker.check(Asked("GET", name))


VALUES = st.one_of(
    st.sampled_from(NASTY),
    st.binary(max_size=40),
    st.text(st.characters(), max_size=20).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.integers(10**40, 10**60).map(lambda number: str(number).encode()),
)
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=10),
    st.sampled_from(["collect", "clear_cache", "satellites", "usgs_quakes", "metar", "seoul", "earth_updates"]),
)  # fmt: skip
WORDS = """task_type source payload priority idempotency_key code token enabled interval_s cron time_zone misfire paused
city changes temp obs_time subscribe unsubscribe since ping"""
KEYS = st.sampled_from(WORDS.split())
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=12,
)
OBJECTS = st.one_of(st.dictionaries(KEYS, TREES, max_size=5), TREES).map(orjson.dumps)
BODY = st.one_of(OBJECTS, st.sampled_from(BODIES), st.binary(max_size=30))
HEADER_VALUES = VALUES.map(lambda value: re.sub(rb"[\x00\r\n]", b"", value))


@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_anything_in_any_place_of_any_route(asker: Asker, data: st.DataObject) -> None:
    fit = [one for one in asker.operations if one.method != "HEAD" and one.path != "/api/v1/diagnostics"]
    operation: Operation = data.draw(st.sampled_from(fit))
    value: Any = data.draw(VALUES)
    target = path_of(operation, value) if data.draw(st.booleans()) else path_of(operation, b"1")
    names = data.draw(st.lists(st.sampled_from([*operation.names, *QUERY]), max_size=4))
    query = b"&".join(query_of((name,), data.draw(VALUES)) for name in names)
    headers = usual(operation) if data.draw(st.booleans()) else []
    headers += data.draw(st.lists(st.tuples(st.sampled_from(HEADERS), HEADER_VALUES), max_size=3))
    body: bytes = data.draw(BODY) if operation.method not in ("GET", "WEBSOCKET") else b""
    messages = [data.draw(OBJECTS).decode() for _ in range(2)] if operation.method == "WEBSOCKET" else None
    asker.check(Asked(operation.method, target + (b"?" + query if query else b""), headers, body), messages)
