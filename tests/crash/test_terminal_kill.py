"""Killing the server while it takes readings as fast as it can: what it acknowledged is there, each once."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from fix_installation import NO_FEEDS, Installation
from planetwire.cities import BY_KEY

SENDERS = 8
AT_ONCE = 25
KILLS = 3
BETWEEN = 2_000  # readings acknowledged between two kills
WITHIN_S = 60


class Senders:
    """Eight that push arrays one after another, and repeat what was not answered, as a collector does."""

    def __init__(self, made: Installation) -> None:
        self.acknowledged: dict[tuple[str, str, str], int] = {}
        self.repeated = 0
        self.ended = False
        self._base = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=40)
        self._url = made.url
        self._token = made.token("ingest")

    async def run(self, number: int) -> None:
        headers = {"Authorization": f"Bearer {self._token}"}
        async with httpx.AsyncClient(base_url=self._url, headers=headers, trust_env=False, timeout=60) as http:
            turn = 0
            while not self.ended:
                await self._push(http, [self._patch(number, turn * AT_ONCE + k) for k in range(AT_ONCE)])
                turn += 1

    def _patch(self, number: int, at: int) -> dict[str, Any]:
        city = list(BY_KEY)[at % 30]
        obs_time = (self._base + timedelta(seconds=at)).isoformat().replace("+00:00", "Z")
        return {"city": city, "source": f"sender_{number}", "changes": {"temp": at % 400 / 10, "obs_time": obs_time}}

    async def _push(self, http: httpx.AsyncClient, patches: list[dict[str, Any]]) -> None:
        while True:
            try:
                answer = await http.post("/api/internal/collector-patch", json=patches)
            except httpx.TransportError:  # killed: whether it was stored is not known
                self.repeated += 1
                await asyncio.sleep(0.01)
                continue
            assert answer.status_code == 200, answer.text
            for patch, result in zip(patches, answer.json()["results"], strict=True):
                key = (patch["city"], patch["source"], patch["changes"]["obs_time"])
                self.acknowledged[key] = result["revision"]
            return

    async def reach(self, count: int) -> None:
        async with asyncio.timeout(WITHIN_S):
            while len(self.acknowledged) < count:
                await asyncio.sleep(0.005)


async def test_a_server_killed_three_times_under_load_kept_every_acknowledged_reading(
    installation: Callable[..., Installation],
) -> None:
    """S198, S210, F21: revisions rise over the kills, none is given twice, and a repeated reading is stored once."""
    made = await asyncio.to_thread(installation, "up", "--only", "terminal", **NO_FEEDS)
    senders = Senders(made)
    running = [asyncio.ensure_future(senders.run(number)) for number in range(SENDERS)]
    marks: list[tuple[int, int]] = []
    for _ in range(KILLS):
        await senders.reach(len(senders.acknowledged) + BETWEEN)
        await asyncio.sleep(random.random() / 50)  # any moment within a commit
        made.kill("web")
        marks.append((len(senders.acknowledged), max(senders.acknowledged.values())))
    await senders.reach(len(senders.acknowledged) + BETWEEN)
    senders.ended = True
    await asyncio.gather(*running)
    assert senders.repeated >= KILLS
    assert await asyncio.to_thread(made.stop) == 0
    stored, gaps = _stored(made)
    assert {key: stored.get(key) for key in senders.acknowledged} == senders.acknowledged
    assert len(stored) == gaps, "a reading was stored twice"
    order = list(senders.acknowledged.values())
    for count, highest in marks:
        assert min(order[count + SENDERS * AT_ONCE :]) > highest, "a revision after a kill is below one before it"


def _stored(made: Installation) -> tuple[dict[tuple[str, str, str], int], int]:
    """Revision by reading, and how many events there are."""
    with closing(sqlite3.connect(made.data_dir / "observations.db")) as connection:
        assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
        rows = connection.execute(
            "select city, source, obs_time, revision, prev_revision from observation_patch_events order by revision"
        ).fetchall()
    last: dict[str, int] = {}
    for city, _, _, revision, previous in rows:
        assert previous == last.get(city, 0)
        last[city] = revision
    assert [row[3] for row in rows] == list(range(1, len(rows) + 1))
    return {(city, source, obs_time): revision for city, source, obs_time, revision, _ in rows}, len(rows)
