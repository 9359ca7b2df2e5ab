"""`clear_cache` from the job to the pictures: those of the map, and those of the Terminal that the source feeds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from fix_earth import INGEST, SECRETS, TOKEN, Earth, running_earth
from ledger_tools import until
from planetwire.database.postgres import Pool
from planetwire.runtime.ending import end_all
from planetwire.web.terminal import bodies as terminal_bodies
from planetwire.wiring import work as wiring

SNAPSHOTS = ("/api/scan/terminal", "/api/city/shanghai/detail", "/api/city/shanghai/summary")


@asynccontextmanager
async def working(earth: Earth) -> AsyncIterator[None]:
    """A worker of the same installation."""
    dsn = str(earth.settings.database_url)
    async with wiring.open_work(earth.settings, dsn, SECRETS, feeds=False, web=wiring.OwnWeb(earth.url)) as parts:
        tasks = [asyncio.ensure_future(run()) for run in parts.loops.values()]
        try:
            yield
        finally:
            await parts.drain()
            await end_all(tasks)


async def warm(client: httpx.AsyncClient) -> None:
    at = (datetime.now(UTC) - timedelta(minutes=5)).isoformat()
    patch = {"city": "shanghai", "changes": {"temp": 11.5, "obs_time": at, "source": "metar"}}
    headers = {"Authorization": f"Bearer {INGEST}"}
    answer = await client.post("/api/internal/collector-patch", json=patch, headers=headers)
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("source", ["city_observation", "awc_metar", None])
async def test_it_drops_the_snapshots_of_the_terminal_that_the_source_feeds(
    source: str | None, pg_dsn: str, pg_pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S42. Changed behind the program's back, a reading shows once the cache is cleared, and not before."""
    monkeypatch.setattr(terminal_bodies, "GOOD_FOR_S", 1e9)
    async with (
        running_earth(pg_dsn, pg_pool, tmp_path, observations_url=pg_dsn) as earth,
        working(earth),
        httpx.AsyncClient(base_url=earth.url, trust_env=False, timeout=60) as client,
    ):
        await earth.stop("stations")  # its fact would be a change of the same layer
        await warm(client)
        before = {path: (await client.get(path)).headers["etag"] for path in SNAPSHOTS}
        for table in ("observation_latest", "observations"):
            assert await pg_pool.execute(f"update {table} set temp_c = 22.5") == "UPDATE 1"
        for path, etag in before.items():
            assert (await client.get(path)).headers["etag"] == etag
        wish = {"task_type": "clear_cache"} | ({"source": source} if source else {})
        answer = await client.post("/api/v1/jobs", json=wish, headers={"Authorization": f"Bearer {TOKEN}"})
        assert answer.status_code == 202, answer.text
        for path, etag in before.items():

            async def is_new(path: str = path, etag: str = etag) -> bool:
                found = await client.get(path)
                return found.headers["etag"] != etag and b"22.5" in found.content

            await until(is_new)
