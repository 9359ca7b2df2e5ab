"""A client of the observation stream that follows the contract: snapshots, then an unbroken sequence of events.

All its state came from snapshots plus patches; it records what it received and what it found missing.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

import orjson

from live_streams import SseClient
from planetwire.cities import BY_KEY
from planetwire.observing import HEADLINE_SERIES

BUFFER = 16 << 10
SPEED_MAX = 16_384  # bytes per read
SLOW_MAX = 512  # … of a slow reader, which then waits for the world's next step
_SPELLINGS = (str.upper, str.title, lambda name: name.replace(" ", "_"), lambda name: name.replace(" ", "-"))


def at_ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


class CityView:
    """One city as a page holds it."""

    def __init__(self, detail: dict[str, Any]) -> None:
        self.through = int(detail["revision"])
        self.curves = {
            (line["series_key"], line["source"]): dict(line["points"]) for line in detail["timeseries"]["series"]
        }
        self.plates = {
            name: {at_ms(point["time"]): point["temp"] for point in points}
            for name, points in detail["runway_plate_history"].items()
        }
        primary = detail["airport_primary"]
        self.headline = primary and {**primary, "obs_time": at_ms(primary["obs_time"])}

    def apply(self, patch: dict[str, Any]) -> None:
        payload, source = patch["payload"], patch["source"]
        at = patch["ts"] if patch["obs_time"] is None else at_ms(patch["obs_time"])
        if payload["temp"] is not None:
            self.curves.setdefault((payload["series_key"], source), {})[at] = payload["temp"]
            if payload["is_latest"]:
                self.headline = {
                    "temp": payload["temp"],
                    "obs_time": at,
                    "source": source,
                    "station_code": payload["station_code"],
                    "series_key": payload["series_key"],
                }
        for point in payload["runway_points"]:
            self.plates.setdefault(point["runway"], {})[at] = point["temp"]
        self.through = patch["revision"]

    def high(self, city: str, now: datetime) -> tuple[int, float] | None:
        """The high of the city's day and when it was first reached."""
        key = BY_KEY[city]
        start = round(key.day_start(key.local(now).date()).timestamp() * 1000)
        today = [
            (-temp, at)
            for (series, _), points in self.curves.items()
            if series in HEADLINE_SERIES
            for at, temp in points.items()
            if at >= start
        ]
        return (min(today)[1], -min(today)[0]) if today else None

    def state(self, city: str, now: datetime) -> dict[str, Any]:
        """For comparing two views."""
        return {
            "curves": {key: sorted(points.items()) for key, points in self.curves.items()},
            "plates": {key: sorted(points.items()) for key, points in self.plates.items()},
            "headline": self.headline,
            "high": self.high(city, now),
        }


class World(Protocol):
    """What a client may ask of the world outside the wire: to judge the server, never for its own state."""

    port: int
    up: asyncio.Event
    moved: asyncio.Event  # pulsed at each step
    names: Sequence[str]
    said: Counter[str]

    def may_resync(
        self, frame: dict[str, Any], since: tuple[str, int] | None, cities: list[str], limit: int, marks: Any
    ) -> bool:
        """Whether the server had a reason for the resync."""

    def marks(self) -> Any:
        """The present file and its pruning marks."""

    def last(self, city: str) -> tuple[str, int]:
        """Epoch and newest revision of the city."""


@dataclass
class LawClient:
    """Reconnects any number of times until it has everything of its cities and the world is settled."""

    world: World
    dice: random.Random
    cities: list[str]
    loses: float  # share of frames that never reach it, as if a proxy had dropped them
    slow: bool
    spared: bool = False  # no more losses
    epoch: str | None = None
    stream_epoch: str | None = None
    views: dict[str, CityView] = field(default_factory=dict)
    required: dict[str, int] = field(default_factory=dict)
    lost: set[tuple[str, int]] = field(default_factory=set)
    story: str = ""  # the present connection, for debugging
    replayed: bool = False  # the present connection has delivered an event
    settling: asyncio.Event = field(default_factory=asyncio.Event)  # no more disconnects, read to the end

    @property
    def settled(self) -> bool:
        return self.settling.is_set()

    async def live(self) -> None:
        while not (self.settled and self.complete()):
            await self.world.up.wait()
            try:
                await self._connection()
            except (OSError, EOFError, asyncio.IncompleteReadError, TimeoutError):
                self.world.said["connections lost"] += 1
            await asyncio.sleep(0)

    def complete(self) -> bool:
        """Everything up to each city's newest event is known."""
        for city in self.cities:
            epoch, revision = self.world.last(city)
            view = self.views.get(city)
            if view is None or epoch != self.epoch or view.through < revision or city in self.required:
                return False
        return True

    # --- one connection

    async def _connection(self) -> None:
        if not self.settled and self.dice.random() < 0.2:
            self._look_elsewhere()
        if self.dice.random() < 0.7:  # else the stream is opened before the snapshots
            await self._snapshots()
        known = [self.views[city].through for city in self.cities if city in self.views]
        since = (self.epoch, min(known)) if known and self.epoch is not None else None
        limit = self.dice.choice([2000, 2000, 500, 30, 3])
        names = ",".join(self.dice.choice(_SPELLINGS)(city).replace(" ", "%20") for city in self.cities)
        target = f"/api/events?cities={names}&replay_limit={limit}"
        headers = {}
        if since is not None and self.dice.random() < 0.5:
            headers["last-event-id"] = f"{since[0]}-{since[1]}"
            target += "&since_revision=0"
        elif since is not None:
            target += f"&since_revision={since[0]}-{since[1]}"
        marks = self.world.marks()
        self.story = f"{target} {headers} {marks}"
        stream = await SseClient.connect(self.world.port, target, headers=headers, rcvbuf=BUFFER)
        assert stream.status == 200, stream.status
        self.world.said["connections"] += 1
        try:
            await self._read(stream, since, limit, marks)
        finally:
            await stream.close()

    def _look_elsewhere(self) -> None:
        """Switch to other charts: removed cities are forgotten, new ones have no snapshot yet."""
        wanted = self.dice.sample(self.world.names, len(self.cities))
        for city in set(self.cities) - set(wanted):
            self.views.pop(city, None)
            self.required.pop(city, None)
        self.cities = wanted

    async def _snapshots(self) -> None:
        while missing := [city for city in self.cities if city not in self.views or city in self.required]:
            for city in missing:  # a snapshot of another log discards the earlier ones
                await self._snapshot(city)

    async def _snapshot(self, city: str) -> None:
        client = await SseClient.connect(self.world.port, f"/api/city/{city.replace(' ', '%20')}/detail")
        try:
            if client.status == 503:
                raise EOFError  # the server is shutting down
            body = await client.body()
        finally:
            await client.close()
        if self.epoch != body["epoch"]:
            self._forget(body["epoch"])
        if body["revision"] < self.required.get(city, 0):
            raise AssertionError(f"a snapshot from before the gap: {body['revision']} < {self.required[city]}")
        self.required.pop(city, None)
        if city not in self.views or self.views[city].through <= body["revision"]:
            self.views[city] = CityView(body)

    def _forget(self, epoch: str) -> None:
        self.views.clear()
        self.required.clear()
        self.lost.clear()
        self.epoch = epoch

    async def _read(self, stream: SseClient, since: tuple[str, int] | None, limit: int, marks: Any) -> None:
        budget = None if self.settled else int(self.dice.expovariate(1 / (200_000 if self.slow else 20_000)))
        text, first, self.replayed = b"", True, False
        while not (self.settled and self.complete()):
            if self.settled:
                budget = None
            elif budget is not None and budget <= 0:
                self.world.said["disconnects at a random byte"] += 1
                return
            most = SLOW_MAX if self.slow and not self.settled else SPEED_MAX
            piece = await self._some(stream, most if budget is None else min(budget, most))
            if not piece:
                return
            budget = None if budget is None else budget - len(piece)
            *blocks, text = (text + piece).split(b"\n\n")
            for block in blocks:
                frame = _frame(block)
                if frame is None:
                    continue
                if first:
                    assert frame["type"] == "connected", frame
                    first = False
                await self._take(frame, since, limit, marks)
            if self.slow and not self.settled:
                self.world.said["slow reads"] += 1
                await self.world.moved.wait()

    async def _some(self, stream: SseClient, room: int) -> bytes:
        """Ends when the world settles and nothing is missing: a quiet stream sends nothing more."""
        reading = asyncio.ensure_future(stream.reader.read(room))
        settling = asyncio.ensure_future(self.settling.wait())
        try:
            await asyncio.wait({reading, settling}, return_when=asyncio.FIRST_COMPLETED)
            return b"" if not reading.done() and self.complete() else await reading
        finally:
            for task in (reading, settling):
                task.cancel()
            await asyncio.gather(reading, settling, return_exceptions=True)

    # --- what a frame means

    async def _take(self, frame: dict[str, Any], since: tuple[str, int] | None, limit: int, marks: Any) -> None:
        kind = frame["type"]
        if kind == "connected":
            self.stream_epoch = frame["epoch"]
            if self.epoch not in (None, frame["epoch"]):
                self._forget(frame["epoch"])
            assert set(frame["cities"]) == set(self.cities) and frame["unknown"] == []
            if since is None or since[0] == frame["epoch"]:
                await self._snapshots()
        elif kind == "resync_required":
            await self._resync(frame, since, limit, marks)
        elif kind == "heartbeat":
            self._beat(frame["cursor"])
        else:
            self._patch(frame)

    async def _resync(self, frame: dict[str, Any], since: tuple[str, int] | None, limit: int, marks: Any) -> None:
        reason = frame["reason"]
        self.world.said[f"resync {reason}"] += 1
        assert self.world.may_resync(frame, since, self.cities, limit, marks), f"false resync: {reason} {since}"
        assert set(frame["cities"]) == set(self.cities)
        assert reason == "slow_consumer" or not self.replayed, "half a replay, then a resync"
        for city in self.cities:
            self.views.pop(city, None)
            self.required[city] = frame["latest_revision"]
        await self._snapshots()

    def _beat(self, cursor: str) -> None:
        epoch, _, revision = cursor.partition("-")
        if epoch != self.epoch or self.loses:
            return  # a client that drops frames cannot trust it; HTTP itself loses none
        self.world.said["heartbeats"] += 1
        for city in self.cities:
            if city in self.views and city not in self.required:
                self.views[city].through = max(self.views[city].through, int(revision))

    def _patch(self, patch: dict[str, Any]) -> None:
        city, revision, self.replayed = patch["city"], patch["revision"], True
        assert patch["epoch"] == self.stream_epoch, "an event of another log"
        if patch["epoch"] != self.epoch:
            raise EOFError  # meanwhile a snapshot showed that the server began another log
        assert city in self.cities, "an event of a city that was not asked for"
        view = self.views[city]
        if revision <= view.through:
            self.world.said["events known already"] += 1
            return
        if not self.spared and self.dice.random() < self.loses:
            self.lost.add((city, revision))
            self.world.said["frames dropped on the way"] += 1
            return
        if patch["prev_revision"] > view.through:
            self._gap(city, view, patch)
            return
        self.world.said["events"] += 1
        view.apply(patch)

    def _gap(self, city: str, view: CityView, patch: dict[str, Any]) -> None:
        """A gap is detected by `prev_revision` alone; its only permitted cause is a frame that was really dropped."""
        assert any(c == city and view.through < r <= patch["prev_revision"] for c, r in self.lost), (
            f"a gap that is none: {city} is at {view.through}, the event follows {patch['prev_revision']}; {self.story}"
        )
        self.world.said["gaps found"] += 1
        self.required[city] = patch["prev_revision"]
        raise EOFError  # like the page: a new snapshot, then a new stream from it


_DATA = re.compile(rb"^data: (.*)$", re.MULTILINE)


def _frame(block: bytes) -> dict[str, Any] | None:
    found = _DATA.search(block)
    return None if found is None else orjson.loads(found[1])
