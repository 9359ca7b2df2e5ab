"""The diagnostic and its remedies on a whole installation, from a shell."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from fix_installation import NO_FEEDS, Installation, an_installation, wait_for


def run(made: Installation, *command: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("PLANETWIRE_")}
    env["PLANETWIRE_DATA_DIR"] = str(made.data_dir)
    return subprocess.run(
        [sys.executable, "-m", "planetwire", *command], env=env, capture_output=True, text=True, timeout=60, check=False
    )


def steps(made: Installation) -> dict[str, Any]:
    return {step["step"]: step for step in json.loads(run(made, "doctor", "--json").stdout)}


@pytest.fixture(scope="module")
def earth_alone() -> Iterator[Installation]:
    """Without feeds."""
    with an_installation("up", "--only", "earth", **NO_FEEDS) as made:
        yield made


def test_the_earth_half_alone_says_that_the_other_is_off(earth_alone: Installation) -> None:
    made = earth_alone
    off = httpx.get(f"{made.url}/api/events?cities=shanghai", trust_env=False)
    assert (off.status_code, off.json()["code"]) == (404, "half_disabled")
    layers = httpx.get(f"{made.url}/api/v1/layers", trust_env=False).json()["items"]
    assert {layer["id"] for layer in layers} >= {"satellites", "earthquakes"}
    assert all(layer["count"] == 0 for layer in layers), "layers are listed and empty before any feed succeeded"


def test_an_embedded_server_follows_new_partitions_by_itself(earth_alone: Installation) -> None:
    """Its superuser is ours, so event triggers can be made."""
    made = earth_alone
    assert made.value("select count(*) from pg_event_trigger where evtname like 'planet_follow_%'") == 2
    made.execute("create table more_data () inherits (collected_data)")
    found = steps(made)["triggers"]
    assert found["ok"] and "on 1 partitions" in found["detail"] and not found["findings"]


def test_a_stopped_web_process_is_named_while_it_is_stopped(earth_alone: Installation) -> None:
    """S88: the relay lives in it, so the relay is what fails first; once it goes on, all is well again."""
    made = earth_alone
    web = made.children()["web"]
    os.kill(web, signal.SIGSTOP)
    try:
        report = run(made, "doctor", "--json")
        assert report.returncode == 1
        found = json.loads(report.stdout)
        named = {step["step"] for step in found if not step["ok"]}
        assert {"outbox", "listener", "websocket", "visualization", "ready"} <= named
        assert not named & {"facts", "triggers", "adapter"}
    finally:
        os.kill(web, signal.SIGCONT)
    wait_for(lambda: run(made, "doctor").returncode == 0, within_s=60, what="doctor finds nothing")
    assert json.loads(run(made, "outbox", "lag", "--json").stdout)["pending"] == 0
