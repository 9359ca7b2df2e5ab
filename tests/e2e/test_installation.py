"""`up` as an operator meets it: one installation a data dir, halves alone, clean ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from fix_installation import NO_FEEDS, Installation, an_installation


def run(data_dir: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("PLANETWIRE_")}
    env |= {"PLANETWIRE_DATA_DIR": str(data_dir), "PLANETWIRE_PORT": "0"} | environment
    return subprocess.run(
        [sys.executable, "-m", "planetwire", *command], env=env, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.fixture(scope="module")
def whole() -> Iterator[Installation]:
    """Both halves, without feeds; its first start is a first start."""
    with an_installation("up", from_nothing=True, **NO_FEEDS) as made:
        yield made


@pytest.fixture(scope="module")
def weather() -> Iterator[Installation]:
    """The weather half alone."""
    with an_installation("up", "--only", "terminal", **NO_FEEDS) as made:
        yield made


def test_a_second_up_on_the_same_data_dir_says_so_and_exits_1(whole: Installation) -> None:
    second = run(whole.data_dir, "up")
    assert second.returncode == 1
    assert "already runs" in second.stderr and whole.url in second.stderr
    assert httpx.get(f"{whole.url}/healthz", trust_env=False).status_code == 200


def test_the_weather_half_alone_starts_no_postgresql(weather: Installation) -> None:
    """Q14, S113, S212."""
    made = weather
    assert set(made.children()) == {"web", "collect"}
    assert not (made.data_dir / "postgres").exists()
    ready = httpx.get(f"{made.url}/readyz", trust_env=False)
    assert ready.status_code == 200 and ready.json()["halves"] == ["terminal"]
    assert httpx.get(f"{made.url}/api/scan/terminal", trust_env=False).status_code == 200
    off = httpx.get(f"{made.url}/api/v1/layers", trust_env=False)
    assert (off.status_code, off.json()["code"]) == (404, "half_disabled")


def alive(pid: int) -> bool:
    """Whether the process runs; a zombie that nobody has waited for yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_everything_ends_with_its_parent_however_it_ends(installation: Callable[..., Installation]) -> None:
    made = installation("up", **NO_FEEDS)
    children = made.children()
    assert made.process is not None
    made.process.kill()
    made.process.wait()
    deadline = time.monotonic() + 20
    while left := [role for role, pid in children.items() if alive(pid)]:
        assert time.monotonic() < deadline, f"still there: {left}\n{made.log()[-2000:]}"
        time.sleep(0.05)
    assert made.process.stdout is not None
    made.process.stdout.close()
    made.process = None
    made.start()
    assert httpx.get(f"{made.url}/readyz", trust_env=False).status_code == 200
    assert made.stop() == 0


def test_config_prints_an_address_that_psql_can_use(whole: Installation) -> None:
    made = whole
    printed = run(made.data_dir, "config", "--json")
    values = json.loads(printed.stdout)
    assert values["database_url"] == made.dsn
    assert values["admin_token"] == "***"
    shown = json.loads(run(made.data_dir, "config", "--json", "--show-secrets").stdout)
    assert shown["admin_token"] == made.token()


def test_jobs_can_be_submitted_seen_and_cancelled_from_a_shell(whole: Installation) -> None:
    """S44, Q28."""
    made = whole
    os.kill(made.children()["work"], 19)  # SIGSTOP: nothing claims while we look
    try:
        submitted = json.loads(run(made.data_dir, "jobs", "submit", "collect", "usgs_quakes", "--json").stdout)
        assert submitted["created"] is True
        again = json.loads(run(made.data_dir, "jobs", "submit", "collect", "usgs_quakes", "--json").stdout)
        assert again == {"task_id": submitted["task_id"], "status": "queued", "created": False}
        listed = json.loads(run(made.data_dir, "jobs", "ls", "--json").stdout)
        assert [job["id"] for job in listed] == [submitted["task_id"]]
        assert "usgs_quakes" in run(made.data_dir, "jobs", "ls").stdout
        cancelled = run(made.data_dir, "jobs", "cancel", str(submitted["task_id"]))
        assert cancelled.returncode == 0 and "cancelled" in cancelled.stdout
        assert run(made.data_dir, "jobs", "cancel", str(submitted["task_id"])).returncode == 1
    finally:
        os.kill(made.children()["work"], 18)
    wrong = run(made.data_dir, "jobs", "submit", "colect", "usgs_quakes")
    assert wrong.returncode == 2 and "did you mean collect" in wrong.stderr


def test_doctor_finds_nothing_wrong_on_a_healthy_installation(whole: Installation) -> None:
    """S88."""
    report = run(whole.data_dir, "doctor")
    assert report.returncode == 0, report.stdout + report.stderr


def test_doctor_names_the_stage_that_is_broken_and_what_to_do(whole: Installation) -> None:
    """S88: a dropped trigger is found before anything behind it is blamed; what it says to do mends it."""
    whole.execute("drop trigger tr_planet_collected_data_changed_delete on collected_data")
    report = run(whole.data_dir, "doctor")
    assert report.returncode == 1
    assert "tr_planet_collected_data_changed_delete" in report.stdout
    assert "First broken stage: Every fact and derived table has its triggers" in report.stdout
    assert "planetwire migrate --repair" in report.stdout
    assert run(whole.data_dir, "migrate", "--repair").returncode == 0
    mended = run(whole.data_dir, "doctor")
    assert mended.returncode == 0, mended.stdout + mended.stderr


def test_a_misspelt_setting_stops_the_start(data_dir: Path) -> None:
    refused = run(data_dir, "up", PLANETWIRE_DATABSE_URL="x")
    assert refused.returncode == 1
    assert "did you mean PLANETWIRE_DATABASE_URL" in refused.stderr


def test_a_port_in_use_is_the_first_thing_said(weather: Installation, data_dir: Path) -> None:
    port = weather.url.rpartition(":")[2]
    second = run(data_dir.parent / "other", "up", "--only", "terminal", PLANETWIRE_PORT=port)
    assert second.returncode == 1
    assert "cannot listen" in second.stderr


def test_path_prints_one_line_a_stage(data_dir: Path) -> None:
    lines = run(data_dir, "path").stdout.splitlines()
    assert [line.split()[0] for line in lines] == [
        "jobs", "collect", "facts", "layers", "outbox", "relay", "stream", "web",
    ]  # fmt: skip
    assert all(len(line.split(None, 1)[1]) > 20 for line in lines)
