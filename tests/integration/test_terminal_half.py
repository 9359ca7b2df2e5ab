"""The terminal half as the program wires it: snapshot, then stream, and both say the same."""

from __future__ import annotations

import asyncio
import socket
import sqlite3
from collections.abc import AsyncIterator, Callable
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
from planetwire.collect.feedstate_file import FeedStates
from planetwire.collect.http.client import PoliteClient
from planetwire.collect.observe import ObservationFeeds
from planetwire.collect.push.sink_http import HttpPatchSink
from planetwire.datasets.registry import observation_feeds
from planetwire.demo.server import FeedServer
from planetwire.runtime.clock import SystemClock
from planetwire.settings import FeedSettings, Settings
from planetwire.web.http.server import server_config
from planetwire.wiring import web as serving
from planetwire.wiring.secrets import Secrets

SECRETS = Secrets("admin-token", "ingest-token", b"k" * 32)
CLOCK = SystemClock()


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


async def test_runway_readings_are_pulled_and_reach_curve_snapshot_and_stream(
    half: Half, tmp_path: Path, start_feed_server: Callable[..., FeedServer]
) -> None:
    """S183: a feed's process delivers by the same door as everybody, and each reading once."""
    server = start_feed_server(at=None)
    settings = Settings(
        data_dir=tmp_path / "feeds-process",
        feeds={"runway_obs": FeedSettings(url=f"{server.url}/runways/readings.json")},
    )
    client, sink = PoliteClient(CLOCK), HttpPatchSink(f"http://127.0.0.1:{half.port}", "ingest-token", CLOCK)
    feeds = ObservationFeeds(observation_feeds(), client, sink, FeedStates(tmp_path / "runs"), CLOCK, settings)
    try:
        assert await feeds.turn("runway_obs")
        before = await half.detail("seoul")
        stream = await SseClient.connect(half.port, f"/api/events?cities=seoul&since_revision={before['revision']}")
        server.advance(60)
        assert await feeds.turn("runway_obs")
        patch = await stream.until("city_observation_patch.v1")
        after = await half.detail("seoul")
        assert await feeds.turn("runway_obs")
        assert (await half.detail("seoul"))["revision"] == after["revision"], "nothing is delivered twice"
    finally:
        await sink.aclose()
        await client.aclose()
    names = {"15L/33R", "15R/33L", "16L/34R", "16R/34L"}
    assert set(before["runway_plate_history"]) == names
    assert all(len(points) > 140 for points in before["runway_plate_history"].values()), "a day of them"
    points = {point["runway"]: point for point in patch["payload"]["runway_points"]}
    assert (set(points), patch["source"], patch["payload"]["series_key"]) == (names, "runway_obs", "runway")
    assert [name for name, point in points.items() if point["is_settlement"]] == ["15R/33L"]
    assert patch["payload"]["temp"] == points["15R/33L"]["temp"]
    for name, point in points.items():
        plates = after["runway_plate_history"][name]
        assert len(plates) == len(before["runway_plate_history"][name]) + 1
        assert plates[-1]["temp"] == point["temp"]
    assert (after["airport_primary"]["source"], after["freshness"]) == ("runway_obs", "fresh")
