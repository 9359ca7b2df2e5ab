"""Faults that only a running server shows: what holds what up, and what a full disk does."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest_asyncio

from file_limit import file_size_limit, journal_end
from fix_observations import START, Observations, open_observations, patch
from live_streams import SseClient
from planetwire.cities import BY_KEY
from planetwire.model import LogEvent
from planetwire.runtime.clock import ManualClock
from test_sse_replay import Served, serving

PATCH = "city_observation_patch.v1"
WINDOW = timedelta(hours=6)


@pytest_asyncio.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    observations = await open_observations(tmp_path / "observations.db", ManualClock(START))
    async with serving(observations) as running:
        yield running
        await SseClient.close_all()
    await observations.close()


async def test_what_waits_for_the_disk_shares_one_flush(sqlite_observations: Observations) -> None:
    """F18, Q7: no connection and no commit of its own for each reading."""
    commits: list[int] = []

    def heard(events: Sequence[LogEvent]) -> None:
        commits.append(len(events))

    store, clock = sqlite_observations.store, sqlite_observations.clock
    store.on_committed = heard
    many = [patch(clock, "seoul", number / 10, obs_time=None) for number in range(150)]
    await asyncio.gather(*(store.append([one]) for one in many))
    assert sum(commits) == 150
    assert len(commits) <= 4, commits


async def test_a_write_that_waits_for_a_lock_holds_no_stream_and_no_snapshot_up(served: Served) -> None:
    """F19: SQLite is waited for in threads; a file that another program holds stops nobody but the writer."""
    await served.observations.put("shanghai", 20.0)
    with closing(sqlite3.connect(served.observations.path, isolation_level=None)) as other:
        other.execute("begin immediate")
        waiting = asyncio.ensure_future(served.push({"city": "shanghai", "changes": {"temp": 21.0}}))
        stream = await served.open("shanghai", 0)  # connects, replays and goes live meanwhile
        _, replayed = await stream.frames(2)
        assert replayed["payload"]["temp"] == 20.0
        assert len(await served.observations.store.latest(["shanghai"])) == 1
        assert not waiting.done()
        other.execute("rollback")
    assert (await waiting).status_code == 200
    assert (await stream.until(PATCH))["payload"]["temp"] == 21.0


async def test_a_full_disk_is_a_500_nothing_is_broadcast_and_the_service_recovers(served: Served) -> None:
    """S166, S190: refused as a whole, heard by nobody, and the revision is not lost: the next one takes it."""
    stream = await served.open("shanghai")
    await stream.frames(1)
    first = (await served.push({"city": "shanghai", "changes": {"temp": 20.0}})).json()["revision"]
    assert (await stream.until(PATCH))["revision"] == first
    many = [{"city": "shanghai", "changes": {"temp": number / 10}} for number in range(100, 300)]
    with file_size_limit(journal_end(served.observations.path) + 4_096):
        refused = await served.push(many)
        one = await served.push({"city": "shanghai", "changes": {"temp": 29.0, "station_label": "x" * 80}})
    assert (refused.status_code, refused.json()["code"]) == (500, "log_write_failed")
    after = await served.push({"city": "shanghai", "changes": {"temp": 30.0}})
    taken = [answer.json()["revision"] for answer in (one, after) if answer.status_code == 200]
    assert taken == list(range(first + 1, first + 1 + len(taken))), "as if the refused had never been"
    heard = [frame["revision"] for frame in await stream.frames(len(taken))]
    assert heard == taken
    again = await served.open("shanghai", 0)
    assert [frame["revision"] for frame in (await again.frames(2 + len(taken)))[1:]] == [first, *taken]


async def test_five_hours_and_fifty_nine_minutes_are_replayed_and_six_hours_and_a_moment_are_told(
    served: Served,
) -> None:
    """S125, S129, S202, S227: through the cleanup that writes themselves bring about, not one by hand."""
    seen = await served.observations.put("shanghai", 20.0)
    missed = await served.observations.put("shanghai", 21.0)
    clock = served.observations.clock

    async def answer_after(away: timedelta) -> dict[str, object]:
        clock.advance((START + away - clock.now()).total_seconds())
        await served.observations.put("moscow", -1.0)  # another city's reading: the cleanup is everybody's
        await served.observations.put("moscow", -2.0)
        pruning = served.observations.store._pruning
        if pruning is not None:
            await pruning
        client = await served.open("shanghai", seen.revision)
        return (await client.frames(2))[1]

    replayed = await answer_after(WINDOW - timedelta(minutes=1))
    assert (replayed["type"], replayed["revision"]) == (PATCH, missed.revision)
    told = await answer_after(WINDOW + timedelta(seconds=61))
    assert (told["type"], told["reason"]) == ("resync_required", "replay_window_exceeded")


async def test_large_events_of_a_window_and_a_half_stay_under_a_hundred_megabytes(tmp_path: Path) -> None:
    """S208, S209: 1,800 events of 3 KB an hour, 10,800 of them in the window; every file of the store counts."""
    observations = await open_observations(tmp_path / "o.db", ManualClock(START))
    cold = dict.fromkeys(("temp", "tdz_temp", "mid_temp", "end_temp"), -20.12)
    inner = {
        "runway_points": [{"runway": f"{n:02}LEFT/{n + 18:02}RIGHT", **cold} for n in range(1, 17)],
        "station_label": "Observatory " * 7,
        "obs_time": None,
    }
    names = list(BY_KEY)[:30]
    sizes: list[int] = []
    for _ in range(9 * 1_800 // 300):
        observations.clock.advance(600)
        many = [patch(observations.clock, names[n % 30], -n / 10, source="amos", **inner) for n in range(300)]
        stored = await observations.store.append(many)
        sizes += [len(one.event.body) for one in stored if one.event is not None]
    assert len(sizes) == 9 * 1_800
    assert 2_700 <= sum(sizes) / len(sizes) <= 3_300
    await observations.store.prune()
    kept = (await observations.rows("select count(*) from observation_patch_events"))[0][0]
    assert 10_500 <= kept <= 11_100
    await observations.close()
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) < 100_000_000


async def test_what_was_pruned_of_loud_cities_is_no_gap_of_a_quiet_one_that_has_news(served: Served) -> None:
    """F4: its cursor is older than what went, and yet nothing of it is missing: a replay."""
    seen = await served.observations.put("shanghai", 20.0)
    for number in range(5):
        await served.observations.put("moscow", float(-number))
    served.observations.clock.advance(WINDOW.total_seconds() + 1)
    news = await served.observations.put("shanghai", 21.0)
    await served.observations.store.prune()
    client = await served.open("shanghai", seen.revision)
    _, replayed = await client.frames(2)
    assert (replayed["type"], replayed["revision"]) == (PATCH, news.revision)
    both = await served.open("shanghai,moscow", seen.revision)
    assert (await both.frames(2))[1]["reason"] == "replay_window_exceeded"
