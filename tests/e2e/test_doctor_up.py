"""The diagnostic and its remedies on a whole installation, from a shell."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from fix_installation import NO_FEEDS, Installation, wait_for


def run(made: Installation, *command: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("PLANETWIRE_")}
    env["PLANETWIRE_DATA_DIR"] = str(made.data_dir)
    return subprocess.run(
        [sys.executable, "-m", "planetwire", *command], env=env, capture_output=True, text=True, timeout=60, check=False
    )


def steps(made: Installation) -> dict[str, Any]:
    return {step["step"]: step for step in json.loads(run(made, "doctor", "--json").stdout)}


def test_an_embedded_server_follows_new_partitions_by_itself(installation: Callable[..., Installation]) -> None:
    """Its superuser is ours, so event triggers can be made."""
    made = installation("up", "--only", "earth", **NO_FEEDS)
    assert made.value("select count(*) from pg_event_trigger where evtname like 'planet_follow_%'") == 2
    made.execute("create table more_data () inherits (collected_data)")
    found = steps(made)["triggers"]
    assert found["ok"] and "on 1 partitions" in found["detail"] and not found["findings"]


def test_a_stopped_web_process_is_named_while_it_is_stopped(installation: Callable[..., Installation]) -> None:
    """S88: the relay lives in it, so the relay is what fails first; once it goes on, all is well again."""
    made = installation("up", "--only", "earth", **NO_FEEDS)
    web = made.children()["web"]
    os.kill(web, signal.SIGSTOP)
    try:
        report = run(made, "doctor")
        assert report.returncode == 1 and "First broken stage: " in report.stdout
        found = json.loads(run(made, "doctor", "--json").stdout)
        named = {step["step"] for step in found if not step["ok"]}
        assert {"outbox", "listener", "websocket", "visualization", "ready"} <= named
        assert not named & {"facts", "triggers", "adapter"}
    finally:
        os.kill(web, signal.SIGCONT)
    wait_for(lambda: run(made, "doctor").returncode == 0, within_s=60, what="doctor finds nothing")
    assert json.loads(run(made, "outbox", "lag", "--json").stdout)["pending"] == 0
