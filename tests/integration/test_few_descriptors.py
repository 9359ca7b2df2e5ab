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
LEAVING = 20  # of those served; more than what all that is asked afterwards needs at once
HEALTH = ("/healthz", "/readyz")
READ = ("/terminal", "/api/cities", "/metrics", "/api/scan/terminal")
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


def looked_at_while_short(made: Installation) -> None:
    """Health is answered; whatever else is asked is answered too, or refused by name."""
    with httpx.Client(base_url=made.url, timeout=60, trust_env=False) as client:
        for path in HEALTH:
            assert client.get(path).status_code == 200, path
        for path in READ:
            answer = client.get(path)
            assert answer.status_code == 200 or answer.json()["code"] == "too_many_connections", (path, answer.text)


def pushed_with_a_little_room(made: Installation) -> None:
    with httpx.Client(
        base_url=made.url, headers={"Authorization": f"Bearer {made.token('ingest')}"}, timeout=60, trust_env=False
    ) as client:

        def open_to_all() -> bool:
            return {path: client.get(path).status_code for path in READ} == dict.fromkeys(READ, 200)

        wait_for(open_to_all, within_s=60, what="answers to all")
        body = {"city": "shanghai", "changes": {"temp": 21.5, "source": "few"}}
        answer = client.post("/api/internal/collector-patch", json=body)
        assert answer.status_code == 200, answer.text


async def test_those_that_fit_are_served_and_all_is_well_when_they_go(data_dir: Path) -> None:
    made = Installation(data_dir, ("up", "--only", "terminal"), NO_FEEDS | MANY, program=LIMITED)
    made.start()
    try:
        port = int(made.url.rsplit(":", 1)[1])
        pid = made.children()["web"]
        served: list[SseClient] = []
        readers = [asyncio.ensure_future(tried(port, served)) for _ in range(ASKED)]
        await eventually(lambda: sum(not one.done() for one in readers) == len(served), "somebody got no answer")
        assert SERVED_MIN + LEAVING <= len(served) < ASKED
        await asyncio.to_thread(looked_at_while_short, made)
        for client in served[-LEAVING:]:
            await client.close()
        await asyncio.to_thread(pushed_with_a_little_room, made)
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
    finally:
        await asyncio.to_thread(made.stop)
