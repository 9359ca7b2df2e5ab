"""The database or the leader is killed under a whole installation: within fifteen seconds changes reach browsers."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import asyncpg
import pytest
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidMessage
from websockets.sync.client import connect

from fix_installation import NO_FEEDS, Installation, wait_for

pytestmark = pytest.mark.timeout(180)

WITHIN_S = 15.0
ADD = "insert into collected_data (source, external_key, kind) values ('usgs_quakes', 'k{}', 'k')"
AWAY = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError)
DROPPED = (OSError, ConnectionClosed, InvalidHandshake, InvalidMessage, TimeoutError)


class Browser:
    """A socket that comes back with the cursor it has, and adds up what it heard of."""

    def __init__(self, url: str, cursor: str) -> None:
        self.url = f"{url.replace('http', 'ws', 1)}/ws"
        self.cursor = cursor
        self.covered = 0
        self.revisions: list[int] = []

    def until(self, changes: int, deadline: float) -> None:
        """Until so many changes were heard of; reconnects as often as needed."""
        while self.covered < changes:
            assert time.monotonic() < deadline, f"{self.covered} of {changes} changes heard of"
            try:
                self._listen(changes, deadline)
            except DROPPED:
                time.sleep(0.1)

    def _listen(self, changes: int, deadline: float) -> None:
        with connect(self.url, proxy=None, open_timeout=2) as socket:
            socket.send(json.dumps({"subscribe": ["earth_updates"], "since": {"earth_updates": self.cursor}}))
            while self.covered < changes:
                frame = json.loads(socket.recv(max(0.0, deadline - time.monotonic())))
                assert frame.get("type") != "resync_required", frame
                if frame.get("channel") == "earth_updates":
                    self.cursor = f"{frame['epoch']}-{frame['revision']}"
                    self.revisions.append(frame["revision"])
                    self.covered += frame["data"]["merged_count"]


def write(made: Installation, number: int, deadline: float) -> None:
    """As a program that tries again until its commit was acknowledged."""
    while True:
        try:
            made.execute(ADD.format(number) + " on conflict do nothing")
        except AWAY:
            assert time.monotonic() < deadline, "the database did not come back"
            time.sleep(0.1)
        else:
            return


@pytest.mark.parametrize("victim", ["postgres", "web"])
def test_changes_go_on_within_seconds_of_a_kill(installation: Callable[..., Installation], victim: str) -> None:
    """S32, Q22, Q23: the leader lives in the web process; what was committed meanwhile is heard of too."""
    made = installation("up", "--only", "earth", **NO_FEEDS)
    wait_for(lambda: made.try_value("select leader_holder from earth_log_head"), within_s=30, what="a leader")
    made.execute(ADD.format(0))
    wait_for(lambda: made.value("select count(*) from earth_broadcasts"), within_s=30, what="the first event")
    browser = Browser(made.url, f"{made.value('select epoch from earth_log_head')}-0")
    browser.until(1, time.monotonic() + WITHIN_S)
    killed = time.monotonic()
    deadline = killed + WITHIN_S
    made.kill(victim)
    write(made, 1, deadline)
    browser.until(2, deadline)
    print(f"{victim}: {time.monotonic() - killed:.1f} s from the kill to the frame")
    assert browser.revisions == list(range(1, len(browser.revisions) + 1))
    assert made.value("select count(*) from earth_data_change_events where consumed_at is null") == 0
