"""`/api/v1/visualization/satellites` from the cache, 12,000 objects, gzip as browsers ask: requests/s against 300."""

from __future__ import annotations

import asyncio
import time
from urllib.parse import urlsplit

from _running import running, verdict

from fix_installation import wait_for

SECONDS = 4.0
CONNECTIONS = 4
GOAL = 300.0
PATH = "/api/v1/visualization/satellites"


async def one(host: str, port: int, path: str, until: float) -> tuple[int, int]:
    """Requests answered by one keep-alive connection, and bytes read."""
    reader, writer = await asyncio.open_connection(host, port, limit=16 << 20)
    request = f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nAccept-Encoding: gzip\r\n\r\n".encode()
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


async def rate(url: str, path: str) -> tuple[float, float]:
    """Requests and megabytes a second."""
    parts = urlsplit(url)
    assert parts.hostname and parts.port
    began = time.perf_counter()
    done = await asyncio.gather(*(one(parts.hostname, parts.port, path, began + SECONDS) for _ in range(CONNECTIONS)))
    took = time.perf_counter() - began
    return sum(count for count, _ in done) / took, sum(size for _, size in done) / took / 1e6


def main() -> None:
    with running("demo", "--only", "earth") as made, made.client() as client:
        wait_for(lambda: client.get(f"{PATH}?limit=1").json()["total"] >= 12_000, within_s=90, what="12,000 satellites")
        client.patch("/api/v1/sources/celestrak_gp", json={"enabled": False}).raise_for_status()
        total = client.get(PATH).json()["count"]
        requests, megabytes = asyncio.run(rate(made.url, PATH))
        floor, _ = asyncio.run(rate(made.url, "/healthz"))
    detail = f"{requests:.0f}/s of {total} satellites, {megabytes:.0f} MB/s; /healthz {floor:.0f}/s"
    verdict("snapshots from cache, times 300/s", requests / GOAL, 1.0, detail, at_most=False)


if __name__ == "__main__":
    main()
