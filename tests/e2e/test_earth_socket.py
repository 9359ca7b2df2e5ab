"""What a browser hears on `/ws` while a long collect of the same source is under way, on a whole installation."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from websockets.sync.client import ClientConnection, connect

from fix_installation import Installation, wait_for
from pace import promised

WITHIN_S = 2.0  # S34
OFF = {f"PLANETWIRE_FEEDS__{source}__ENABLED": "false" for source in ("CELESTRAK_GP", "USGS_QUAKES", "AWC_METAR")}
SLOW = {"PLANETWIRE_JOBS__BATCH_ROWS": "200", "PLANETWIRE_FEEDS__CELESTRAK_GP__MAX_ROWS_PER_S": "200"}


@contextmanager
def subscribed(made: Installation, *channels: str) -> Iterator[ClientConnection]:
    with connect(made.url.replace("http://", "ws://") + "/ws", proxy=None) as socket:
        socket.send(json.dumps({"subscribe": list(channels)}))
        while json.loads(socket.recv(10))["type"] != "subscribed":
            pass
        yield socket


def heard(socket: ClientConnection, channel: str, within_s: float, **wanted: object) -> dict[str, Any]:
    """The first message of the channel with these values; TimeoutError after the time."""
    deadline = time.monotonic() + within_s
    while True:
        frame = json.loads(socket.recv(max(0.0, deadline - time.monotonic())))
        data = frame.get("data", {})
        if frame.get("channel") == channel and all(data.get(key) == value for key, value in wanted.items()):
            return dict(data)


def submit(client: httpx.Client, **wish: object) -> int:
    answer = client.post("/api/v1/jobs", json=wish)
    assert answer.status_code == 202, answer.text
    return int(answer.json()["task_id"])


@pytest.fixture
def collecting(
    installation: Callable[..., Installation], feed_environment: dict[str, str]
) -> Iterator[tuple[Installation, httpx.Client, int]]:
    """An Earth half in whose ledger a collect of a minute runs; some of its batches are committed."""
    made = installation("up", "--only", "earth", **{**feed_environment, **OFF, **SLOW})
    with made.client() as client:
        task_id = submit(client, task_type="collect", source="celestrak_gp")
        wait_for(
            lambda: made.job(client, task_id)["records_processed"] >= 400, within_s=60, what="some committed batches"
        )
        yield made, client, task_id


def test_changes_and_hints_of_a_source_pass_its_long_collect(
    collecting: tuple[Installation, httpx.Client, int],
) -> None:
    """S6, S7, S33–S35, S42, S43, S80, Q16, Q27: none of them waits for the minute that the collect takes."""
    made, client, collect = collecting
    with subscribed(made, "earth_updates") as socket:
        made.execute("DELETE FROM collected_data WHERE id = (SELECT min(id) FROM collected_data)")
        deleted = heard(socket, "earth_updates", promised(WITHIN_S), operation="DELETE")
        assert (deleted["action"], deleted["refresh_strategy"]) == ("database_changed", "clear_then_reload")
        assert deleted["layers"] == ["satellites"]
        cleared = submit(client, task_type="clear_cache", source="celestrak_gp")
        hint = heard(socket, "earth_updates", promised(WITHIN_S), action="cache_cleared")
        assert (hint["layers"], hint["table"], hint["operation"]) == (["satellites"], None, None)
        for wish, layer in (
            ({"source": "celestrak_gp"}, "satellites"),
            ({"payload": {"layer": "earthquakes"}}, "earthquakes"),
        ):
            refreshed = submit(client, task_type="earth_refresh", **wish)
            hint = heard(socket, "earth_updates", promised(WITHIN_S), action="manual_refresh")
            assert (hint["layers"], hint["refresh_strategy"]) == ([layer], "reload")
    assert made.job(client, collect)["status"] == "running", "all that while it ran"
    for task_id in (cleared, refreshed):
        assert made.wait_job(client, task_id, within_s=60)["status"] == "completed"
    kinds = made.value("SELECT array_agg(task_type ORDER BY task_type) FROM collection_tasks")
    assert kinds == ["clear_cache", "collect", "earth_refresh", "earth_refresh"], "a database change makes no job"


def test_a_stopped_collect_is_seen_on_the_channel_of_jobs(
    collecting: tuple[Installation, httpx.Client, int],
) -> None:
    """S46–S50: the row as it changes; what was committed stays, and the retry is a job of its own."""
    made, client, collect = collecting
    with subscribed(made, "datasource_tasks") as socket:
        heard(socket, "datasource_tasks", 10, id=collect, status="running")
        assert client.post(f"/api/v1/jobs/{collect}/cancel").status_code == 202
        ended = heard(socket, "datasource_tasks", 20, id=collect, status="cancelled")
        kept = made.value("SELECT count(*) FROM collected_data WHERE source = 'celestrak_gp'")
        assert 400 <= ended["records_processed"] == kept
        assert client.post(f"/api/v1/jobs/{collect}/cancel").status_code == 409
        again = client.post(f"/api/v1/jobs/{collect}/retry")
        assert again.status_code == 202, again.text
        heard(socket, "datasource_tasks", 20, id=again.json()["task_id"], status="running")
