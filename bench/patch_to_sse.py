"""POST of a reading → SSE frame, relative to the allowed 10 ms. Stored durably in between.

The limit for comparison: a request to /healthz of the same server, and a bare durable SQLite commit.
"""

from __future__ import annotations

import asyncio
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

import httpx
from _running import NO_FEEDS, milliseconds, running, verdict

SAMPLES = 300
GOAL_MS = 10.0


async def measure(url: str, token: str) -> tuple[list[float], list[float]]:
    """Seconds from POST to frame, and of a plain request."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(f"GET /api/events?cities=shanghai HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode())
    while b"connected" not in await reader.readline():
        pass
    ours: list[float] = []
    plain: list[float] = []
    async with httpx.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {token}"}, trust_env=False) as client:
        for number in range(SAMPLES):
            began = time.perf_counter()
            await client.get("/healthz")
            plain.append(time.perf_counter() - began)
            body = {"city": "shanghai", "changes": {"temp": 20 + number / 100, "source": "bench"}}
            began = time.perf_counter()
            posting = asyncio.ensure_future(client.post("/api/internal/collector-patch", json=body))
            while b"city_observation_patch" not in await asyncio.wait_for(reader.readline(), 5):
                pass
            ours.append(time.perf_counter() - began)
            (await posting).raise_for_status()
            await reader.readline()
    writer.close()
    return ours, plain


def bare_commits() -> list[float]:
    """Seconds of one durable insert."""
    with tempfile.TemporaryDirectory() as folder:
        connection = sqlite3.connect(Path(folder) / "bare.db", isolation_level=None)
        connection.execute("pragma journal_mode=wal")
        connection.execute("pragma synchronous=full")
        connection.execute("create table t (n integer primary key, body text)")
        out = []
        for _ in range(SAMPLES):
            began = time.perf_counter()
            connection.execute("insert into t (body) values (?)", ("x" * 600,))
            out.append(time.perf_counter() - began)
        connection.close()
    return out


def main() -> None:
    with running("up", "--only", "terminal", **NO_FEEDS) as made:
        ours, plain = asyncio.run(measure(made.url, made.token("ingest")))
    commits = bare_commits()
    median_ms = statistics.median(ours) * 1000
    detail = f"POST → frame {milliseconds(ours)}; plain request {milliseconds(plain)}; commit {milliseconds(commits)}"
    verdict("patch to SSE, share of 10 ms", median_ms / GOAL_MS, 1.0, detail)


if __name__ == "__main__":
    main()
