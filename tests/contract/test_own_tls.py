"""HTTPS without a proxy: requests, streams and sockets over a real certificate, and the same bounds before its use."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import orjson
import pytest
import pytest_asyncio
import uvloop
from websockets.asyncio.client import connect

from certificates import Made, self_signed
from front_server import Served, front_server, get, post
from live_streams import SseClient, eventually
from planetwire.collect.push.sink_http import HttpPatchSink
from planetwire.errors import BackendError, SetupError
from planetwire.model.wire import PUSH_PATH as PUSH
from planetwire.runtime.clock import ManualClock
from planetwire.settings import Settings
from planetwire.tls import own_trust, server_context
from planetwire.web.live.probe import listen

SHORT_S = 0.05
START = datetime(2026, 5, 26, 10, tzinfo=UTC)
PATCH = "city_observation_patch.v1"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return self_signed(tmp_path_factory.mktemp("tls"))


class QuickClock(ManualClock):
    """Pauses are over at once."""

    async def sleep(self, seconds: float) -> None:
        self.advance(seconds)


def settings_of(made: Made) -> Settings:
    return Settings(tls_cert=made.cert, tls_key=made.key)


@pytest_asyncio.fixture
async def served(made: Made) -> AsyncIterator[Served]:
    async with front_server(certificate=server_context(settings_of(made)), trust=made.trust()) as opened:
        yield opened


async def test_requests_are_answered_and_bounded(served: Served) -> None:
    raw = await served.open()
    await raw.send(post("/api/note", b"{}"))
    assert (await raw.answer()).status == 200
    await raw.send(post(PUSH, b"{}", "Authorization: Bearer ingest-token"))
    assert (await raw.answer()).json["revision"] == 1
    await raw.send(get("/api/note", "Content-Length: 70000", method="POST"))
    (await raw.answer()).is_problem(413, "too_large")
    (await served.ask(get("/", host="evil.example"))).is_problem(421, "wrong_host")


async def test_a_stream_is_live(served: Served) -> None:
    raw = await served.open()
    await raw.send(get("/api/events?cities=shanghai"))
    assert (await raw.answer()).status == 200
    client = SseClient(raw.reader, raw.writer)
    await client.until("connected")
    for temp in range(3):
        served.live.publish("shanghai", type=PATCH, temp=temp)
        assert (await client.until(PATCH))["temp"] == temp


async def test_a_socket_is_live(served: Served, made: Made) -> None:
    url = f"wss://localhost:{served.port}/ws"
    origin = f"https://localhost:{served.port}"
    async with connect(url, ssl=made.trust(), origin=origin, proxy=None, compression=None) as page:  # type: ignore[arg-type]
        assert orjson.loads(await page.recv())["type"] == "connected"
        await page.send('{"subscribe": ["earth_updates"]}')
        assert orjson.loads(await page.recv())["type"] == "subscribed"
        served.live.publish_earth("satellites")
        assert orjson.loads(await page.recv())["data"]["layers"] == ["satellites"]


async def test_a_client_that_never_shakes_hands_is_not_waited_for(made: Made) -> None:
    """Nor is one that speaks plain HTTP; both are counted while they are there."""
    context = server_context(settings_of(made))
    async with front_server(certificate=context, header_s=SHORT_S) as served:
        silent = await served.open()
        await eventually(lambda: served.front._open == 1, "it is counted")
        assert await silent.ended() == b""
        plain = await served.open()
        await plain.send(get("/healthz"))
        assert b"HTTP/1.1 200" not in await plain.ended()
        await eventually(lambda: served.front._open == 0, "both are gone")


async def test_who_shook_hands_has_its_headers_waited_for(made: Made) -> None:
    context = server_context(settings_of(made))
    async with front_server(certificate=context, trust=made.trust(), header_s=1.0) as served:
        (await served.ask(b"GET / HT")).is_problem(408, "request_timeout")
        await eventually(lambda: served.front._open == 0, "it is gone")


async def test_those_before_their_handshake_go_first_when_descriptors_run_out(served: Served, made: Made) -> None:
    _, silent = await asyncio.open_connection("127.0.0.1", served.port)
    await eventually(lambda: served.front._open == 1, "it is counted")
    served.front._reserve_from = served.front._others + 1
    assert (await served.ask(get("/healthz"))).status == 200
    assert served.front.shed >= 1
    silent.transport.abort()


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_tls_is_spoken_on_either_loop(loop: object, made: Made) -> None:
    """Under uvloop, as the product runs, and under asyncio's own; also requests that come with the handshake's end."""

    async def run() -> int:
        async with front_server(certificate=server_context(settings_of(made)), trust=made.trust()) as served:
            return sum([(await served.ask(get("/healthz"))).status == 200 for _ in range(20)])

    with asyncio.Runner(loop_factory=loop) as runner:  # type: ignore[arg-type]
        assert runner.run(run()) == 20


# --- our own requests


async def test_our_own_requests_know_the_certificate_by_any_address(served: Served, made: Made, tmp_path: Path) -> None:
    """Readings are pushed to 127.0.0.1, for which no certificate is made; and to no other certificate."""
    url = f"https://127.0.0.1:{served.port}"
    sink = HttpPatchSink(url, "ingest-token", QuickClock(START), trust=own_trust(made.cert))
    assert await sink.deliver([{"city": "seoul"}]) == 1
    async with httpx.AsyncClient(verify=own_trust(made.cert), trust_env=False) as http:  # type: ignore[arg-type]
        assert (await http.get(f"{url}/healthz")).status_code == 200
    async with listen(url, "satellites", None, own_trust(made.cert)) as ear:
        assert "connected" in ear.greeting
    await sink.aclose()
    stranger = self_signed(tmp_path)
    with pytest.raises(BackendError):
        async with listen(url, "satellites", None, own_trust(stranger.cert)):
            pass
    other = HttpPatchSink(url, "ingest-token", QuickClock(START), trust=own_trust(stranger.cert))
    with pytest.raises(BackendError, match="certificate"):
        await other.deliver([{"city": "seoul"}])
    await other.aclose()


async def test_a_certificate_that_ran_out_is_still_our_own(tmp_path: Path) -> None:
    """Browsers complain about it; that is no reason to lose readings."""
    made = self_signed(tmp_path, expired=True)
    context = server_context(settings_of(made))
    async with (
        front_server(certificate=context) as served,
        httpx.AsyncClient(verify=own_trust(made.cert), trust_env=False) as http,  # type: ignore[arg-type]
    ):
        assert (await http.get(f"https://127.0.0.1:{served.port}/healthz")).status_code == 200
    async with (
        front_server(certificate=context) as served,
        httpx.AsyncClient(verify=made.trust(), trust_env=False) as http,
    ):
        with pytest.raises(httpx.ConnectError, match="expired"):
            await http.get(f"https://localhost:{served.port}/healthz")


def test_of_a_chain_only_our_own_certificate_is_trusted(made: Made, tmp_path: Path) -> None:
    """Whoever signed ours signs for others too."""
    issuer = self_signed(tmp_path, "issuer")
    chain = tmp_path / "chain.pem"
    chain.write_text("a comment\n" + made.cert.read_text() + issuer.cert.read_text())
    context = own_trust(chain)
    assert context is not None
    assert context.cert_store_stats()["x509"] == 1
    assert own_trust(None) is None


# --- settings


def test_without_both_settings_nothing_starts(made: Made) -> None:
    assert server_context(Settings()) is None
    for half in (Settings(tls_cert=made.cert), Settings(tls_key=made.key)):
        with pytest.raises(SetupError, match="PLANETWIRE_TLS_CERT and PLANETWIRE_TLS_KEY go together"):
            server_context(half)


def test_a_file_that_cannot_be_used_is_named(made: Made, tmp_path: Path) -> None:
    missing, empty = tmp_path / "missing.pem", tmp_path / "empty.pem"
    empty.touch()
    locked = self_signed(tmp_path, "locked", password="secret")
    other = self_signed(tmp_path, "other")
    for cert, key, named in [
        (missing, made.key, f"PLANETWIRE_TLS_CERT {missing} cannot be read: No such file"),
        (made.cert, missing, f"PLANETWIRE_TLS_KEY {missing} cannot be read: No such file"),
        (made.cert, tmp_path, f"PLANETWIRE_TLS_KEY {tmp_path} cannot be read"),
        (empty, made.key, str(empty)),
        (made.cert, empty, str(empty)),
        (made.cert, other.key, "KEY_VALUES_MISMATCH"),
        (locked.cert, locked.key, "password"),
    ]:
        with pytest.raises(SetupError, match=named.replace("(", r"\(")):
            server_context(Settings(tls_cert=cert, tls_key=key))
    with pytest.raises(SetupError, match="no certificate"):
        own_trust(empty)


def test_what_is_trusted_is_checked(made: Made) -> None:
    context = own_trust(made.cert)
    assert context is not None
    assert context.verify_mode is ssl.CERT_REQUIRED
