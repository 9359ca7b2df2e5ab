"""The database or the leader is killed under a whole installation: within fifteen seconds changes reach browsers."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from cable import Cable
from fix_installation import NO_FEEDS, Installation, wait_for
from ledger_tools import until
from pace import promised
from planetwire.model.finding import first_broken
from planetwire.supervise.embedded_postgres import EmbeddedPostgres
from steadfast import ADD, Browser, write
from web_processes import web_processes

WITHIN_S = 15.0
HELD = "select leader_expires_at > clock_timestamp() from earth_log_head"
WAITING = "select count(*) from earth_data_change_events where consumed_at is null"


def examined(**environment: str) -> tuple[str | None, set[str]]:
    """What `planetwire doctor` names first, and all codes that it found."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PLANETWIRE_")} | environment
    words = [sys.executable, "-m", "planetwire", "doctor", "--json"]
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=90, check=False)
    assert done.stdout, done.stderr
    steps = json.loads(done.stdout)
    broken = first_broken(steps)
    assert (done.returncode == 0) == (broken is None)
    return broken and broken["step"], {finding["code"] for step in steps for finding in step["findings"]}


@contextmanager
def left_broken(made: Installation, victim: str) -> Iterator[None]:
    """One child is killed, and nobody restarts it until the block ends."""
    assert made.process is not None
    os.kill(made.process.pid, signal.SIGSTOP)
    try:
        made.kill(victim)
        yield
    finally:
        os.kill(made.process.pid, signal.SIGCONT)


def opened(made: Installation) -> Browser:
    """A browser that has heard of the first change."""
    wait_for(lambda: made.try_value("select leader_holder from earth_log_head"), within_s=60, what="a leader")
    made.execute(ADD.format(0))
    wait_for(lambda: made.value("select count(*) from earth_broadcasts"), within_s=60, what="the first event")
    browser = Browser(made.url, f"{made.value('select epoch from earth_log_head')}-0")
    browser.until(1, time.monotonic() + 60)
    return browser


@pytest.mark.parametrize("victim", ["postgres", "web"])
def test_changes_go_on_within_seconds_of_a_kill(installation: Callable[..., Installation], victim: str) -> None:
    """S32, Q22, Q23: the leader lives in the web process; what was committed meanwhile is heard of too."""
    made = installation("up", "--only", "earth", **NO_FEEDS)
    browser = opened(made)
    killed = time.monotonic()
    deadline = killed + promised(WITHIN_S)
    made.kill(victim)
    write(made, 1, deadline)
    browser.until(2, deadline)
    print(f"{victim}: {time.monotonic() - killed:.1f} s from the kill to the frame")
    assert browser.revisions == list(range(1, len(browser.revisions) + 1))
    wait_for(lambda: made.value(WAITING) == 0, within_s=60, what="everything consumed")


def test_the_doctor_names_a_killed_database_while_it_is_down(installation: Callable[..., Installation]) -> None:
    """S88."""
    made = installation("up", "--only", "earth", **NO_FEEDS)
    browser = opened(made)
    here = {"PLANETWIRE_DATA_DIR": str(made.data_dir)}
    with left_broken(made, "postgres"):
        broken, codes = examined(**here)
        assert broken == "database" and "database_down" in codes, codes
    deadline = time.monotonic() + promised(WITHIN_S)
    write(made, 1, deadline)
    browser.until(2, deadline)
    wait_for(lambda: examined(**here)[0] is None, within_s=60, what="nothing is broken any more")


def test_the_doctor_names_a_killed_leader_while_there_is_none(installation: Callable[..., Installation]) -> None:
    """S88: at first by what it leaves undone, once its term is over by name. What was written meanwhile arrives."""
    made = installation("up", "--only", "earth", **NO_FEEDS)
    browser = opened(made)
    here = {"PLANETWIRE_DATA_DIR": str(made.data_dir)}
    with left_broken(made, "web"):
        made.execute(ADD.format(1))
        wait_for(lambda: not made.value(HELD), within_s=60, what="the term is over")
        broken, codes = examined(**here)
        assert broken == "listener" and {"relay_absent", "canary_unpublished", "websocket_down"} <= codes, codes
    browser.until(2, time.monotonic() + promised(WITHIN_S))
    wait_for(lambda: examined(**here)[0] is None, within_s=60, what="nothing is broken any more")
    wait_for(lambda: made.value(WAITING) == 0, within_s=60, what="everything consumed")


async def test_the_doctor_names_a_listener_in_a_black_hole_and_changes_arrive_all_the_while(
    pg_cluster: EmbeddedPostgres, pg_dsn: str, pg_pool: Any, tmp_path: Path
) -> None:
    """S11, S88: nothing rings, so the outbox and the log are looked at; what is named is the listener alone."""
    with Cable(f"unix:{pg_cluster.socket_dir}/.s.PGSQL.5432") as cable:
        direct = f"postgresql://planetwire@127.0.0.1:{cable.port}{urlsplit(pg_dsn).path}"
        async with web_processes(tmp_path) as web:
            (process,) = await web.serve({"database_direct_url": direct}, database_url=pg_dsn, halves="earth")
            await process.said("earth.db_changes.connected")
            await pg_pool.execute(ADD.format(0))
            await until(lambda: _some(pg_pool))
            browser = Browser(process.url, f"{await pg_pool.fetchval('select epoch from earth_log_head')}-0")
            await asyncio.to_thread(browser.until, 1, time.monotonic() + 60)
            cable.swallow()
            await pg_pool.execute(ADD.format(1))
            await asyncio.to_thread(browser.until, 2, time.monotonic() + promised(WITHIN_S))
            here = {
                "PLANETWIRE_DATA_DIR": str(tmp_path),
                "PLANETWIRE_DATABASE_URL": pg_dsn,
                "PLANETWIRE_HALVES": "earth",
            }
            here["PLANETWIRE_PORT"] = str(process.port)

            async def is_named() -> bool:
                broken, codes = await asyncio.to_thread(lambda: examined(**here))
                return broken == "listener" and "listener_silent" in codes

            await until(is_named, 60)
            await pg_pool.execute(ADD.format(2))
            await asyncio.to_thread(browser.until, 3, time.monotonic() + promised(WITHIN_S))
            cable.heal()
            cable.unplug()  # as keepalives end, after a minute, what the server still has
            cable.plug_in()

            async def is_well() -> bool:
                return (await asyncio.to_thread(lambda: examined(**here)))[0] is None

            await until(is_well, 90)
            assert browser.revisions == list(range(1, len(browser.revisions) + 1))
            assert await pg_pool.fetchval(WAITING) == 0


async def _some(pool: Any) -> bool:
    return bool(await pool.fetchval("select count(*) from earth_broadcasts"))
