"""A small world for the law of the stream: real store, log, hub and server, and random events and failures.

One file on disk, one server on a real socket with 16 kB buffers (the default ones hide the hand-over), and dice.
"""

from __future__ import annotations

import asyncio
import random
import socket
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI

from fix_observations import START
from law_client import BUFFER, CityView, LawClient, at_ms
from live_streams import SseClient, the_guard
from planetwire import cities
from planetwire.collect.push.ingest import normalise
from planetwire.datasets.registry import observed_sources
from planetwire.facts.sqlite.observations_sqlite import SqliteObservationStore
from planetwire.model import LogEvent
from planetwire.runtime.clock import ManualClock, SystemClock, utc_text
from planetwire.settings import StreamSettings
from planetwire.stream.hub import Hub
from planetwire.stream.log_sqlite import SqliteEventLog
from planetwire.web.access.limits import ConnectionLimits
from planetwire.web.http import problems
from planetwire.web.live.frames import sse_encoder
from planetwire.web.live.sse import SseEndpoint
from planetwire.web.live.sse_protocol import make_protocol
from planetwire.web.terminal import cities as terminal

NAMES = ("hong kong", "seoul", "taipei", "london", "paris", "new york")
SOURCES = observed_sources()
SENDERS = ("metar", "amos", "hko_obs", "cowin_obs")  # headline series, runway sensors, and one that is no headline
RETENTION_S = 600.0
STALL_S = 20.0


def city_key(name: str) -> str | None:
    city = cities.resolve(name)
    return city.key if city else None


class LawWorld:
    """`step` does one random action; `settle` ends the disorder. The dice decide everything but the kernel."""

    def __init__(self, folder: Path, dice: random.Random) -> None:
        self.names: Sequence[str] = NAMES
        self.said: Counter[str] = Counter()
        self.up = asyncio.Event()
        self.moved = asyncio.Event()
        self.port = 0
        self._folder = folder
        self._dice = dice
        self._files = 0
        self._clock = ManualClock(START)
        self._hub_clock = ManualClock(START)
        self._ring = dice.choice([1, 3, 64, 2048])
        self._burst = dice.choice([3, 12, 40])
        self._events: list[tuple[str, int]] = []
        self._files_of: dict[str, Path] = {}  # by epoch: frames of an earlier log may arrive late
        self._path = self._new_file()

    def _new_file(self) -> Path:
        self._files += 1
        self._events = []
        return self._folder / f"{self._files}.db"

    # --- life

    async def open(self) -> None:
        self._store = SqliteObservationStore(self._path, self._clock, retention_s=RETENTION_S)
        await self._store.start()
        self._log = SqliteEventLog(self._path)
        await self._log.start()
        self._files_of[self._log.epoch] = self._path
        self._hub = Hub(
            self._log,
            encode=sse_encoder(self._log.epoch),
            clock=self._hub_clock,
            stall_s=STALL_S,
            ring_frames=self._ring,
        )
        await self._hub.start()
        self._store.on_committed = self._committed
        self._endpoint = SseEndpoint(
            self._hub,
            resolve_city=city_key,
            guard=the_guard(),
            limits=ConnectionLimits(total=1_000, per_address=1_000),
            clock=SystemClock(),
            settings=StreamSettings(),
        )
        await self._serve()
        self.up.set()

    async def _serve(self) -> None:
        app = FastAPI()
        problems.install(app)
        app.include_router(terminal.router(self._store, self._log, self._clock, SOURCES, the_guard()))
        http = make_protocol(self._endpoint, sndbuf_bytes=BUFFER)
        config = uvicorn.Config(app, http=http, lifespan="off", log_config=None, access_log=False)
        config.load()
        self._server = uvicorn.Server(config)
        self._server.lifespan = config.lifespan_class(config)
        self._listener = socket.socket()
        self._listener.bind(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        await self._server.startup(sockets=[self._listener])

    def _committed(self, events: Sequence[LogEvent]) -> None:
        self._events += [(event.topic.removeprefix("city:"), event.revision) for event in events]
        self._hub.publish(events)

    async def close(self, *, softly: bool) -> None:
        self.up.clear()
        if not softly:
            for connection in list(self._server.server_state.connections):
                connection.transport.abort()  # type: ignore[union-attr]
        self._endpoint.drain()  # also drains a client that is just connecting, which must not outlive its server
        await self._stop_serving()
        self.said["readers that lagged"] += self._hub.lagged
        await self._hub.aclose()
        await self._store.aclose()
        await self._log.aclose()

    async def _stop_serving(self) -> None:
        """Like uvicorn's own shutdown, without its pauses of a tenth of a second."""
        # A client accepted at this moment becomes a connection first: a closed server would drop it half set up.
        asyncio.get_running_loop().remove_reader(self._listener.fileno())
        for _ in range(5):
            await asyncio.sleep(0)
        for server in self._server.servers:
            server.close()
        self._listener.close()
        open_still = self._server.server_state.connections
        for connection in list(open_still):
            connection.shutdown()
        while open_still:
            self._pulse()  # slow readers continue, and find the end
            await asyncio.sleep(0)
        for server in self._server.servers:
            await server.wait_closed()

    def _pulse(self) -> None:
        self.moved.set()
        self.moved.clear()

    # --- what happens

    async def step(self) -> None:
        kinds = {"publish": 60, "prune": 8, "beat": 8, "turn": 12, "stall": 4, "restart": 6, "replace": 2}
        kind = self._dice.choices(list(kinds), list(kinds.values()))[0]
        self.said[kind] += 1
        await getattr(self, f"_{kind}")()
        self._pulse()
        await asyncio.sleep(0)

    async def _publish(self) -> None:
        await asyncio.gather(
            *(self._append(self._dice.randint(1, self._burst)) for _ in range(self._dice.choice([1, 1, 1, 2, 6])))
        )

    async def _append(self, count: int) -> None:
        self._clock.advance(self._dice.choice([0, 0, 0.2, 30, 90]))
        now = self._clock.now()
        await self._store.append([normalise(SOURCES, self._raw(), now) for _ in range(count)])

    def _raw(self) -> dict[str, Any]:
        dice, source = self._dice, self._dice.choices(SENDERS, [3, 6, 2, 1])[0]
        at = self._clock.now() - timedelta(seconds=dice.choice([0, 0, 1, 60, dice.randrange(3_600)]))
        changes: dict[str, Any] = {"obs_time": dice.choice([None, *[utc_text(at)] * 9]), "source": source}
        if source != "amos" or dice.random() < 0.7:
            changes["temp"] = dice.choice([0, -0.5, round(dice.uniform(-20, 40), 2)])
        if source == "amos":
            runways = dice.sample(range(10, 40), dice.choice([1, 3, 16]))
            changes["runway_points"] = [{"runway": f"{n}", "temp": n + dice.random(), "mid_temp": 0} for n in runways]
        # Two cities are busy: the others' revisions jump, and their cursors fall behind.
        weights = [30, 20, 3, 2, 1, 1]
        return {"city": dice.choices(NAMES, weights)[0], "changes": changes}

    async def _prune(self) -> None:
        self._clock.advance(self._dice.choice([60, RETENTION_S / 2, RETENTION_S + 1]))
        await self._store.prune()

    async def _beat(self) -> None:
        await self._endpoint.beat()

    async def _turn(self) -> None:
        for _ in range(self._dice.randint(1, 20)):
            await asyncio.sleep(0)

    async def _stall(self) -> None:
        self._hub.sweep()
        self._hub_clock.advance(STALL_S + 1)
        before = self._hub.cut
        self._hub.sweep()
        self.said["stalled readers cut"] += self._hub.cut - before

    async def _restart(self) -> None:
        await self.close(softly=self._dice.random() < 0.5)
        await self.open()

    async def _replace(self) -> None:
        """Replace the file by an empty one."""
        await self.close(softly=False)
        self._path = self._new_file()
        await self.open()

    async def settle(self, clients: Sequence[LawClient]) -> None:
        """One more event for each city, so that a frame dropped last is missed too; then quiet.

        Some are late observations, since the last to arrive need not be the newest.
        """
        now = self._clock.now()
        for client in clients:
            client.spared = True
        for city in NAMES:
            late = self._dice.choice([None, utc_text(now - timedelta(hours=1))])
            changes = {"temp": 41.5, "source": "metar", "obs_time": late}
            await self._store.append([normalise(SOURCES, {"city": city, "changes": changes}, now)])
        for client in clients:
            client.settling.set()
        self._pulse()

    def where(self, clients: Sequence[LawClient]) -> str:
        """A description for debugging a run that does not end."""
        subscribers = [
            (each.at, each.live, each.paused, each.reading, [topic.name for topic in each.topics])
            for each in self._hub._subscribers
        ]
        waiting = [
            (client.story, {city: (view.through, self.last(city)) for city, view in client.views.items()})
            for client in clients
            if not client.complete()
        ]
        return f"head {self._hub.head}, subscribers {subscribers}, waiting {waiting}"

    # --- what the judge asks

    def marks(self) -> tuple[Path, dict[str, int]]:
        return self._path, _marks_in(self._path)

    def last(self, city: str) -> tuple[str, int]:
        return self._log.epoch, max((revision for name, revision in self._events if name == city), default=0)

    def may_resync(
        self,
        frame: Mapping[str, Any],
        since: tuple[str, int] | None,
        wanted: Sequence[str],
        limit: int,
        marks: tuple[Path, Mapping[str, int]],
    ) -> bool:
        reason, epoch = frame["reason"], frame["epoch"]
        path = self._files_of[epoch]
        # Read before the marks: an event pruned in between is then in both, never in neither.
        missed = sum(city in wanted and revision > since[1] for city, revision in _events_in(path)) if since else 0
        now, before = _marks_in(path), marks[1] if marks[0] == path else {}
        if reason == "slow_consumer":
            return any(now.get(city, 0) > before.get(city, 0) for city in wanted)
        if since is None:
            return False
        if reason == "epoch_changed":
            return since[0] != epoch
        pruned = any(now.get(city, 0) > since[1] for city in wanted)
        return reason == "replay_window_exceeded" and since[0] == epoch and (pruned or missed > limit)

    async def fresh(self, city: str) -> dict[str, Any]:
        client = await SseClient.connect(self.port, f"/api/city/{city.replace(' ', '-')}/detail")
        body: dict[str, Any] = await client.body()
        await client.close()
        return body

    async def check(self, clients: Sequence[LawClient]) -> None:
        """The law: each client's state equals a present snapshot."""
        now = self._clock.now()
        for city in NAMES:
            detail = await self.fresh(city)
            truth = CityView(detail).state(city, now)
            high = detail["day_high"]
            assert truth["high"] == (high and (at_ms(high["obs_time"]), high["temp"]))
            for client in clients:
                if city in client.cities:
                    assert client.views[city].state(city, now) == truth, city


def _events_in(path: Path) -> list[tuple[str, int]]:
    """From the file itself: a committed event may be delivered before its writer is notified."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("select city, revision from observation_patch_events").fetchall()


def _marks_in(path: Path) -> dict[str, int]:
    """Pruning marks of the file; it may not have its tables yet."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(path)) as connection:
        return dict(connection.execute("select city, pruned_through from observation_patch_pruned"))
    return {}
