"""What held: more streams than a process has descriptors for. Those that fit are served; when they go, all is well."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import httpx

from fix_installation import NO_FEEDS, Installation, wait_for
from live_streams import SseClient, eventually

DESCRIPTORS = 150
ASKED = 250
SERVED_MIN = 50  # the process has some dozens of files of its own, and keeps a reserve
PATCH = "city_observation_patch.v1"
STREAM = "/api/events?cities=shanghai"
READ = ("/healthz", "/readyz", "/terminal", "/api/cities", "/metrics")
LIMITED = ("sh", "-c", f'ulimit -n {DESCRIPTORS} && exec "$@"', "sh", sys.executable, "-m", "planetwire")
MANY = {"PLANETWIRE_STREAM__MAX_PER_ADDRESS": "10000", "PLANETWIRE_STREAM__MAX_CONNECTIONS": "10000"}


async def tried(port: int, served: list[SseClient]) -> None:
    """A reader who waits for as long as it takes: nobody may have a place for it."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return
    client = SseClient(reader, writer)
    try:
        writer.write(f"GET {STREAM} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        if head.startswith(b"HTTP/1.1 200"):
            served.append(client)
            await asyncio.Event().wait()
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        await client.close()


async def heard(client: SseClient, temp: float) -> bool:
    """Whether the reading comes; a stream whose connection was taken for another is no failure of this one."""
    while (frame := await client.frame()) is not None:
        if frame["type"] == PATCH:
            return bool(frame["payload"]["temp"] == temp)
    return False


async def test_those_that_fit_are_served_and_all_is_well_when_they_go(data_dir: Path) -> None:
    made = Installation(data_dir, ("up", "--only", "terminal"), NO_FEEDS | MANY, program=LIMITED)
    made.start()
    try:
        port = int(made.url.rsplit(":", 1)[1])
        pusher = httpx.Client(  # its connection is open before there are none left
            base_url=made.url, headers={"Authorization": f"Bearer {made.token('ingest')}"}, timeout=30, trust_env=False
        )
        pusher.get("/healthz").raise_for_status()
        pid = made.children()["web"]
        served: list[SseClient] = []
        readers = [asyncio.ensure_future(tried(port, served)) for _ in range(ASKED)]
        await eventually(lambda: len(served) >= SERVED_MIN, f"fewer than {SERVED_MIN} streams were served")

        def push() -> None:
            assert {path: pusher.get(path).status_code for path in READ} == dict.fromkeys(READ, 200)
            snapshot = pusher.get("/api/scan/terminal")  # opens a file: 503 with a code where none can be opened
            assert snapshot.status_code == 200 or snapshot.json()["code"] == "backend_unavailable"
            answer = pusher.post(
                "/api/internal/collector-patch", json={"city": "shanghai", "changes": {"temp": 21.5, "source": "few"}}
            )
            assert answer.status_code == 200, answer.text

        await asyncio.to_thread(push)
        assert await asyncio.gather(*(heard(client, 21.5) for client in served[:SERVED_MIN])) == [True] * SERVED_MIN
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)

        def well() -> bool:
            try:
                return httpx.get(f"{made.url}/readyz", timeout=5, trust_env=False).status_code == 200
            except httpx.HTTPError:
                return False

        await asyncio.to_thread(wait_for, well, within_s=60, what="ready again")
        again = await SseClient.connect(port, STREAM)
        assert (await again.until("connected"))["cities"]
        await again.close()
        assert made.children()["web"] == pid, "the process was replaced meanwhile"
        pusher.close()
    finally:
        await asyncio.to_thread(made.stop)
