"""`GET /api/events` on the wire, the same for the protocol class and for the plain ASGI route."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
import pytest_asyncio

from live_streams import CARRIERS, Live, SseClient, eventually, live_server, the_guard
from planetwire.ports import Limit
from planetwire.runtime.clock import ManualClock, SystemClock
from planetwire.setting_texts import networks
from planetwire.stream.hub import Hub
from planetwire.web.http.proxies import TrustedProxies
from planetwire.web.live.frames import sse_encoder
from planetwire.web.stores.limits_memory import DEFAULTS, MemoryLimits

PATCH = "city_observation_patch.v1"


@pytest.fixture(params=CARRIERS)
def carrier(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest_asyncio.fixture
async def live(carrier: str) -> AsyncIterator[Live]:
    async with live_server(carrier) as server:
        yield server


async def open_stream(live: Live, query: str, **headers: str) -> tuple[SseClient, dict[str, Any]]:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    client = await SseClient.connect(live.port, f"/api/events?{query}", headers=names)
    assert client.status == 200
    first = await client.frame()
    assert first is not None
    return client, first


async def test_headers_and_first_frame(live: Live) -> None:
    """S149, S154, S228: nothing on the way may buffer; `connected` names the head and each city's own."""
    live.publish("shanghai", "taipei", "tokyo", "shanghai", type=PATCH)
    client, first = await open_stream(live, "cities=shanghai,hong%20kong,taipei,atlantis", accept_encoding="gzip")
    assert client.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert client.headers["cache-control"] == "no-cache, no-transform"
    assert client.headers["x-accel-buffering"] == "no"
    assert "content-encoding" not in client.headers
    assert "keep-alive" not in client.headers.get("connection", "")
    assert first.pop("ts") > 1_700_000_000_000
    assert first == {
        "type": "connected",
        "revision": 4,
        "epoch": live.log.epoch,
        "cities": {"shanghai": 4, "hong kong": 0, "taipei": 2},
        "unknown": ["atlantis"],
        "heartbeat_s": 30.0,
    }
    assert len(client.retries) == 1
    assert 1_000 <= client.retries[0] <= 5_000


async def test_connected_then_replay_then_live(live: Live) -> None:
    """S150, S151, S154, S224, Q5: only matching cities, in revision order, `id:` on patches only."""
    live.publish("shanghai", "tokyo", "taipei", "shanghai", type=PATCH)
    client, first = await open_stream(live, "cities=shanghai,taipei&since_revision=1")
    live.publish("tokyo", "taipei", type=PATCH)
    live.publish("shanghai", type=PATCH)
    patches = await client.frames(4)
    assert [(p["revision"], p["prev_revision"], p["city"]) for p in patches] == [
        (3, 0, "taipei"),
        (4, 1, "shanghai"),
        (6, 3, "taipei"),
        (7, 4, "shanghai"),
    ]
    assert first["type"] == "connected"
    assert client.ids == [None, *(f"{live.log.epoch}-{p['revision']}" for p in patches)]


async def test_without_a_cursor_nothing_is_replayed(live: Live) -> None:
    """Q3."""
    live.publish("shanghai", type=PATCH)
    client, _ = await open_stream(live, "cities=shanghai")
    live.publish("shanghai", type=PATCH)
    assert (await client.frames(1))[0]["revision"] == 2


async def test_aliases_and_spellings_resolve_to_one_city(live: Live) -> None:
    _, first = await open_stream(live, "cities=SHA,shanghai&cities=hong_kong,Hong-Kong")
    assert list(first["cities"]) == ["shanghai", "hong kong"]
    assert first["unknown"] == []


async def test_last_event_id_wins_over_the_url(live: Live) -> None:
    """On a browser's own reconnect the URL is the older of the two."""
    live.publish(*["shanghai"] * 5, type=PATCH)
    header = {"last_event_id": f"{live.log.epoch}-4"}
    client, _ = await open_stream(live, "cities=shanghai&since_revision=1", **header)
    assert (await client.frames(1))[0]["revision"] == 5


async def test_cursor_with_an_epoch_in_the_url(live: Live) -> None:
    live.publish(*["shanghai"] * 3, type=PATCH)
    client, _ = await open_stream(live, f"cities=shanghai&since_revision={live.log.epoch}-2")
    assert (await client.frames(1))[0]["revision"] == 3


@pytest.mark.parametrize(
    ("query", "headers", "reason"),
    [
        ("since_revision=2", {}, "replay_window_exceeded"),
        ("since_revision=5&replay_limit=3", {}, "replay_window_exceeded"),
        ("since_revision=5&replay_limit=0", {}, "replay_window_exceeded"),
        ("since_revision=11", {}, "revision_ahead"),
        ("since_revision=zzzzzzzzzzzz-10", {}, "epoch_changed"),
        ("since_revision=10", {"last_event_id": "1716717726000-0"}, "epoch_changed"),
    ],
)
async def test_cursor_that_cannot_be_served(live: Live, query: str, headers: dict[str, str], reason: str) -> None:
    """S156, Q2, Q4, Q36: told in the stream, without a partial replay; then live goes on."""
    live.publish(*["shanghai"] * 10, type=PATCH)
    live.log.prune(4)
    client, _ = await open_stream(live, f"cities=shanghai,taipei&{query}", **headers)
    live.publish("shanghai", type=PATCH)
    resync, patch = await client.frames(2)
    assert resync.pop("ts") > 0
    assert resync == {
        "type": "resync_required",
        "reason": reason,
        "latest_revision": 10,
        "epoch": live.log.epoch,
        "cities": ["shanghai", "taipei"],
    }
    assert patch["revision"] == 11
    assert client.ids == [None, None, f"{live.log.epoch}-11"]


async def test_old_cursor_of_a_quiet_city_is_no_gap(live: Live) -> None:
    """Q2: what was pruned belongs to another city."""
    live.publish("shanghai", *["tokyo"] * 10, type=PATCH)
    live.log.prune(9)
    client, _ = await open_stream(live, "cities=shanghai&since_revision=1")
    live.publish("shanghai", type=PATCH)
    assert (await client.frames(1))[0]["revision"] == 12


async def test_replay_that_fails_is_told_and_the_stream_lives(live: Live) -> None:
    """S191, S226."""
    live.publish(*["shanghai"] * 10, type=PATCH)
    live.log.failing = True
    client, _ = await open_stream(live, "cities=shanghai&since_revision=5")
    live.log.failing = False
    live.publish("shanghai", type=PATCH)
    resync, patch = await client.frames(2)
    assert (resync["reason"], patch["revision"]) == ("replay_failed", 11)


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("cities=", "no_cities"),
        ("cities", "no_cities"),
        ("cities=%20,,", "no_cities"),
        ("cities=atlantis,lemuria", "unknown_cities"),
        ("cities=" + ",".join(f"c{n}" for n in range(51)), "too_many_cities"),
        ("cities=shanghai&since_revision=abc", "bad_cursor"),
        ("cities=shanghai&since_revision=-1", "bad_cursor"),
        ("cities=shanghai&replay_limit=ten", "bad_replay_limit"),
        ("cities=shanghai&replay_limit=1.5", "bad_replay_limit"),
        ("cities=shanghai&" + "&".join("x=1" for _ in range(200)), "bad_request"),
    ],
)
async def test_bad_requests_are_problems_before_any_stream(live: Live, query: str, code: str) -> None:
    """Q36, contracts: 400 with a code, as problem+json."""
    client = await SseClient.connect(live.port, f"/api/events?{query}")
    assert client.status == 400
    assert client.headers["content-type"] == "application/problem+json"
    assert (await client.body())["code"] == code
    assert live.limits.connections == 0


@pytest.mark.parametrize(
    ("query", "headers"),
    [
        ("", {}),
        ("ts=1716717726000&token=x", {}),
        ("since_revision=1", {}),
        ("since_revision=zzzzzzzzzzzz-1&replay_limit=2", {}),
        ("since_revision=abc&replay_limit=ten", {}),
        ("", {"last_event_id": "1716717726000-0"}),
    ],
)
async def test_a_page_that_names_no_cities_gets_a_live_stream_without_patches_and_a_hint(
    live: Live, query: str, headers: dict[str, str]
) -> None:
    """S229: a page of before `cities`. No error that it would repeat for ever, no replay, no resync, nobody's patch."""
    live.publish("shanghai", "tokyo", type=PATCH)
    client, first = await open_stream(live, query, **headers)
    assert (first["type"], first["revision"], first["epoch"]) == ("connected", 2, live.log.epoch)
    assert (first["cities"], first["unknown"], first["heartbeat_s"]) == ({}, [], 30.0)
    assert first["hint"]["code"] == "no_cities"
    assert "cities=" in first["hint"]["text"] and "/api/cities" in first["hint"]["text"]
    assert 1_000 <= client.retries[0] <= 5_000
    live.publish("shanghai", "tokyo", type=PATCH)
    await live.sse.beat()
    heartbeat = await client.frame()
    assert heartbeat is not None
    assert (heartbeat["type"], heartbeat["cursor"]) == ("heartbeat", f"{live.log.epoch}-4")
    assert live.limits.connections == 1
    await client.close()
    await eventually(lambda: live.limits.connections == live.hub.connections == 0, "the stream was kept")


async def test_a_stream_with_cities_has_no_hint(live: Live) -> None:
    _, first = await open_stream(live, "cities=shanghai")
    assert "hint" not in first


async def test_a_stream_without_cities_is_bounded_and_ended_as_any_other(carrier: str) -> None:
    """S229: it takes a slot, and learns when to come back."""
    async with live_server(carrier, max_per_address=1) as live:
        client, _ = await open_stream(live, "")
        refused = await SseClient.connect(live.port, "/api/events")
        assert (refused.status, (await refused.body())["code"]) == (503, "too_many_connections")
        stopping = asyncio.ensure_future(live.stop())
        assert await client.frame() is None
        assert len(client.retries) == 2
        await stopping


async def test_fifty_cities_are_allowed(live: Live) -> None:
    _, first = await open_stream(live, "cities=" + ",".join(f"c{n}" for n in range(50)))
    assert len(first["cities"]) == 50


@pytest.mark.parametrize("method", ["HEAD", "POST", "DELETE"])
async def test_other_methods_are_refused(live: Live, method: str) -> None:
    client = await SseClient.connect(live.port, "/api/events?cities=shanghai", method=method)
    assert client.status == 405


async def test_other_routes_are_answered_by_the_application(live: Live) -> None:
    client = await SseClient.connect(live.port, "/other")
    assert (client.status, await client.body()) == (200, {"answered": "by FastAPI"})


async def test_a_kept_connection_may_turn_into_a_stream(live: Live) -> None:
    client = await SseClient.connect(live.port, "/other")
    await client.body()
    client.writer.write(b"GET /api/events?cities=shanghai HTTP/1.1\r\nhost: localhost\r\n\r\n")
    assert (await client.reader.readline()).split()[1] == b"200"


async def test_what_a_client_sends_after_the_request_is_ignored(live: Live, carrier: str) -> None:
    client, _ = await open_stream(live, "cities=shanghai")
    garbage = b"\x00garbage" if carrier == "protocol" else b""  # uvicorn itself answers garbage with a 400
    client.writer.write(b"GET /api/events?cities=taipei HTTP/1.1\r\nhost: localhost\r\n\r\n" + garbage)
    await client.writer.drain()
    live.publish("shanghai", "taipei", type=PATCH)
    assert [patch["city"] for patch in await client.frames(1)] == ["shanghai"]
    assert live.limits.connections == 1


async def test_caps_answer_503_and_free_their_slots(carrier: str) -> None:
    """Per address and in all; the client is told when to try again."""
    guard = the_guard(proxies=TrustedProxies(networks("127.0.0.1")))
    async with live_server(carrier, guard=guard, max_per_address=2, max_connections=3) as live:
        first, _ = await open_stream(live, "cities=shanghai")
        await open_stream(live, "cities=shanghai")
        refused = await SseClient.connect(live.port, "/api/events?cities=shanghai")
        assert refused.status == 503
        assert int(refused.headers["retry-after"]) > 0
        assert (await refused.body())["code"] == "too_many_connections"
        await open_stream(live, "cities=shanghai", x_forwarded_for="198.51.100.7, 203.0.113.9")
        other = await SseClient.connect(
            live.port, "/api/events?cities=shanghai", headers={"x-forwarded-for": "192.0.2.1"}
        )
        assert other.status == 503
        await first.close()
        await eventually(lambda: live.limits.connections == 2, "the slot of the closed stream was not freed")
        await open_stream(live, "cities=shanghai")


async def test_a_made_up_client_avoids_no_cap(carrier: str) -> None:
    """Nobody is believed who is no trusted proxy, not even on this machine."""
    async with live_server(carrier, max_per_address=1) as live:
        await open_stream(live, "cities=shanghai", x_forwarded_for="192.0.2.1")
        other = await SseClient.connect(
            live.port, "/api/events?cities=shanghai", headers={"x-forwarded-for": "192.0.2.2"}
        )
        assert other.status == 503


async def test_openings_are_limited_and_told_when_to_come_again(carrier: str) -> None:
    """S13."""
    guard = the_guard(limits=MemoryLimits({**DEFAULTS, Limit.STREAM: 2}))
    async with live_server(carrier, guard=guard) as live:
        for _ in range(2):
            client, _ = await open_stream(live, "cities=shanghai")
            await client.close()
        refused = await SseClient.connect(live.port, "/api/events?cities=shanghai")
        assert (refused.status, (await refused.body())["code"]) == (429, "too_many_openings")
        assert 0 < int(refused.headers["retry-after"]) <= 60


async def test_closed_reads_need_credentials(carrier: str) -> None:
    guard = the_guard(public_reads=False)
    async with live_server(carrier, guard=guard) as live:
        refused = await SseClient.connect(live.port, "/api/events?cities=shanghai")
        assert (refused.status, refused.headers["www-authenticate"]) == (401, "Bearer")
        await open_stream(live, "cities=shanghai", authorization="Bearer admin-token")
        cookie = await guard.sign_in(code=None, token="admin-token", address="x")
        await open_stream(live, "cities=shanghai", cookie=f"a=b; planetwire_session={cookie}")


async def test_heartbeats_carry_the_cursor_also_under_load(carrier: str) -> None:
    """S155, Q6: on the wall clock; everything for the connection up to the cursor was sent."""
    clock = ManualClock(datetime(2026, 5, 1, tzinfo=UTC))
    async with live_server(carrier, clock=clock) as live:
        client, _ = await open_stream(live, "cities=shanghai")
        for beat in range(1, 4):
            live.publish("tokyo", "shanghai", "tokyo", type=PATCH)
            for _ in range(30):
                await asyncio.sleep(0)
                clock.advance(1)
            heartbeat = await client.until("heartbeat")
            assert heartbeat["cursor"] == f"{live.log.epoch}-{beat * 3}"
            assert heartbeat["ts"] == int(clock.now().timestamp() * 1000)
        assert client.ids.count(None) == 4  # `connected` and three heartbeats


async def test_shutdown_tells_when_to_return_and_ends_cleanly(live: Live) -> None:
    """A last `retry:` of its own for each stream, then the end of the body."""
    clients = [(await open_stream(live, "cities=shanghai"))[0] for _ in range(20)]
    live.publish("shanghai", type=PATCH)
    stopping = asyncio.ensure_future(live.stop())
    for client in clients:
        assert (await client.until(PATCH))["revision"] == 1
        assert await client.frame() is None
        assert len(client.retries) == 2
        assert 500 <= client.retries[1] <= 10_000
    await stopping
    assert len({client.retries[1] for client in clients}) > 10
    assert live.limits.connections == 0


async def test_gone_client_frees_everything(live: Live) -> None:
    client, _ = await open_stream(live, "cities=shanghai")
    assert (live.hub.connections, live.limits.connections) == (1, 1)
    await client.close()
    await eventually(lambda: live.hub.connections == live.limits.connections == 0, "the stream was kept")
    assert live.hub.live == 0


async def test_client_that_leaves_while_its_start_is_looked_up_frees_its_slot(live: Live) -> None:
    live.publish(*["shanghai"] * 3, type=PATCH)
    live.log.gate.clear()
    _, writer = await asyncio.open_connection("127.0.0.1", live.port)
    writer.write(b"GET /api/events?cities=shanghai&since_revision=1 HTTP/1.1\r\nhost: localhost\r\n\r\n")
    await live.log.waiting.wait()
    assert live.limits.connections == 1
    writer.transport.abort()
    with suppress(OSError):
        await writer.wait_closed()
    live.log.gate.set()
    await eventually(lambda: live.limits.connections == live.hub.connections == 0, "the slot was kept")


async def test_log_never_reached_is_503(carrier: str) -> None:
    async with live_server(carrier) as live:
        live.log.failing = True
        live.sse.hub = Hub(live.log, encode=sse_encoder(live.log.epoch), clock=SystemClock(), stall_s=20.0)
        client = await SseClient.connect(live.port, "/api/events?cities=shanghai")
        assert client.status == 503
        assert (await client.body())["code"] == "backend_unavailable"
        assert live.limits.connections == 0


async def test_what_follows_a_request_says_nothing_about_it(carrier: str) -> None:
    """A second request in the same segment, with the credentials that the first lacks: the first is refused."""
    ahead = "1\r\n\r\nGET /api/events?cities=tokyo HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer admin-token"
    async with live_server(carrier, guard=the_guard(public_reads=False)) as live:
        client = await SseClient.connect(live.port, "/api/events?cities=shanghai", headers={"x-first": ahead})
        assert client.status == 401
    async with live_server(carrier) as live:
        client = await SseClient.connect(live.port, "/api/events?cities=shanghai", headers={"x-first": ahead})
        first = await client.until("connected")
        live.publish("tokyo", "shanghai", type=PATCH)
        patch = await client.frame()
    assert patch is not None
    assert (list(first["cities"]), patch["city"]) == (["shanghai"], "shanghai")
