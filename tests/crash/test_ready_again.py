"""What held: whatever part of an installation is frozen or killed, it is ready again by itself, and goes on working."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import asyncpg
import httpx
import pytest

from fix_installation import NO_FEEDS, Installation, wait_for

WITHIN_S = 60.0
FACT = """insert into collected_data (source, external_key, kind, title)
values ('usgs_quakes', '{}', 'earthquake', 'here')"""
KEPT = "select count(*) from collected_data where source = 'usgs_quakes'"
BACKEND = """select pid from pg_stat_activity
where backend_type = 'client backend' and pid <> pg_backend_pid() limit 1"""
DISK_MB = 200


def status(made: Installation, path: str = "/readyz") -> int:
    """0: no answer."""
    try:
        return httpx.get(f"{made.url}{path}", timeout=10, trust_env=False).status_code
    except httpx.HTTPError:
        return 0


def family(pid: int) -> list[int]:
    """A process and its children."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += [int(child) for child in (task / "children").read_text().split()]
    return found


def head(made: Installation) -> int:
    """The newest event's revision; -1 while PostgreSQL does not answer."""
    found = made.try_value("select coalesce(max(revision), 0) from earth_broadcasts")
    return -1 if found is None else int(found)


def works(made: Installation, name: str) -> None:
    """Ready; a change of the database becomes an event; a job is taken and ends; a reading is stored."""
    wait_for(lambda: status(made) == 200, within_s=WITHIN_S, what=f"ready after {name}")
    before = head(made)
    made.execute(FACT.format(name))
    wait_for(lambda: head(made) > before, within_s=WITHIN_S, what=f"an event after {name}")
    with made.client() as client:
        job = made.submit(client, "clear_cache", "usgs_quakes")
        assert made.wait_job(client, job, within_s=WITHIN_S)["status"] == "completed"
        pushed = client.post("/api/internal/collector-patch", json={"city": "shanghai", "changes": {"temp": 21.5}})
        assert pushed.status_code == 200, pushed.text


def test_it_is_ready_again_whatever_was_frozen_or_killed(installation: Callable[..., Installation]) -> None:
    """In turn: PostgreSQL frozen; one of its backends, its postmaster, the worker, the web process killed."""
    made = installation("up", **NO_FEEDS)
    works(made, "the start")
    frozen = family(made.children()["postgres"])
    for pid in frozen:
        os.kill(pid, signal.SIGSTOP)
    try:
        wait_for(lambda: status(made) != 200, within_s=WITHIN_S, what="not ready while PostgreSQL stands still")
        assert status(made, "/healthz") == 200
    finally:
        for pid in frozen:
            os.kill(pid, signal.SIGCONT)
    works(made, "the frost")
    os.kill(made.value(BACKEND), signal.SIGKILL)
    works(made, "a backend")
    for role in ("postgres", "work", "web"):
        killed = made.kill(role)
        wait_for(lambda role=role, killed=killed: replaced(made, role, killed), within_s=WITHIN_S, what=f"a new {role}")
        works(made, role)
    assert made.value(KEPT) == 6, "what was committed stays"


def replaced(made: Installation, role: str, pid: int) -> bool:
    return made.children().get(role) not in (None, pid)


@pytest.fixture
def small_disk(data_dir: Path) -> Iterator[Path]:
    """A file system of its own, large enough for an installation and little more."""
    disk = data_dir.parent / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m,mode=755", "none", disk], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("only root may mount a small disk")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


def test_writes_resume_when_a_full_disk_is_freed(small_disk: Path) -> None:
    """Nothing that was acknowledged is lost, and nobody has to restart anything."""
    made = Installation(small_disk / "data", ("up",), dict(NO_FEEDS))
    made.start()
    try:
        works(made, "the start")
        ballast = small_disk / "ballast"
        with ballast.open("wb") as file, pytest.raises(OSError, match="No space left"):
            for _ in range(DISK_MB):
                file.write(b"x" * (1 << 20))
                file.flush()
        with made.client() as client:
            wait_for(lambda: not stored(client), within_s=WITHIN_S, what="a reading is refused")
        wait_for(lambda: not written(made), within_s=WITHIN_S, what="a fact is refused")
        kept = made.try_value(KEPT)
        ballast.unlink()
        works(made, "the flood")
        assert kept is None or made.value(KEPT) == kept + 1
    finally:
        made.stop()


def stored(client: httpx.Client) -> bool:
    """A long reading, of another time each: it has to go to the disk."""
    changes = [{"temp": 20 + n / 100, "station_label": "x" * 80, "obs_time": time.time() - n} for n in range(200)]
    patches = [{"city": "shanghai", "changes": each} for each in changes]
    return client.post("/api/internal/collector-patch", json=patches).status_code == 200


def written(made: Installation) -> bool:
    """A row of a megabyte that does not compress."""
    try:
        made.execute(
            "create table if not exists ballast (text text); insert into ballast"
            " select string_agg(md5(random()::text), '') from generate_series(1, 32768)"
        )
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
        return False
    return True
