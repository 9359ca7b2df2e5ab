"""`/ws` on the wire, with a real client."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
import pytest_asyncio
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from job_rows import a_job
from live_streams import WAIT_S, Live, SseClient, eventually, live_server, the_guard
from planetwire.model import JobStatus
from planetwire.runtime.clock import ManualClock

EPOCH = "fedcba543210"


class Socket:
    """A connected client that speaks JSON."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    async def say(self, **message: Any) -> None:
        await self.connection.send(orjson.dumps(message).decode())

    async def hear(self) -> dict[str, Any]:
        async with asyncio.timeout(WAIT_S):
            frame = orjson.loads(await self.connection.recv())
        assert isinstance(frame, dict)
        return frame

    async def until(self, kind: str) -> dict[str, Any]:
        while (frame := await self.hear()).get("type") != kind:
            pass
        return frame

    async def subscribe(self, *channels: str, since: str | int | None = None) -> dict[str, Any]:
        await self.say(subscribe=list(channels), **({} if since is None else {"since": {"earth_updates": since}}))
        return await self.hear()

    async def revisions(self, count: int) -> list[int]:
        return [(await self.hear())["revision"] for _ in range(count)]


@asynccontextmanager
async def open_socket(live: Live, **options: Any) -> AsyncIterator[Socket]:
    async with connect(f"ws://127.0.0.1:{live.port}/ws", compression=None, proxy=None, **options) as connection:
        socket = Socket(connection)
        assert (await socket.hear())["type"] == "connected"
        yield socket


@pytest_asyncio.fixture
async def live() -> AsyncIterator[Live]:
    async with live_server() as server:
        yield server


async def refusal(live: Live, **options: Any) -> tuple[int, dict[str, Any]]:
    with pytest.raises(InvalidStatus) as caught:
        async with open_socket(live, **options):
            pass
    response = caught.value.response
    assert response.headers["content-type"] == "application/problem+json"
    return response.status_code, orjson.loads(response.body)


async def test_first_frame_names_epoch_and_heads(live: Live) -> None:
    live.publish_earth("satellites", "earthquakes")
    async with connect(f"ws://127.0.0.1:{live.port}/ws", proxy=None) as connection:
        frame = orjson.loads(await connection.recv())
    assert frame == {"type": "connected", "epoch": EPOCH, "heads": {"earth_updates": 2}}


async def test_subscriber_gets_each_event_as_it_was_stored(live: Live) -> None:
    """S30, the frame of contracts §5; the log's body is its `data`, unchanged."""
    async with open_socket(live) as client:
        answer = await client.subscribe("earth_updates")
        assert answer == {"type": "subscribed", "channels": ["earth_updates"], "heads": {"earth_updates": 0}}
        live.publish_earth("satellites", event="earth.layer.changed")
        live.publish_earth("earthquakes")
        first, second = await client.hear(), await client.hear()
        assert first == {
            "channel": "earth_updates",
            "epoch": EPOCH,
            "revision": 1,
            "prev_revision": 0,
            "data": orjson.loads(live.earth_log.events[0].body),
        }
        assert (second["revision"], second["prev_revision"], second["data"]["layers"]) == (2, 1, ["earthquakes"])


async def test_nothing_comes_without_a_subscription_or_after_its_end(live: Live) -> None:
    async with open_socket(live) as client:
        live.publish_earth("satellites")
        await client.subscribe("earth_updates")
        live.publish_earth("satellites")
        assert await client.revisions(1) == [2]
        await client.say(unsubscribe=["earth_updates"])
        assert (await client.hear())["channels"] == []
        live.publish_earth("satellites")
        await client.say(ping=7)
        assert await client.hear() == {"type": "pong", "ping": 7}
        assert live.earth.connections == 0


@pytest.mark.parametrize("since", [2, "2", f"{EPOCH}-2"])
async def test_resume_replays_what_was_missed(live: Live, since: str | int) -> None:
    """Back after an absence: everything after the cursor, once, then live."""
    live.publish_earth(*["satellites"] * 5)
    async with open_socket(live) as client:
        assert (await client.subscribe("earth_updates", since=since))["type"] == "subscribed"
        live.publish_earth("satellites")
        assert await client.revisions(4) == [3, 4, 5, 6]


async def test_second_subscribe_with_a_cursor_starts_again_from_it(live: Live) -> None:
    live.publish_earth(*["satellites"] * 3)
    async with open_socket(live) as client:
        await client.subscribe("earth_updates")
        await client.subscribe("earth_updates")
        await client.subscribe("earth_updates", since=1)
        assert await client.revisions(2) == [2, 3]
        live.publish_earth("satellites")
        assert await client.revisions(1) == [4]
        assert live.earth.connections == 1


@pytest.mark.parametrize(
    ("since", "reason"),
    [
        (1, "replay_window_exceeded"),
        (9, "revision_ahead"),
        ("zzzzzzzzzzzz-8", "epoch_changed"),
    ],
)
async def test_cursor_that_cannot_be_served_is_told_with_channel_and_reason(
    live: Live, since: str | int, reason: str
) -> None:
    live.publish_earth(*["satellites"] * 8)
    live.earth_log.prune(4)
    async with open_socket(live) as client:
        await client.subscribe("earth_updates", since=since)
        live.publish_earth("satellites")
        resync, event = await client.hear(), await client.hear()
        assert (resync["type"], resync["channel"], resync["reason"]) == ("resync_required", "earth_updates", reason)
        assert resync["latest_revision"] == 8
        assert event["revision"] == 9


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("not json", "bad_message"),
        ("[]", "bad_message"),
        ('{"hello":1}', "bad_message"),
        ('{"subscribe":{"a":1}}', "bad_message"),
        ('{"subscribe":["news"]}', "unknown_channel"),
        ('{"subscribe":["earth_updates"],"since":{"earth_updates":"x"}}', "bad_cursor"),
        ('{"ping":"%s"}' % ("x" * 5000), "too_large"),
        (b"\xff\xfe", "bad_message"),
        ('{"ping":' + "[" * 300 + "]" * 300 + "}", "too_deep"),
        ('{"subscribe":' + "[" * 300 + "]" * 300 + "}", "too_deep"),
        ("[" * 4_000, "bad_message"),
    ],
)
async def test_bad_message_is_an_error_frame_and_the_connection_stays(live: Live, text: str | bytes, code: str) -> None:
    async with open_socket(live) as client:
        await client.connection.send(text)
        frame = await client.hear()
        assert (frame["type"], frame["code"]) == ("error", code)
        assert (await client.subscribe("earth_updates"))["type"] == "subscribed"


async def test_foreign_origin_is_refused_before_the_upgrade(live: Live) -> None:
    """No Origin is allowed for reads; our own is; another is 403."""
    status, problem = await refusal(live, origin="https://evil.example")
    assert (status, problem["code"]) == (403, "wrong_origin")
    assert live.limits.connections == 0
    async with open_socket(live, origin=f"http://127.0.0.1:{live.port}"):
        assert live.limits.connections == 1


async def test_closed_reads_are_refused_before_the_upgrade() -> None:
    async with live_server(guard=the_guard(public_reads=False)) as live:
        assert (await refusal(live))[0] == 401
        async with open_socket(live, additional_headers={"authorization": "Bearer admin-token"}):
            pass


async def test_caps_are_shared_with_the_event_stream() -> None:
    async with live_server(max_per_address=2) as live:
        stream = await SseClient.connect(live.port, "/api/events?cities=shanghai")
        async with open_socket(live):
            status, problem = await refusal(live)
            assert (status, problem["code"]) == (503, "too_many_connections")
        await stream.close()
        await eventually(lambda: live.limits.connections == 0, "slots were kept")


async def test_heartbeat_carries_the_cursor_of_what_is_followed() -> None:
    clock = ManualClock(datetime(2026, 5, 1, tzinfo=UTC))
    async with live_server(clock=clock) as live, open_socket(live) as idle, open_socket(live) as client:
        await client.subscribe("earth_updates")
        live.publish_earth("satellites", "satellites")
        assert await client.revisions(2) == [1, 2]
        for _ in range(31):
            await asyncio.sleep(0)
            clock.advance(1)
        beat = await client.hear()
        assert (beat["type"], beat["cursor"]) == ("heartbeat", f"{EPOCH}-2")
        assert (await idle.hear())["cursor"] is None


async def test_shutdown_closes_with_1012_after_what_was_pending(live: Live) -> None:
    async with open_socket(live) as client:
        await client.subscribe("earth_updates")
        live.publish_earth("satellites")
        stopping = asyncio.ensure_future(live.stop())
        assert await client.revisions(1) == [1]
        with pytest.raises(ConnectionClosed) as caught:
            await client.hear()
        assert caught.value.rcvd is not None
        assert caught.value.rcvd.code == 1012
        await stopping
    assert live.limits.connections == 0


async def test_stalled_socket_is_cut_and_others_get_everything() -> None:
    """Slow-reader rule as for SSE, for events and for rows."""
    settings: dict[str, Any] = {"stall_s": 0.5, "protocol": {"sndbuf_bytes": 16 << 10}}
    async with live_server(**settings) as live:
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 10)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", live.port))
        async with open_socket(live) as healthy, open_socket(live, sock=sock, max_queue=1) as stalled:
            await healthy.subscribe("earth_updates")
            await stalled.subscribe("earth_updates")
            for number in range(1, 2001):
                live.publish_earth("satellites", pad="x" * 2000)
                assert await healthy.revisions(1) == [number]
            await eventually(lambda: live.earth.connections == 1, "the stalled socket was kept")
            assert live.earth.cut + live.ws.cut >= 1
            live.publish_earth("satellites")
            assert await healthy.revisions(1) == [2001]
            with pytest.raises(ConnectionClosed):
                while True:
                    await stalled.hear()
        await eventually(lambda: live.limits.connections == 0, "slots were kept")


async def test_socket_that_reads_late_gets_every_event_in_order() -> None:
    settings: dict[str, Any] = {"protocol": {"sndbuf_bytes": 16 << 10}}
    async with live_server(**settings) as live, open_socket(live, max_queue=1) as client:
        await client.subscribe("earth_updates")
        while not live.earth.lagging:
            live.publish_earth("satellites", pad="x" * 2000)
            await asyncio.sleep(0)
        live.publish_earth(*["satellites"] * 300, pad="x" * 2000)
        assert await client.revisions(live.earth.head) == list(range(1, live.earth.head + 1))


async def test_job_rows_come_whole_then_only_when_changed() -> None:
    """S46: the active set at subscription, then changes, at most four a second per job."""
    clock = ManualClock(datetime(2026, 5, 1, tzinfo=UTC))
    async with live_server(clock=clock) as live, open_socket(live) as client:
        live.board.jobs = {1: a_job(1), 2: a_job(2, status=JobStatus.QUEUED)}
        assert (await client.subscribe("datasource_tasks"))["channels"] == ["datasource_tasks"]
        rows = [await client.hear(), await client.hear()]
        assert [row["channel"] for row in rows] == ["datasource_tasks"] * 2
        assert {row["data"]["id"] for row in rows} == {1, 2}
        assert rows[0]["data"]["created_at"].endswith("Z")
        for step in range(1, 11):
            live.board.jobs[1] = live.board.jobs[1]._replace(records_processed=step)
        clock.advance(0.25)
        row = await client.hear()
        assert (row["data"]["id"], row["data"]["records_processed"]) == (1, 10)
        await client.say(unsubscribe=["datasource_tasks"])
        assert (await client.hear())["channels"] == []
        assert live.tasks.watchers == 0
