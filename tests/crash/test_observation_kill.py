"""Killing the process that writes observations: what was acknowledged is there, and no revision is given twice."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fix_observations import Observations, open_observations
from planetwire.runtime.clock import SystemClock

WRITER = Path(__file__).with_name("observation_writer.py")
CITIES = ["city:seoul", "city:taipei", "city:london", "city:paris"]
TIMEOUT_S = 60
FAILPOINTS = [None, "observations.commit.before:40", "observations.commit.after:40"]


def run_until_killed(place: str, failpoint: str | None, after: int) -> tuple[str, list[int]]:
    """The epoch, and the revisions that the writer printed before it died (at the failpoint, or killed by us)."""
    environ = {**os.environ, **({"PLANETWIRE_FAILPOINT": failpoint} if failpoint else {})}
    writer = subprocess.Popen([sys.executable, str(WRITER), place], stdout=subprocess.PIPE, text=True, env=environ)
    assert writer.stdout is not None
    epoch = writer.stdout.readline().split()[1]
    lines: list[str] = []
    for line in writer.stdout:  # ends when the process dies
        lines.append(line)
        if failpoint is None and len(lines) == after:
            writer.kill()
    writer.wait(TIMEOUT_S)
    writer.stdout.close()
    return epoch, [int(line) for line in lines if line.endswith("\n")]


async def three_lives(place: str, failpoint: str | None) -> list[int]:
    """What was acknowledged; kill -9 in between. No revision is given twice, and all lives are of one log."""
    acknowledged: list[int] = []
    epochs = set()
    for _ in range(3):
        epoch, revisions = await asyncio.to_thread(run_until_killed, place, failpoint, 200)
        assert len(revisions) >= 30
        assert not set(revisions) & set(acknowledged)
        assert not acknowledged or min(revisions) > max(acknowledged)
        acknowledged += revisions
        epochs.add(epoch)
    assert len(epochs) == 1
    return acknowledged


async def check_stored(opened: Observations, acknowledged: list[int]) -> None:
    stored = await opened.log.page(CITIES, 0, 100_000)
    revisions = [event.revision for event in stored]
    assert set(acknowledged) <= set(revisions)
    assert revisions == list(range(1, len(revisions) + 1))
    last: dict[str, int] = {}
    for event in stored:
        assert event.prev_revision == last.get(event.topic, 0)
        last[event.topic] = event.revision


@pytest.mark.parametrize("failpoint", FAILPOINTS)
async def test_acknowledged_revisions_survive_a_kill(tmp_path: Path, failpoint: str | None) -> None:
    """S198, S210: three lives of one file; kill -9 in between, also just before and just after a commit."""
    path = tmp_path / "observations.db"
    acknowledged = await three_lives(str(path), failpoint)
    opened = await open_observations(path, SystemClock())  # type: ignore[arg-type]
    try:
        await check_stored(opened, acknowledged)
    finally:
        await opened.close()


@pytest.mark.parametrize("failpoint", FAILPOINTS)
async def test_a_killed_process_leaves_the_database_whole(
    pg_observations: Observations, pg_dsn: str, failpoint: str | None
) -> None:
    """S169, S198: the same in PostgreSQL, where the head's row is let go with the connection."""
    await check_stored(pg_observations, await three_lives(pg_dsn, failpoint))


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
async def test_three_processes_that_append_at_once_and_are_killed_leave_one_row_of_revisions(
    backend: str, tmp_path: Path, pg_observations: Observations, pg_dsn: str
) -> None:
    """S216, Q12: as the web processes of one host do with a file, and those of several with a database."""
    place = pg_dsn if backend == "postgres" else str(tmp_path / "observations.db")
    lives = await asyncio.gather(*(asyncio.to_thread(run_until_killed, place, None, 300) for _ in range(3)))
    acknowledged = sorted(revision for _, revisions in lives for revision in revisions)
    assert len({epoch for epoch, _ in lives}) == 1
    assert len(acknowledged) == len(set(acknowledged)) >= 900
    if backend == "postgres":
        await check_stored(pg_observations, acknowledged)
        return
    opened = await open_observations(Path(place), SystemClock())  # type: ignore[arg-type]
    try:
        await check_stored(opened, acknowledged)
    finally:
        await opened.close()
