"""A source declared while `up` runs with two web processes: a real process tree, nothing restarted, every way in."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from typing import Any

import httpx
from websockets.sync.client import connect

from declared_tools import quakes, quakes_address
from fix_installation import NO_FEEDS, PROGRAM, Installation, wait_for
from pace import promised
from planetwire.demo.server import FeedServer

LIVE_S = 2.0
ASKED = 20  # over connections of their own, so that each of the two processes answers some


def listed(made: Installation, layer: str) -> set[bool]:
    """Whether the layer is listed, as all answers have it."""
    found = set()
    for _ in range(ASKED):
        with httpx.Client(trust_env=False, timeout=60) as client:
            items = client.get(f"{made.url}/api/v1/layers").json()["items"]
            found.add(layer in {one["id"] for one in items})
    return found


def test_a_source_is_declared_changed_and_removed_while_everything_runs(
    installation: Callable[..., Installation], feed_server: FeedServer
) -> None:
    """S72."""
    several = {"PLANETWIRE_WEB_WORKERS": "2", "PLANETWIRE_BUS": "postgres", "PLANETWIRE_SOURCES_PRIVATE": "true"}
    made = installation("up", "--only", "earth", **several, **NO_FEEDS)
    pids = set(made.roles())
    text = quakes(url=quakes_address(feed_server.url))
    with connect(f"{made.url.replace('http', 'ws', 1)}/ws", proxy=None) as page:
        page.send(json.dumps({"subscribe": ["earth_updates"]}))
        heard(page, lambda frame: frame.get("type") == "subscribed")
        began = time.monotonic()
        answer = command(made, "add", "-", stdin=text)
        assert answer.returncode == 0, answer.stderr
        stored = time.monotonic()
        told = heard(page, lambda frame: frame.get("type") == "layers_changed")
        assert time.monotonic() - stored <= promised(LIVE_S)
        assert told["revision"] == 1
        wait_for(lambda: listed(made, "my_quakes") == {True}, within_s=60, what="both list it")
        heard(page, lambda frame: "my_quakes" in frame.get("data", {}).get("layers", ()))
        assert time.monotonic() - began <= promised(60.0)  # a layer within a minute
    count = made.value("select count(*) from collected_data where source = 'my_quakes'")
    with made.client() as client:
        wait_for(
            lambda: client.get("/api/v1/visualization/my_quakes").json()["count"] == count > 0,
            within_s=60,
            what="its rows are shown",
        )
    made.execute("update declared_sources set enabled = false")
    wait_for(lambda: listed(made, "my_quakes") == {False}, within_s=60, what="neither lists it")
    made.execute("update declared_sources set enabled = true")
    wait_for(lambda: listed(made, "my_quakes") == {True}, within_s=60, what="both list it again")
    assert command(made, "rm", "my_quakes", "--clear-data", "--yes").returncode == 0
    wait_for(lambda: listed(made, "my_quakes") == {False}, within_s=60, what="it is gone from both")
    wait_for(
        lambda: made.value("select count(*) from collected_data where source = 'my_quakes'") == 0,
        within_s=60,
        what="its records are gone",
    )
    assert set(made.roles()) == pids  # nobody was started anew


def command(made: Installation, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, "sources", *words],
        env={"PLANETWIRE_DATA_DIR": str(made.data_dir), "PLANETWIRE_SOURCES_PRIVATE": "true"},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
    )


def heard(page: Any, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    while True:
        frame: dict[str, Any] = json.loads(page.recv(60))
        if wanted(frame):
            return frame
