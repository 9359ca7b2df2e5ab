"""A browser's socket that reconnects, and a writer that retries, on an installation with failures."""

from __future__ import annotations

import json
import time

import asyncpg
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidMessage
from websockets.sync.client import connect

from fix_installation import Installation

ADD = "insert into collected_data (source, external_key, kind) values ('usgs_quakes', 'k{}', 'k')"
AWAY = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError)
DROPPED = (OSError, ConnectionClosed, InvalidHandshake, InvalidMessage, TimeoutError)


class Browser:
    """A socket that reconnects with its cursor, and sums up the changes it was sent."""

    def __init__(self, url: str, cursor: str) -> None:
        self.url = f"{url.replace('http', 'ws', 1)}/ws"
        self.cursor = cursor
        self.covered = 0
        self.revisions: list[int] = []

    def until(self, changes: int, deadline: float) -> None:
        """Wait until so many changes were received; reconnects as often as needed."""
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
                    if frame["data"]["layers"] == ["earthquakes"]:  # without derived rows
                        self.covered += frame["data"]["merged_count"]


def write(made: Installation, number: int, deadline: float) -> None:
    """Retries until its commit is acknowledged, like a robust program."""
    while True:
        try:
            made.execute(ADD.format(number) + " on conflict do nothing")
        except AWAY:
            assert time.monotonic() < deadline, "the database did not come back"
            time.sleep(0.1)
        else:
            return
