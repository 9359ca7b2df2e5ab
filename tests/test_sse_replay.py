"""`/api/events` on the real store: what was missed is replayed for the asked cities, or a resync is asked for."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import httpx
import pytest
import pytest_asyncio
import uvicorn
from fastapi import FastAPI

from fix_observations import Observations
from live_streams import SseClient, the_guard
from planetwire import cities
from planetwire.collect.push.accept import Ingest
from planetwire.datasets.registry import observed_sources
from planetwire.runtime.clock import SystemClock
from planetwire.settings import StreamSettings
from planetwire.stream.hub import Hub
from planetwire.web.access.limits import ConnectionLimits
from planetwire.web.http import problems
from planetwire.web.live import sse_route
from planetwire.web.live.frames import sse_encoder
from planetwire.web.live.sse import SseEndpoint
from planetwire.web.live.sse_protocol import make_protocol
from planetwire.web.terminal import ingest

SOURCES = observed_sources()

WINDOW = timedelta(hours=6)


def city_key(name: str) -> str | None:
    city = cities.resolve(name)
    return city.key if city else None


def named(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


@dataclass
class Served:
    """The observation half over HTTP: real store, log, hub, stream and ingest."""

    observations: Observations
    port: int

    async def open(self, cities: str, since: object = None, *, limit: int | None = None, **headers: str) -> SseClient:
        target = f"/api/events?cities={cities}"
        target += f"&since_revision={since}" if since is not None else ""
        target += f"&replay_limit={limit}" if limit is not None else ""
        client = await SseClient.connect(
            self.port, target, headers={k.replace("_", "-"): v for k, v in headers.items()}
        )
        assert client.status == 200
        return client

    async def push(self, body: Any) -> httpx.Response:
        async with httpx.AsyncClient(trust_env=False, base_url=f"http://127.0.0.1:{self.port}") as http:
            return await http.post(
                "/api/internal/collector-patch", json=body, headers={"Authorization": "Bearer ingest-token"}
            )


@asynccontextmanager
async def serving(observations: Observations) -> AsyncIterator[Served]:
    hub = Hub(observations.log, encode=sse_encoder(observations.log.epoch), clock=SystemClock(), stall_s=20)
    await hub.start()
    observations.store.on_committed = hub.publish
    endpoint = SseEndpoint(
        hub,
        resolve_city=city_key,
        guard=the_guard(),
        limits=ConnectionLimits(total=100, per_address=100),
        clock=SystemClock(),
        settings=StreamSettings(),
    )
    app = FastAPI()
    problems.install(app)
    app.include_router(sse_route.router(endpoint))
    app.include_router(
        ingest.router(
            ingest.IngestEndpoint(Ingest(observations.store, observations.clock, SOURCES).accept, the_guard())
        )
    )
    config = uvicorn.Config(app, http=make_protocol(endpoint), lifespan="off", log_config=None, access_log=False)
    server = uvicorn.Server(config)
    config.load()
    server.lifespan = config.lifespan_class(config)
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    await server.startup(sockets=[listener])
    try:
        yield Served(observations, listener.getsockname()[1])
    finally:
        endpoint.drain()
        await server.shutdown(sockets=[listener])
        await hub.aclose()


@pytest_asyncio.fixture
async def served(observations: Observations) -> AsyncIterator[Served]:
    async with serving(observations) as running:
        yield running


async def test_only_events_of_the_asked_cities_are_replayed_in_order_before_live_ones(served: Served) -> None:
    """S154, S162–S165, S201, S224, S226: connected, then the missed events, then live; nothing of other cities."""
    first = await served.observations.put("shanghai", 20.0)
    for number in range(5):
        await served.observations.put("shanghai", 21.0 + number)
        await served.observations.put("moscow", -5.0 - number)
    client = await served.open("shanghai", first.revision)
    connected, *replayed = await client.frames(6)
    assert connected["type"] == "connected"
    assert connected["revision"] == 11
    assert [frame["payload"]["temp"] for frame in replayed] == [21.0, 22.0, 23.0, 24.0, 25.0]
    assert {frame["city"] for frame in replayed} == {"shanghai"}
    assert [frame["revision"] for frame in replayed] == [2, 4, 6, 8, 10]
    await served.observations.put("moscow", -20.0)
    await served.observations.put("shanghai", 30.0)
    live = await client.until("city_observation_patch.v1")
    assert (live["payload"]["temp"], live["prev_revision"]) == (30.0, 10)


async def test_each_event_names_the_one_before_of_its_city_so_that_a_jump_is_no_gap(served: Served) -> None:
    """Q1, S194."""
    for number in range(4):
        await served.observations.put("shanghai", 10.0 + number)
        await served.observations.put("tokyo", 20.0 + number)
    client = await served.open("shanghai", 0)
    _, *frames = await client.frames(5)
    known = 0
    for frame in frames:
        assert frame["prev_revision"] == known
        known = frame["revision"]


async def test_without_a_cursor_nothing_is_replayed(served: Served) -> None:
    """Q3."""
    await served.observations.put("shanghai", 20.0)
    client = await served.open("shanghai")
    assert (await client.frames(1))[0]["type"] == "connected"
    await served.observations.put("shanghai", 21.0)
    assert (await client.until("city_observation_patch.v1"))["payload"]["temp"] == 21.0


async def test_over_the_limit_the_client_is_told_to_resync_and_gets_no_part_of_a_replay(served: Served) -> None:
    """S152, S156, S202, S226."""
    for number in range(4):
        await served.observations.put("shanghai", 10.0 + number)
    client = await served.open("shanghai", 0, limit=3)
    _, told = await client.frames(2)
    assert (told["type"], told["reason"], told["latest_revision"]) == ("resync_required", "replay_window_exceeded", 4)
    assert told["cities"] == ["shanghai"]
    await served.observations.put("shanghai", 20.0)
    assert (await client.frames(1))[0]["payload"]["temp"] == 20.0, "after the resync the stream goes on live"


@pytest.mark.parametrize(
    ("away", "reason"), [(WINDOW - timedelta(minutes=1), None), (WINDOW, "replay_window_exceeded")]
)
async def test_inside_the_window_it_is_replay_and_beyond_it_is_resync(
    served: Served, away: timedelta, reason: str | None
) -> None:
    """S125, S129, S156, S202, S227: 5 h 59 min offline is caught up; once events were dropped, the client is told."""
    seen = await served.observations.put("shanghai", 20.0)
    await served.observations.put("shanghai", 21.0)
    served.observations.clock.advance(away.total_seconds() + 1)
    await served.observations.store.prune()
    client = await served.open("shanghai", seen.revision)
    _, answer = await client.frames(2)
    if reason is None:
        assert answer["payload"]["temp"] == 21.0
    else:
        assert (answer["type"], answer["reason"]) == ("resync_required", reason)


async def test_an_old_cursor_of_a_quiet_city_is_no_gap(served: Served) -> None:
    """Q2: only an event of the asked cities that is gone is a reason to resync."""
    seen = await served.observations.put("shanghai", 20.0)
    for number in range(3):
        await served.observations.put("moscow", float(-number))
    served.observations.clock.advance(WINDOW.total_seconds() * 2)
    await served.observations.store.prune()
    client = await served.open("shanghai", seen.revision)
    assert (await client.frames(1))[0]["type"] == "connected"
    await served.observations.put("shanghai", 22.0)
    assert (await client.frames(1))[0]["payload"]["temp"] == 22.0


async def test_a_cursor_ahead_of_the_log_or_of_another_life_is_told(served: Served) -> None:
    """Q4."""
    await served.observations.put("shanghai", 20.0)
    ahead = await served.open("shanghai", 999)
    assert (await ahead.frames(2))[1]["reason"] == "revision_ahead"
    foreign = await served.open("shanghai", "zzzzzzzzzzzz-1")
    assert (await foreign.frames(2))[1]["reason"] == "epoch_changed"


async def test_the_browsers_own_last_event_id_wins_over_the_url(served: Served) -> None:
    """S184, S186: on the browser's own reconnect the URL is the older of the two."""
    for number in range(3):
        await served.observations.put("shanghai", 20.0 + number)
    epoch = served.observations.log.epoch
    client = await served.open("shanghai", 0, last_event_id=f"{epoch}-2")
    _, replayed = await client.frames(2)
    assert replayed["payload"]["temp"] == 22.0
    assert client.ids[-1] == f"{epoch}-3"


@pytest.mark.parametrize("name", ["hong%20kong", "hong-kong", "hong_kong", "HKG", "%E9%A6%99%E6%B8%AF"])
async def test_city_names_are_found_under_any_spelling(served: Served, name: str) -> None:
    """S150."""
    await served.observations.put("hong kong", 25.0)
    client = await served.open(name, 0)
    connected, replayed = await client.frames(2)
    assert list(connected["cities"]) == ["hong kong"]
    assert replayed["city"] == "hong kong"


async def test_an_older_patch_pushed_meanwhile_arrives_as_v1(served: Served) -> None:
    """S112, S146, S148, S166, S183, S225, S229, S226: log first, then broadcast."""
    client = await served.open("shanghai")
    await client.frames(1)
    answer = await served.push({"type": "city_patch", "city": "Shanghai", "changes": {"temp": 30.4}, "revision": 77})
    assert answer.status_code == 200
    live = await client.until("city_observation_patch.v1")
    assert (live["city"], live["payload"]["temp"], live["revision"]) == ("shanghai", 30.4, answer.json()["revision"])
    again = await served.open("shanghai", 0)
    assert (await again.frames(2))[1] == live, "replayed as it was sent live"


async def test_events_committed_during_the_hand_over_are_neither_lost_nor_doubled(served: Served) -> None:
    """Q5: replay up to the head of the moment, then live."""
    await served.observations.put("shanghai", 0.0)
    done = asyncio.Event()

    async def publish() -> None:
        number = 0
        while not done.is_set():
            number += 1
            await served.observations.put("shanghai", number / 100)

    publishing = asyncio.ensure_future(publish())
    try:
        for _ in range(20):
            client = await served.open("shanghai", 0, limit=2000)
            frames = [frame for frame in await client.frames(8) if frame["type"] != "connected"]
            known = 0
            for frame in frames:
                assert frame["prev_revision"] == known
                known = frame["revision"]
            await client.close()
    finally:
        done.set()
        await publishing
