"""`/api/v1/visualization/satellites` from the cache, 12,000 objects, in browsers' codings; goal: 300 answers/s.

Besides the rate by wall time, that by the web process's CPU time, which is valid on a busy machine too.
"""

from __future__ import annotations

import asyncio
import sys
import time
from urllib.parse import urlsplit

from _running import line, running
from snapshot_codings import cpu_ms

from fix_installation import wait_for

SECONDS = 4.0
CONNECTIONS = 4
GOAL = 300.0
CODINGS = ("gzip", "zstd")
PATH = "/api/v1/visualization/satellites"


async def one(host: str, port: int, path: str, coding: str, until: float) -> tuple[int, int]:
    """Requests answered by one keep-alive connection, and bytes read."""
    reader, writer = await asyncio.open_connection(host, port, limit=16 << 20)
    request = f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nAccept-Encoding: {coding}\r\n\r\n".encode()
    count = size = 0
    while time.perf_counter() < until:
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        assert head.startswith(b"http/1.1 200"), head[:200]
        length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        count += 1
        size += length
    writer.close()
    return count, size


async def rate(url: str, path: str, coding: str) -> tuple[float, float]:
    """Requests and megabytes per second."""
    parts = urlsplit(url)
    assert parts.hostname and parts.port
    began = time.perf_counter()
    until = began + SECONDS
    done = await asyncio.gather(*(one(parts.hostname, parts.port, path, coding, until) for _ in range(CONNECTIONS)))
    took = time.perf_counter() - began
    return sum(count for count, _ in done) / took, sum(size for _, size in done) / took / 1e6


def main() -> None:
    with running("demo", "--only", "earth") as made, made.client() as client:
        wait_for(lambda: client.get(f"{PATH}?limit=1").json()["total"] >= 12_000, within_s=90, what="12,000 satellites")
        client.patch("/api/v1/sources/celestrak_gp", json={"enabled": False}).raise_for_status()
        total = client.get(PATH).json()["count"]
        web, answers = [made.children()["web"]], {}
        for coding in CODINGS:
            before = cpu_ms(web)
            requests, megabytes = asyncio.run(rate(made.url, PATH, coding))
            answers[coding] = requests, megabytes, requests * SECONDS / (cpu_ms(web) - before) * 1000
        floor, _ = asyncio.run(rate(made.url, "/healthz", "identity"))
    rates = ", ".join(f"{coding} {requests:.0f}/s, {mb:.0f} MB/s" for coding, (requests, mb, _) in answers.items())
    detail = f"{rates} of {total} satellites; /healthz {floor:.0f}/s"
    busy = ", ".join(f"{coding} {each:.0f}" for coding, (_, _, each) in answers.items())
    wall, cpu = (min(each[n] for each in answers.values()) / GOAL for n in (0, 2))
    met = line("snapshots from cache, times 300/s", wall, 1.0, detail, at_most=False)
    met &= line("… by a second of the process's CPU, times 300", cpu, 1.0, busy, at_most=False)
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
