"""SQL commit → WebSocket frame, for a layer that was quiet: as a share of the 100 ms it may take.

The limit beside it: the same commit with a bare NOTIFY → a LISTEN connection, in the same run and database.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time

import asyncpg
from _running import NO_FEEDS, milliseconds, running, verdict
from websockets.asyncio.client import connect

SAMPLES = 60
QUIET_S = 0.3  # longer than the merge window, so that each change is a first one
GOAL_MS = 100.0
INSERT = "insert into collected_data (source, external_key, kind) values ('usgs_quakes', $1, 'earthquake')"


async def frames(url: str, dsn: str) -> list[float]:
    """Seconds from the commit's return to the frame."""
    connection = await asyncpg.connect(dsn)
    out: list[float] = []
    async with connect(f"{url.replace('http', 'ws', 1)}/ws", proxy=None) as socket:
        await socket.send(json.dumps({"subscribe": ["earth_updates"]}))
        while json.loads(await socket.recv()).get("type") != "subscribed":
            pass
        for number in range(SAMPLES):
            await asyncio.sleep(QUIET_S)
            await connection.execute(INSERT, f"bench-{number}")
            committed = time.perf_counter()
            while json.loads(await socket.recv()).get("channel") != "earth_updates":
                pass
            out.append(time.perf_counter() - committed)
    await connection.close()
    return out


async def limit(dsn: str) -> list[float]:
    """Seconds from a commit that notifies to a connection that listens."""
    writer, listener = await asyncpg.connect(dsn), await asyncpg.connect(dsn)
    rang = asyncio.Event()
    await listener.add_listener("bench", lambda *_: rang.set())
    await writer.execute("create table bench_limit (n int)")
    out: list[float] = []
    for number in range(SAMPLES):
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


def main() -> None:
    with running("up", "--only", "earth", **NO_FEEDS) as made:
        ours = asyncio.run(frames(made.url, made.dsn))
        bare = asyncio.run(limit(made.dsn))
    median_ms = statistics.median(ours) * 1000
    detail = f"commit → frame {milliseconds(ours)}; bare NOTIFY {milliseconds(bare)}"
    verdict("commit to browser, share of 100 ms", median_ms / GOAL_MS, 1.0, detail)


if __name__ == "__main__":
    main()
