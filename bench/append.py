"""Appending readings to SQLite, every commit flushed: events per second, relative to a bare writer in the same run.

The bare writer: one thread with group commit into the same two tables, events with their two indexes and readings,
with prepared rows; producers wait for their own revision. Ours does the same, encodes the event, and in the same
transaction stores the keys of accepted patches.

Then a POST to the HTTP route → the SSE frame at 200 events per second, compared with the bare commit.
"""

from __future__ import annotations

import asyncio
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from pathlib import Path
from queue import Empty, SimpleQueue

import uvloop
from _fanout import SMALL, Generator, ours, raise_descriptors, topics
from _running import line, milliseconds

from planetwire.cities import CITIES
from planetwire.collect.push.ingest import normalise
from planetwire.datasets.registry import observed_sources
from planetwire.facts.sqlite.observations_sqlite import SqliteObservationStore
from planetwire.model import ObservationPatch
from planetwire.runtime.clock import SystemClock, utc_text
from planetwire.runtime.settle import settle

SOURCES = observed_sources()

PRODUCERS = (8, 64)
EVENTS = 1_000 if SMALL else 6_000
ROUNDS = 1 if SMALL else 8
BODY = b"x" * 930
POST_RATE = 200
TABLES = """
create table events (
    revision integer primary key autoincrement, schema_type text not null, schema_version integer not null,
    city text not null, source text not null, obs_time text, payload_json text not null, created_at text not null,
    prev_revision integer not null
);
create index events_city on events (city, revision);
create index events_created on events (created_at);
create table readings (
    id integer primary key, city text not null, series_key text not null, source text not null,
    obs_time_ms integer not null, temp_c real not null, max_so_far_c real, revision integer not null,
    station_code text, station_label text, content_hash blob
);
"""
INSERT = """
insert into events
    (schema_type, schema_version, city, source, obs_time, payload_json, created_at, prev_revision)
values ('city_observation_patch', 1, ?, 'bench', ?, cast(? as text), ?, 0)
"""
READING = """
insert into readings (city, series_key, source, obs_time_ms, temp_c, revision, content_hash)
values (?, 'airport_primary', 'bench', ?, ?, ?, ?)
"""
HASH = b"h" * 16  # as long as ours

Waiting = tuple[tuple[str, str, bytes, str], "asyncio.Future[int]"]


class Bare:
    """The limit: writes the two tables only."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.execute("pragma journal_mode = wal")
        self._connection.execute("pragma synchronous = full")
        self._connection.executescript(TABLES)
        self._queue: SimpleQueue[Waiting | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    async def append(self, row: tuple[str, str, bytes, str]) -> int:
        """The row's revision, once it is on disk."""
        done: asyncio.Future[int] = self._loop.create_future()
        self._queue.put((row, done))
        return await done

    def _run(self) -> None:
        while (first := self._queue.get()) is not None:
            group = [first]
            while len(group) < 200:
                try:
                    more = self._queue.get_nowait()
                except Empty:
                    break
                if more is None:
                    self._queue.put(None)
                    break
                group.append(more)
            self._connection.execute("begin immediate")
            revisions = [self._insert(row) for row, _ in group]
            self._connection.execute("commit")
            self._loop.call_soon_threadsafe(self._resolve, group, revisions)

    def _insert(self, row: tuple[str, str, bytes, str]) -> int:
        revision = self._connection.execute(INSERT, row).lastrowid or 0
        self._connection.execute(READING, (row[0], 1_779_789_784_500 + revision, 21.5, revision, HASH))
        return revision

    @staticmethod
    def _resolve(group: list[Waiting], revisions: list[int]) -> None:
        for (_, done), revision in zip(group, revisions, strict=True):
            done.set_result(revision)

    async def aclose(self) -> None:
        """Commit the waiting rows, then stop."""
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)
        self._connection.close()


async def rate(append: Callable[[int], Awaitable[object]], producers: int) -> tuple[float, list[float]]:
    """Events per second, and seconds to each acknowledgement; every producer waits for its own."""
    waits: list[float] = []

    async def produce(first: int) -> None:
        for number in range(first, EVENTS, producers):
            began = time.perf_counter()
            await append(number)
            waits.append(time.perf_counter() - began)

    began = time.perf_counter()
    await asyncio.gather(*(produce(first) for first in range(producers)))
    return EVENTS / (time.perf_counter() - began), waits


def patches(now: datetime) -> list[ObservationPatch]:
    """Normalised readings of fifty cities, a tenth of a second apart in each."""
    made = []
    for number in range(EVENTS):
        at = utc_text(now - timedelta(milliseconds=100 * (EVENTS - number)))
        changes = {"temp": 20 + number % 100 / 10, "obs_time": at}
        made.append(normalise(SOURCES, {"city": CITIES[number % 50].key, "source": "bench", "changes": changes}, now))
    return made


Run = tuple[float, list[float]]


async def ours_alone(path: Path, producers: int, made: list[ObservationPatch]) -> Run:
    """Ours on a fresh file."""
    store = SqliteObservationStore(path, SystemClock())
    await store.start()
    run = await rate(lambda number: store.append([made[number]]), producers)
    await store.aclose()
    return run


async def bare_alone(path: Path, producers: int, made: list[ObservationPatch]) -> Run:
    """The bare writer on a fresh file."""
    now = utc_text(SystemClock().now())
    rows = [(each.city, now, BODY, now) for each in made]
    bare = Bare(path)
    run = await rate(lambda number: bare.append(rows[number]), producers)
    await bare.aclose()
    return run


def measured(producers: int, round_number: int) -> tuple[Run, Run]:
    """Ours and the bare writer, back to back; the order alternates, since the machine's load drifts."""
    made = patches(SystemClock().now())
    with tempfile.TemporaryDirectory(prefix="pw-append-") as folder:
        files = Path(folder) / "observations.db", Path(folder) / "bare.db"
        if round_number % 2:
            mine = uvloop.run(ours_alone(files[0], producers, made))
            return mine, uvloop.run(bare_alone(files[1], producers, made))
        bare = uvloop.run(bare_alone(files[1], producers, made))
        return uvloop.run(ours_alone(files[0], producers, made)), bare


def shares(producers: int) -> bool:
    """The median of the rounds' ratios."""
    ratios = []
    for round_number in range(ROUNDS):
        (mine, waits), (limit, bare_waits) = measured(producers, round_number)
        ratios.append(mine / limit)
        print(
            f"  {producers} producers: {mine:,.0f} events/s, acknowledged after {milliseconds(waits)};"
            f" bare {limit:,.0f} events/s, {milliseconds(bare_waits)}",
            flush=True,
        )
    detail = f"{min(ratios):.2f}–{max(ratios):.2f} in {ROUNDS} rounds"
    return line(
        f"append, {producers} producers, share of the bare writer",
        statistics.median(ratios),
        0.7,
        detail,
        at_most=False,
    )


def posted() -> bool:
    """POST → SSE at a steady rate."""
    with tempfile.TemporaryDirectory(prefix="pw-append-") as folder, ours(route=True) as server:
        generator = Generator(Path(folder), server, topics())
        try:
            generator.open(0, 50)
            generator.do("each 2")
            found = generator.do(f"paced {POST_RATE} {3 if SMALL else 10}")
        finally:
            generator.close()
    lost = found["missing"] + found["gaps"] + found["doubled"]
    detail = f"{POST_RATE} events/s, p50 {found['p50_ms']:.2f} ms, {lost:.0f} lost or doubled"
    return line("POST → SSE frame, p99 ms", found["p99_ms"], 15, detail) and not lost


def main() -> None:
    raise_descriptors()
    settle()
    met = [shares(producers) for producers in PRODUCERS]
    met.append(posted())
    sys.exit(0 if all(met) else 1)


if __name__ == "__main__":
    main()
