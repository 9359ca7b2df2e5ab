"""A pushed observation on the globe, on a whole installation: snapshot, WebSocket event, clearing, restarts."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
from websockets.sync.client import ClientConnection, connect

from fix_installation import NO_FEEDS, Installation, wait_for

LAYER = "weather_stations"


def push(made: Installation, city: str, temp: float, minutes_ago: float) -> None:
    at = (datetime.now(UTC) - timedelta(minutes=minutes_ago)).isoformat()
    answer = httpx.post(
        f"{made.url}/api/internal/collector-patch",
        json={"city": city, "changes": {"temp": temp, "obs_time": at, "source": "probe", "station_code": "prb"}},
        headers={"Authorization": f"Bearer {made.token('ingest')}"},
        trust_env=False,
    )
    assert answer.status_code == 200, answer.text


def stations(client: httpx.Client) -> dict[str, Any]:
    """Features by city."""
    answer = client.get(f"/api/v1/visualization/{LAYER}")
    assert answer.status_code == 200, answer.text
    return {feature["data"]["city"]: feature for feature in answer.json()["features"]}


def listed(client: httpx.Client) -> tuple[int, str, list[str]]:
    layer = next(item for item in client.get("/api/v1/layers").json()["items"] if item["id"] == LAYER)
    return layer["count"], layer["state"], layer["sources"]


@contextmanager
def updates(made: Installation) -> Iterator[ClientConnection]:
    with connect(made.url.replace("http://", "ws://") + "/ws", proxy=None) as socket:
        socket.send(json.dumps({"subscribe": ["earth_updates"]}))
        while json.loads(socket.recv(10))["type"] != "subscribed":
            pass
        yield socket


def heard(socket: ClientConnection, **wanted: object) -> dict[str, Any]:
    deadline = time.monotonic() + 20
    while True:
        frame = json.loads(socket.recv(max(0.0, deadline - time.monotonic())))
        data = frame.get("data", {})
        ours = frame.get("channel") == "earth_updates" and data["layers"] == [LAYER]
        if ours and all(data[key] == value for key, value in wanted.items()):
            return dict(data)


def test_a_pushed_observation_is_a_station_on_the_globe_and_survives_restarts(
    installation: Callable[..., Installation],
) -> None:
    """D8: from the POST to the layer and its event; clear_data empties it; the next reading brings it back."""
    made = installation("up", **NO_FEEDS)
    with made.client() as client, updates(made) as socket:
        assert stations(client) == {}
        push(made, "hong-kong", 28.5, 5)
        event = heard(socket, refresh_strategy="reload")
        assert (event["source"], event["table"], event["action"]) == (
            "city_observation", "collected_data", "database_changed",
        )  # fmt: skip
        feature = stations(client)["hong kong"]
        assert (feature["title"], feature["kind"]) == ("Hong Kong", "weather_station")
        assert feature["data"]["temp_c"] == 28.5
        assert feature["data"]["station_code"] == "PRB"
        assert feature["data"]["freshness"] == "fresh"
        wait_for(lambda: listed(client) == (1, "live", ["city_observation"]), within_s=60, what="a live layer")
        found = client.get("/api/v1/search", params={"q": "VHHH"}).json()["items"]
        assert [item["feature"] for item in found] == [feature["id"]]
        assert client.get(f"/api/v1/objects/{found[0]['id']}").json()["data"]["temp_c"] == 28.5

        push(made, "hong-kong", 29.0, 4)  # within the minute: it waits
        push(made, "taipei", 25.0, 4)
        wait_for(lambda: "taipei" in stations(client), within_s=60, what="the other city")
        made.kill("web")
        wait_for(lambda: _answers(made), within_s=60, what="the web process again")
    made.execute("UPDATE collected_data SET collected_at = collected_at - interval '61 s'")
    made.kill("web")  # as if the minute were over: what waited is found by the cursor
    wait_for(lambda: _answers(made), within_s=60, what="the web process again")
    with made.client() as client:
        wait_for(
            lambda: stations(client)["hong kong"]["data"]["temp_c"] == 29.0, within_s=60, what="the reading that waited"
        )
        with updates(made) as socket:
            task_id = made.submit(client, "clear_data", "city_observation")
            assert made.wait_job(client, task_id)["status"] == "completed"
            heard(socket, refresh_strategy="clear_then_reload")
        assert stations(client) == {}
        assert client.get("/api/v1/search", params={"q": "VHHH"}).json()["items"] == []
        push(made, "tokyo", 18.0, 2)
        wait_for(lambda: set(stations(client)) == {"tokyo"}, within_s=60, what="who reports is back, alone")


def _answers(made: Installation) -> bool:
    try:
        return httpx.get(f"{made.url}/readyz", trust_env=False, timeout=5).status_code == 200
    except httpx.TransportError:
        return False
