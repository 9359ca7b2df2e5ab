"""The terminal half as the program wires it: snapshot, then stream, and both say the same."""

from __future__ import annotations

import asyncio
import socket
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest_asyncio
import uvicorn
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from live_streams import SseClient
from planetwire import serving
from planetwire.settings import Settings
from planetwire.web.server import server_config
from planetwire.wiring import Secrets

SECRETS = Secrets("admin-token", "ingest-token", b"k" * 32)


class Half:
    """A running web process with the terminal half alone."""

    def __init__(self, port: int, http: httpx.AsyncClient) -> None:
        self.port = port
        self.http = http

    async def push(self, city: str, temp: float, obs_time: str, **more: object) -> int:
        body = {"type": "city_patch", "city": city, "changes": {"temp": temp, "obs_time": obs_time, **more}}
        answer = await self.http.post(
            "/api/internal/collector-patch", json=body, headers={"Authorization": "Bearer ingest-token"}
        )
        assert answer.status_code == 200, answer.text
        return int(answer.json()["revision"])

    async def detail(self, city: str) -> dict[str, Any]:
        answer = await self.http.get(f"/api/city/{city}/detail")
        assert answer.status_code == 200
        return dict(answer.json())


@pytest_asyncio.fixture
async def half(tmp_path: Path) -> AsyncIterator[Half]:
    settings = Settings(data_dir=tmp_path, halves="terminal")
    listener = socket.create_server(("127.0.0.1", 0))
    async with serving.open_web(settings, None, SECRETS, login_code=None) as web:
        config = server_config(web.app, web.protocol)
        server = uvicorn.Server(config)
        config.load()
        server.lifespan = config.lifespan_class(config)
        await server.startup(sockets=[listener])
        loops = [asyncio.ensure_future(run()) for run in web.loops.values()]
        port = listener.getsockname()[1]
        try:
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as http:
                yield Half(port, http)
        finally:
            await web.drain()
            await server.shutdown(sockets=[listener])
            for loop in loops:
                loop.cancel()
            await asyncio.gather(*loops, return_exceptions=True)


def ago(minutes: int) -> str:
    """An observation time that is recent, whatever time it is."""
    return (datetime.now(UTC) - timedelta(minutes=minutes)).isoformat()


def minute_points(detail: dict[str, Any], key: str) -> list[float]:
    return [temp for line in detail["timeseries"]["series"] if line["series_key"] == key for _, temp in line["points"]]


async def test_a_snapshot_and_the_events_after_it_are_what_the_next_snapshot_says(half: Half) -> None:
    """S100, S101, S103, S108, S128, S182, S183: HTTP gives the baseline and its revision, the stream goes on there."""
    times = [ago(minutes) for minutes in (10, 9, 8)]
    await half.push("shanghai", 20.0, times[0], source="probe", series_key="airport_primary")
    before = await half.detail("shanghai")
    assert minute_points(before, "airport_primary") == [20.0]
    await half.push("shanghai", 21.0, times[1], source="probe", series_key="airport_primary")
    await half.push("moscow", -4.0, times[1], source="probe", series_key="airport_primary")
    stream = await SseClient.connect(half.port, f"/api/events?cities=shanghai&since_revision={before['revision']}")
    missed = await stream.until("city_observation_patch.v1")
    await half.push("shanghai", 22.0, times[2], source="probe", series_key="airport_primary")
    live = await stream.until("city_observation_patch.v1")
    grown = [*minute_points(before, "airport_primary"), missed["payload"]["temp"], live["payload"]["temp"]]
    after = await half.detail("shanghai")
    assert grown == minute_points(after, "airport_primary") == [20.0, 21.0, 22.0]
    assert (after["revision"], after["epoch"]) == (live["revision"], live["epoch"])
    rows = {row["city"]: row for row in (await half.http.get("/api/scan/terminal")).json()["rows"]}
    assert (rows["shanghai"]["current_temp"], rows["moscow"]["current_temp"]) == (22.0, -4.0)
    await stream.close()


async def test_the_log_is_for_replay_and_the_snapshot_needs_nothing_of_it(half: Half, tmp_path: Path) -> None:
    """S107, S127, S161: state is not made from events; with the log emptied by hand the curve is still whole."""
    await half.push("shanghai", 20.0, ago(5), source="probe", series_key="airport_primary")
    with closing(sqlite3.connect(tmp_path / "observations.db")) as database, database:
        assert database.execute("delete from observation_patch_events").rowcount == 1
    assert minute_points(await half.detail("shanghai"), "airport_primary") == [20.0]


async def test_observations_come_by_server_sent_events_and_by_no_websocket(half: Half) -> None:
    """S111, S149, S228: one way, plain HTTP, told to proxies not to hold it back."""
    stream = await SseClient.connect(half.port, "/api/events?cities=shanghai")
    assert stream.headers["content-type"].startswith("text/event-stream")
    assert stream.headers["x-accel-buffering"] == "no"
    assert (await stream.frames(1))[0]["type"] == "connected"
    await stream.close()
    try:
        async with connect(f"ws://127.0.0.1:{half.port}/ws", proxy=None):
            raise AssertionError("the terminal half opened a WebSocket")
    except InvalidStatus as refused:
        assert refused.response.status_code in (403, 404)


async def test_a_refused_patch_leaves_no_event_and_the_next_one_is_taken(half: Half) -> None:
    """S189: 400 with a code; revisions go on without a hole."""
    refused = await half.http.post(
        "/api/internal/collector-patch",
        json={"city": "shanghai", "changes": {"max_so_far": 31.0}},
        headers={"Authorization": "Bearer ingest-token"},
    )
    assert (refused.status_code, "code" in refused.json()) == (400, True)
    assert await half.push("shanghai", 20.0, ago(5)) == 1


async def test_a_head_is_its_get_without_a_body(half: Half) -> None:
    """RFC 9110, 9.3.2: of every route that is read; on one connection, where a stray body would be the next answer."""
    for path in ("/api/scan/terminal", "/api/city/seoul/detail", "/api/cities", "/healthz", "/readyz"):
        headers = {"Accept-Encoding": "gzip"}
        got, head = await half.http.get(path, headers=headers), await half.http.head(path, headers=headers)
        assert (head.status_code, head.content) == (200, b"")
        differing = {"date"}
        assert {k: v for k, v in head.headers.items() if k not in differing} == {
            k: v for k, v in got.headers.items() if k not in differing
        }
    known = {**headers, "If-None-Match": (await half.http.get("/api/scan/terminal", headers=headers)).headers["etag"]}
    assert (await half.http.head("/api/scan/terminal", headers=known)).status_code == 304
    assert (await half.http.head("/api/v1/visualization/satellites")).status_code == 404
    assert (await half.http.head("/api/events?cities=seoul")).status_code in (404, 405)
