"""Two web processes and one relay on a database: whichever of them a browser reaches, it hears and sees the same."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from websockets.asyncio.client import ClientConnection, connect

from fix_roles import Role, Start, eventually
from pace import promised
from planetwire.database.postgres import Pool

WITHIN_S = 15.0
CHANGES = 60
ADD = """insert into collected_data (source, external_key, kind, title)
select (array['celestrak_gp', 'usgs_quakes'])[1 + $1::int % 2], $1::text, 'k', 'before'"""


class Listener:
    """A browser's socket: the frames of `earth_updates` that it got, in order."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.frames: list[dict[str, Any]] = []

    @property
    def covered(self) -> int:
        return sum(frame["data"]["merged_count"] for frame in self.frames)

    async def until(self, changes: int) -> None:
        async with asyncio.timeout(promised(WITHIN_S)):
            while self.covered < changes:
                frame = json.loads(await self.socket.recv())
                if frame.get("channel") == "earth_updates":
                    self.frames.append(frame)


@asynccontextmanager
async def listening(url: str) -> AsyncIterator[Listener]:
    async with connect(f"{url.replace('http', 'ws', 1)}/ws", proxy=None) as socket:
        await socket.send(json.dumps({"subscribe": ["earth_updates"]}))
        while json.loads(await socket.recv()).get("type") != "subscribed":
            pass
        yield Listener(socket)


async def started(start: Start) -> tuple[Role, str]:
    web = await start("web")
    return web, (await web.said("web.server.started"))["url"]


async def titles(url: str, layer: str) -> dict[str, str]:
    async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
        body = (await http.get(f"{url}/api/v1/visualization/{layer}")).json()
    return {feature["id"]: feature["title"] for feature in body["features"]}


async def test_a_browser_of_either_process_hears_every_event_and_sees_every_row(start: Start, pg_pool: Pool) -> None:
    """S29–S31, Q23: the relay knows neither of them; each follows the log and empties its own cache."""
    relay = await start("relay")
    held = "select leader_holder from earth_log_head where leader_expires_at > clock_timestamp()"
    await eventually(lambda: pg_pool.fetchval(held), "a leader")
    leader = await pg_pool.fetchval(held)
    (first, one), (second, two) = await started(start), await started(start)
    async with listening(one) as a, listening(two) as b:
        for number in range(CHANGES):
            await pg_pool.execute(ADD, number)
            if number % 20 == 0:  # fills the caches in the middle of it
                await asyncio.gather(titles(one, "satellites"), titles(two, "earthquakes"))
        await asyncio.gather(a.until(CHANGES), b.until(CHANGES))
        assert a.frames == b.frames
        assert await pg_pool.fetchval(held) == leader
        for layer in ("satellites", "earthquakes"):
            assert await titles(one, layer) == await titles(two, layer)
            assert len(await titles(one, layer)) == CHANGES // 2
        # The relay dies: one of the two takes the term, and both still hear the same.
        relay.process.kill()
        await relay.process.wait()
        await pg_pool.execute("update collected_data set title = 'after' where source = 'usgs_quakes'")
        await asyncio.gather(a.until(CHANGES + 1), b.until(CHANGES + 1))
        assert a.frames == b.frames
        assert await pg_pool.fetchval(held) != leader
        for url in (one, two):
            assert set((await titles(url, "earthquakes")).values()) == {"after"}
            assert set((await titles(url, "satellites")).values()) == {"before"}
    assert [await role.stop() for role in (second, first)] == [0, 0]
