"""Nine charts that miss two minutes of a stream that is too fast for a replay."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page

from cable import Cable
from fix_installation import NO_FEEDS, Installation, wait_for

pytestmark = pytest.mark.browser

CITIES = ("shanghai", "tokyo", "london", "new york", "hong kong", "singapore", "paris", "seoul", "los angeles")
MISSED = 120 * 60  # two minutes at sixty a second
AT_ONCE = 400
LIVE = "() => window.__planetwire?.terminal?.connection === 'live'"
VALUES = "(cities) => cities.map((city) => window.__planetwire.terminal.values(city, 'runway'))"


def reading(base: int, number: int) -> dict[str, Any]:
    changes = {"temp": number % 400 / 10, "source": "amos", "series_key": "runway", "obs_time": base + number}
    return {"city": CITIES[number % len(CITIES)], "changes": changes}


def push(client: httpx.Client, patches: list[dict[str, Any]]) -> None:
    for start in range(0, len(patches), AT_ONCE):
        answer = client.post("/api/internal/collector-patch", json=patches[start : start + AT_ONCE])
        assert answer.json()["accepted"] == len(patches[start : start + AT_ONCE])


def snapshots(client: httpx.Client) -> list[list[list[float]]]:
    details = [client.get(f"/api/city/{city}/detail").raise_for_status().json() for city in CITIES]
    return [line["points"] for detail in details for line in detail["timeseries"]["series"]]


def test_nine_charts_that_missed_too_much_for_a_replay_hold_what_the_server_holds(
    installation: Callable[..., Installation], page: Page
) -> None:
    """S184–S188, S222: told to resync, each fetched once the stream is back; live events meanwhile join on."""
    made = installation("up", "--only", "terminal", **NO_FEEDS)
    base = int(datetime.now(UTC).timestamp()) - 3 * 3_600
    kept = json.dumps({"layout": 9, "slots": CITIES})
    page.add_init_script(f"localStorage.setItem('planetwire.terminal', {kept!r})")
    headers = {"Authorization": f"Bearer {made.token('ingest')}"}
    client = httpx.Client(base_url=made.url, headers=headers, trust_env=False, timeout=60)
    with client, Cable(made.url) as cable:
        push(client, [reading(base, number) for number in range(9)])
        page.goto(f"{cable.url}/terminal")
        page.wait_for_function(LIVE)
        wait_for(lambda: page.evaluate(VALUES, CITIES) == snapshots(client), within_s=60, what="the first points")
        page.watched.expected = ("Failed to load resource",)  # type: ignore[attr-defined]  # while there is no network
        cable.unplug()
        wait_for(lambda: not page.evaluate(LIVE), within_s=60, what="the loss noticed")
        push(client, [reading(base, number) for number in range(9, MISSED)])
        assert sum(map(len, page.evaluate(VALUES, CITIES))) == 9
        cable.plug_in()
        page.evaluate("() => window.dispatchEvent(new Event('online'))")
        for number in range(MISSED, MISSED + 90):
            push(client, [reading(base, number)])
        wait_for(
            lambda: page.evaluate(VALUES, CITIES) == snapshots(client), within_s=60, what="all that the server holds"
        )
        assert sum(map(len, page.evaluate(VALUES, CITIES))) == MISSED + 90
