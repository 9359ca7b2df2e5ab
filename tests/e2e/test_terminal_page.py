"""The live charts in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import httpx
import pytest
from playwright.sync_api import Browser, Page

from cable import Cable
from fix_browser import PHONE
from fix_installation import Installation, wait_for
from pace import promised

pytestmark = pytest.mark.browser

CITIES = "() => [...(window.__planetwire?.terminal?.cities ?? [])]"
POINTS = "([city, series]) => window.__planetwire.terminal.values(city, series)"
CONNECTION = "() => window.__planetwire.terminal.connection"


def visible(page: Page) -> list[str]:
    return list(wait_for(lambda: page.evaluate(CITIES), within_s=60, what="charts with cities"))


def points(page: Page, city: str, series: str) -> list[list[float]]:
    return list(page.evaluate(POINTS, [city, series]))


def push(installation: Installation, city: str, temp: float, **changes: object) -> dict[str, object]:
    answer = httpx.post(
        f"{installation.url}/api/internal/collector-patch",
        headers={"Authorization": f"Bearer {installation.token('ingest')}"},
        json={"city": city, "changes": {"temp": temp, "source": "e2e_probe", **changes}},
        trust_env=False,
    )
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def has(page: Page, city: str, series: str, value: float) -> bool:
    return any(abs(point[1] - value) < 1e-6 for point in points(page, city, series))


def test_four_charts_show_curves_and_keep_moving(demo_installation: Installation, page: Page) -> None:
    """S101, S102, S104, S183, S220, S221: snapshot first, then points by SSE for the visible cities only; those of a
    runway come from the simulated sensors through the feeds' process and the ingest.
    """
    page.goto(f"{demo_installation.url}/terminal")
    cities, runway = visible(page), ("shanghai", "runway:17L/35R")
    assert len(cities) == 4 and runway[0] in cities
    curves = [runway, *((city, "metar") for city in cities)]
    for curve in curves:
        wait_for(lambda curve=curve: len(points(page, *curve)) > 10, within_s=60, what=f"a curve of {curve}")
    before = {curve: len(points(page, *curve)) for curve in curves}
    moved = lambda *some: any(len(points(page, *curve)) > before[curve] for curve in some)  # noqa: E731
    wait_for(lambda: moved(*curves[1:]), within_s=120, what="a new METAR in an open chart")
    wait_for(lambda: moved(runway), within_s=120, what="a new reading of a runway in an open chart")
    shown = page.locator(".tile[data-city='shanghai']").get_by_role("button", name="Runway 17L/35R")
    wait_for(shown.is_visible, within_s=60, what="the runway in the legend")
    with httpx.Client(base_url=demo_installation.url, trust_env=False) as client:
        runs = {one["source"]: one for one in client.get("/api/v1/sources").json()["items"]}
    assert (runs["runway_obs"]["enabled"], runs["runway_obs"]["last_error_code"]) == (True, None)
    assert runs["runway_obs"]["last_success_at"] is not None


def test_a_pushed_reading_appears_within_a_second(demo_installation: Installation, page: Page) -> None:
    """S183, S221: ingest to chart, without a reload."""
    page.goto(f"{demo_installation.url}/terminal")
    city = visible(page)[0]
    wait_for(lambda: page.evaluate(CONNECTION) == "live", within_s=60, what="live")
    push(demo_installation, city, 21.37, series_key="airport_primary")
    wait_for(lambda: has(page, city, "airport_primary", 21.37), within_s=promised(1), what="the pushed point")


def test_after_a_time_offline_exactly_the_missed_points_are_there(
    installation: Callable[..., Installation], browser: Browser
) -> None:
    """S103, S184–S187, S222, S224: replay by revision; nothing doubled, nothing reloaded."""
    made = installation("demo")
    context = browser.new_context(locale="en-GB")
    page = context.new_page()
    with Cable(made.url) as cable:
        page.goto(f"{cable.url}/terminal")
        city = visible(page)[0]
        wait_for(lambda: page.evaluate(CONNECTION) == "live", within_s=60, what="live")
        base = int(datetime.now(UTC).timestamp()) - 3600
        push(made, city, 10.0, series_key="airport_primary", obs_time=base)
        wait_for(lambda: has(page, city, "airport_primary", 10.0), within_s=60, what="the first point")
        snapshots: list[str] = []
        page.on("request", lambda request: snapshots.append(request.url) if "/detail" in request.url else None)
        cable.unplug()
        wait_for(lambda: page.evaluate(CONNECTION) != "live", within_s=60, what="the loss noticed")
        values = [11.5, 12.5, 13.5, 14.5]
        for number, value in enumerate(values, 1):
            push(made, city, value, series_key="airport_primary", obs_time=base + 60 * number)
        push(made, "moscow", -3.0, series_key="airport_primary")
        assert not has(page, city, "airport_primary", 11.5)
        cable.plug_in()
        page.evaluate("() => window.dispatchEvent(new Event('online'))")
        wait_for(lambda: has(page, city, "airport_primary", 14.5), within_s=60, what="the last missed point")
        got = [point[1] for point in points(page, city, "airport_primary") if point[0] >= base * 1000]
        assert got == [10.0, *values]
        assert snapshots == [], "the gap was filled by replay, not by a reload"
        context.close()


def test_the_phone_shows_one_chart_without_sideways_scrolling(
    demo_installation: Installation, browser: Browser
) -> None:
    """S180: the main chart's city alone is subscribed."""
    context = browser.new_context(viewport=PHONE, locale="zh-CN", has_touch=True, is_mobile=True)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(f"{demo_installation.url}/terminal")
    assert len(visible(page)) == 1
    assert page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")
    assert page.evaluate("() => document.documentElement.lang").startswith("zh")
    context.close()
