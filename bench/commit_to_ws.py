"""SQL commit → WebSocket frame: the first change of a quiet layer, and every change at 10, 100 and 1,000 commits/s.

One frame may cover many changes; it says how many, so each commit can be matched to its frame. For comparison, in the
same run and database: a commit with a bare NOTIFY → a LISTEN connection.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import time
from collections.abc import Sequence
from itertools import accumulate

import asyncpg
import uvloop
from _running import NO_FEEDS, line, milliseconds, running
from websockets.asyncio.client import ClientConnection, connect

SMALL = bool(os.environ.get("PLANETWIRE_BENCH_SMALL"))
QUIET, QUIET_S = (15 if SMALL else 60), 0.3  # longer than the merge window, so that each change is a first one
RATES = (10, 100, 1_000)
SECONDS = 3 if SMALL else 10
WRITERS_MAX = 16
WITHIN_S = 20.0
FIRST_GOAL_MS, ALL_GOAL_MS, UNMERGED_GOAL_MS = 30.0, 500.0, 15.0
INSERT = "insert into collected_data (source, external_key, kind) values ('usgs_quakes', $1, 'earthquake')"

# These facts get no derived rows: their changes would be counted for commits that were not yet covered.
DERIVES = {"planetwire.derives": "on"}


class Reader:
    """Subscribed to layer events; `frames` holds (when, changes covered)."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.frames: list[tuple[float, int]] = []
        self.covered = 0
        self.moved = asyncio.Event()

    async def run(self) -> None:
        async for text in self.socket:
            at = time.perf_counter()
            frame = json.loads(text)
            if frame.get("channel") == "earth_updates":
                self.frames.append((at, frame["data"]["merged_count"]))
                self.covered += frame["data"]["merged_count"]
                self.moved.set()

    async def until(self, changes: int) -> None:
        async with asyncio.timeout(WITHIN_S):
            while self.covered < changes:
                self.moved.clear()
                await self.moved.wait()

    def forget(self) -> None:
        self.frames.clear()
        self.covered = 0


async def first(reader: Reader, pool: asyncpg.Pool) -> list[float]:
    """Seconds from the commit's return to the frame, each change after a pause."""
    out = []
    for number in range(QUIET):
        await asyncio.sleep(QUIET_S)
        reader.forget()
        await pool.execute(INSERT, f"first-{number}-{time.time_ns()}")
        committed = time.perf_counter()
        await reader.until(1)
        out.append(reader.frames[0][0] - committed)
    return out


async def every(reader: Reader, pool: asyncpg.Pool, rate: int) -> tuple[list[float], float]:
    """Seconds of every change at this rate of commits per second, and the rate reached."""
    await asyncio.sleep(QUIET_S)
    reader.forget()
    commits: list[float] = []
    writers = min(WRITERS_MAX, max(1, rate // 50))
    began = time.perf_counter()

    async def write(writer: int) -> None:
        for number in range(writer, rate * SECONDS, writers):
            due = began + number / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            await pool.execute(INSERT, f"{rate}-{number}-{time.time_ns()}")
            commits.append(time.perf_counter())

    await asyncio.gather(*(write(writer) for writer in range(writers)))
    reached = len(commits) / (time.perf_counter() - began)
    await reader.until(len(commits))
    return delays(sorted(commits), reader.frames), reached


def delays(commits: Sequence[float], frames: Sequence[tuple[float, int]]) -> list[float]:
    """The n-th commit is covered by the frame at which the total reaches n changes."""
    ends = list(accumulate(count for _, count in frames))
    out, frame = [], 0
    for number, committed in enumerate(commits, 1):
        while ends[frame] < number:
            frame += 1
        out.append(max(0.0, frames[frame][0] - committed))
    return out


async def bare(dsn: str) -> list[float]:
    """Seconds from a commit that notifies to a connection that listens."""
    writer, listener = await asyncpg.connect(dsn), await asyncpg.connect(dsn)
    rang = asyncio.Event()
    await listener.add_listener("bench", lambda *_: rang.set())
    await writer.execute("create table bench_limit (n int)")
    out: list[float] = []
    for number in range(QUIET):
        rang.clear()
        async with writer.transaction():
            await writer.execute("insert into bench_limit values ($1)", number)
            await writer.execute("notify bench")
        committed = time.perf_counter()
        await asyncio.wait_for(rang.wait(), 5)
        out.append(time.perf_counter() - committed)
    await writer.close()
    await listener.close()
    return out


async def measure(url: str, dsn: str, rates: Sequence[int]) -> tuple[list[float], list[tuple[list[float], float]]]:
    async with (
        asyncpg.create_pool(dsn, min_size=WRITERS_MAX, max_size=WRITERS_MAX, server_settings=DERIVES) as pool,
        connect(f"{url.replace('http', 'ws', 1)}/ws", proxy=None) as socket,
    ):
        await socket.send(json.dumps({"subscribe": ["earth_updates"]}))
        while json.loads(await socket.recv()).get("type") != "subscribed":
            pass
        reader = Reader(socket)
        reading = asyncio.ensure_future(reader.run())
        try:
            return await first(reader, pool), [await every(reader, pool, rate) for rate in rates]
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


def p99_ms(samples: Sequence[float]) -> float:
    return sorted(samples)[int(len(samples) * 0.99)] * 1000


def main() -> None:
    met = []
    with running("up", "--only", "earth", **NO_FEEDS) as made:
        ours, rates = uvloop.run(measure(made.url, made.dsn, RATES))
        limit = uvloop.run(bare(made.dsn))
    detail = f"{milliseconds(ours)}; bare NOTIFY {milliseconds(limit)}"
    met.append(line("first change of a quiet layer, p50 ms", statistics.median(ours) * 1000, FIRST_GOAL_MS, detail))
    for rate, (samples, reached) in zip(RATES, rates, strict=True):
        detail = f"{milliseconds(samples)}; {reached:,.0f} commits/s reached"
        met.append(line(f"every change at {rate} commits/s, p99 ms", p99_ms(samples), ALL_GOAL_MS, detail))
    with running("up", "--only", "earth", PLANETWIRE_RELAY__MERGE_WINDOW_MS="0", **NO_FEEDS) as made:
        ours, rates = uvloop.run(measure(made.url, made.dsn, RATES))
    met.append(line("without a window, p50 ms", statistics.median(ours) * 1000, UNMERGED_GOAL_MS, milliseconds(ours)))
    for rate, (samples, _) in zip(RATES, rates, strict=False):
        middle = statistics.median(samples) * 1000
        met.append(line(f"… at {rate} commits/s, p50 ms", middle, UNMERGED_GOAL_MS, milliseconds(samples)))
    sys.exit(0 if all(met) else 1)


if __name__ == "__main__":
    main()
