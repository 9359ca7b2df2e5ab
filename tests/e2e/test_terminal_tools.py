"""Lines across a chart, files of it, the axis, the places and the shared pointer, in a real browser."""

from __future__ import annotations

import csv
import io
import json
import struct
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from cable import Cable
from fix_browser import DESKTOP, PHONE
from fix_installation import NO_FEEDS, Installation, an_installation, wait_for
from pixels import around, ink

pytestmark = pytest.mark.browser

LIVE = "() => window.__planetwire?.terminal?.connection === 'live'"
VALUES = "([city, series]) => window.__planetwire.terminal.values(city, series)"
KEPT = "() => JSON.parse(localStorage.getItem('planetwire.terminal') ?? '{}')"
ZONES = ("UTC", "America/Los_Angeles", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Kiritimati")


@pytest.fixture(scope="module")
def terminal() -> Iterator[Installation]:
    """The Terminal alone: nothing arrives but what a test pushes."""
    with an_installation("up", "--only", "terminal", **NO_FEEDS) as made:
        yield made


def push(made: Installation, city: str, temps: dict[int, float], **changes: Any) -> None:
    """Readings by their second."""
    given = {"source": "e2e_probe", "series_key": "airport_primary", **changes}
    patches = [{"city": city, "changes": {"temp": temp, "obs_time": at, **given}} for at, temp in temps.items()]
    headers = {"Authorization": f"Bearer {made.token('ingest')}"}
    answer = httpx.post(f"{made.url}/api/internal/collector-patch", headers=headers, json=patches, trust_env=False)
    assert answer.status_code == 200, answer.text


def now_s() -> int:
    return int(datetime.now(UTC).timestamp()) // 60 * 60


def opened(page: Page, url: str) -> Page:
    page.goto(f"{url}/terminal")
    page.wait_for_function(LIVE)
    return page


def tile(page: Page, city: str) -> Locator:
    return page.locator(f".tile[data-city='{city}']")


def tools(page: Page, city: str) -> Locator:
    """The chart's panel, opened."""
    tile(page, city).locator(".tools__opener").click()
    return tile(page, city).get_by_role("dialog")


def lines(page: Page, city: str) -> list[float]:
    return [line["value"] for line in page.evaluate(KEPT).get("thresholds", {}).get(city, [])]


def test_lines_are_set_dragged_and_removed_and_outlive_a_reload(terminal: Installation, page: Page) -> None:
    """Threshold lines per city; the reading that reaches one is told with its time."""
    at = now_s()
    push(terminal, "shanghai", {at - 120: 20.0, at - 60: 21.0})
    opened(page, terminal.url)
    panel = tools(page, "shanghai")
    panel.get_by_role("textbox", name="New line at").fill("22")
    page.keyboard.press("Enter")
    expect(panel.get_by_text("not reached today")).to_be_visible()
    push(terminal, "shanghai", {at: 22.0})
    expect(panel.get_by_text("reached at")).to_be_visible()
    page.keyboard.press("Escape")
    drag_line(page, "shanghai")
    moved = lines(page, "shanghai")
    assert len(moved) == 1
    assert moved[0] > 22.0
    page.reload()
    page.wait_for_function(LIVE)
    panel = tools(page, "shanghai")
    expect(panel.get_by_role("textbox", name="Move the line")).to_have_value(f"{moved[0]:g}")
    panel.get_by_role("button", name="Remove the line").click()
    page.reload()
    page.wait_for_function(LIVE)
    assert lines(page, "shanghai") == []


def drag_line(page: Page, city: str) -> None:
    """Takes the only line, wherever it is drawn, and lets it go a fifth of the chart higher."""
    over = tile(page, city).locator(".u-over")
    box = over.bounding_box()
    assert box is not None
    x = box["x"] + box["width"] / 2
    for step in range(int(box["height"])):
        page.mouse.move(x, box["y"] + step)
        if over.evaluate("(over) => over.style.cursor") == "ns-resize":
            page.mouse.down()
            page.mouse.move(x, box["y"] + step - box["height"] / 5, steps=4)
            page.mouse.up()
            return
    pytest.fail("no line under the pointer")


def test_the_saved_table_holds_what_is_shown(terminal: Installation, page: Page) -> None:
    """One row a time, one column a curve that is switched on, city-local times, the shown unit."""
    at = now_s() - 600
    push(terminal, "tokyo", {at: 0.0, at + 60: 10.0, at + 180: -1.5})
    push(terminal, "tokyo", {at: 5.0}, source="awc_metar", series_key="metar")
    opened(page, terminal.url)
    tile(page, "tokyo").get_by_role("button", name="METAR").click()
    page.get_by_role("button", name="Degrees Fahrenheit").click()
    page.get_by_role("button", name="24 h").click()
    panel = tools(page, "tokyo")
    with page.expect_download() as download:
        panel.get_by_role("button", name="Table (CSV)").click()
    assert download.value.suggested_filename.startswith("planetwire-tokyo-")
    rows = list(csv.reader(io.StringIO(Path(download.value.path()).read_text("utf-8-sig"))))
    assert rows[0][:2] == ["time_utc", "time_local"]
    assert [name.endswith("(°F)") for name in rows[0][2:]] == [True]
    assert [float(row[2]) for row in rows[1:]] == [32.0, 50.0, 29.3]
    assert [datetime.fromisoformat(row[0]).timestamp() for row in rows[1:]] == [at, at + 60, at + 180]
    assert all(datetime.fromisoformat(row[0]) == datetime.fromisoformat(row[1]) for row in rows[1:])
    assert all(row[1].endswith("+09:00") for row in rows[1:])


def test_the_saved_picture_is_the_chart_with_its_words(terminal: Installation, page: Page) -> None:
    """A PNG that holds the canvas and more around it."""
    push(terminal, "london", {now_s() - 60 * minute: 10.0 + minute % 5 for minute in range(120)})
    opened(page, terminal.url)
    canvas = tile(page, "london").locator("canvas")
    width, height = canvas.evaluate("(canvas) => [canvas.width, canvas.height]")
    panel = tools(page, "london")
    with page.expect_download() as download:
        panel.get_by_role("button", name="Picture (PNG)").click()
    body = Path(download.value.path()).read_bytes()
    assert body[:8] == b"\x89PNG\r\n\x1a\n"
    wide, high = struct.unpack(">II", body[16:24])
    assert (wide, high > height) == (width, True)
    assert len(body) > 4_000, "an empty picture is smaller"


def test_the_axis_shows_the_citys_hours_in_every_browser_zone(terminal: Installation, browser: Browser) -> None:
    """City-local axis."""
    push(terminal, "new york", {now_s() - 60: 10.0})
    seen = set()
    for zone in ZONES:
        context = browser.new_context(viewport=DESKTOP, locale="en-GB", timezone_id=zone)  # type: ignore[arg-type]
        page = opened(context.new_page(), terminal.url)
        drawn = tile(page, "new york").locator("[data-ticks]")
        ticks = drawn.get_attribute("data-ticks") or ""
        assert "12:00" in ticks.split("|")
        seen.add(ticks)
        context.close()
    assert len(seen) == 1


def test_the_pointer_shows_the_same_instant_on_all_charts(terminal: Installation, page: Page) -> None:
    """Crosshair across charts: each legend tells its own city's time of that instant."""
    at = now_s()
    for city in ("shanghai", "tokyo"):
        push(terminal, city, {at - 60 * minute: 20.0 for minute in range(60)})
    opened(page, terminal.url)
    page.get_by_role("button", name="6 h").click()
    tile(page, "shanghai").locator(".u-over").hover()
    here, there = (tile(page, city).locator(".legend__time") for city in ("shanghai", "tokyo"))
    expect(there).to_be_visible()
    hours = [int(clock.inner_text()[:2]) for clock in (here, there)]
    assert (hours[1] - hours[0]) % 24 == 1
    page.mouse.move(5, 5)
    expect(there).to_have_count(0)


def streams(page: Page) -> list[str]:
    """Addresses of the streams that were opened from now on."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/api/events" in request.url else None)
    return asked


def test_a_city_is_found_by_search_kept_over_a_reload_and_alone_subscribed(terminal: Installation, page: Page) -> None:
    """S179, S181: slots kept; one stream opened for the change, of exactly the visible cities."""
    push(terminal, "hong kong", {now_s(): 28.0})
    opened(page, terminal.url)
    asked = streams(page)
    tile(page, "tokyo").locator(".tile__city").click()
    page.get_by_role("combobox").fill("hk")
    page.keyboard.press("Enter")
    tile(page, "hong kong").locator("canvas").wait_for()
    cities = "() => window.__planetwire.terminal.cities.join()"
    wanted = "hong kong,london,new york,shanghai"
    wait_for(lambda: page.evaluate(cities) == wanted and page.evaluate(LIVE), within_s=60, what="the new set, live")
    assert len(asked) == 1
    page.reload()
    page.wait_for_function(LIVE)
    assert page.evaluate(cities) == wanted
    assert [slot.get_attribute("data-city") for slot in page.locator(".tile").all()] == [
        "shanghai",
        "hong kong",
        "london",
        "new york",
    ]


def test_nine_charts_are_nine_cities_and_a_phone_is_one(terminal: Installation, page: Page, browser: Browser) -> None:
    """S179, S180."""
    opened(page, terminal.url)
    asked = streams(page)
    page.get_by_role("button", name="9 charts").click()
    wait_for(lambda: len(page.evaluate("() => window.__planetwire.terminal.cities")) == 9, within_s=60, what="nine")
    wait_for(lambda: page.evaluate(LIVE) and asked, within_s=60, what="the stream of the nine")
    assert len(asked) == 1
    phone = browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True)  # type: ignore[arg-type]
    small = opened(phone.new_page(), terminal.url)
    assert small.evaluate("() => window.__planetwire.terminal.cities") == ["shanghai"]
    small.locator(".rows__city").nth(1).click()
    wait_for(lambda: small.evaluate("() => window.__planetwire.terminal.cities") == ["busan"], within_s=60, what="one")
    small.set_viewport_size({"width": PHONE["height"], "height": PHONE["width"]})
    expect(small.locator(".tile")).to_have_count(1)
    phone.close()


def test_two_minutes_without_network_are_filled_exactly_and_nothing_is_fetched_again(
    terminal: Installation, context: BrowserContext
) -> None:
    """S184–S187, S222: replay by revision, for a city whose silence is long by then."""
    page = context.new_page()
    page.clock.install()
    at = now_s() - 3_600
    with Cable(terminal.url) as cable:
        push(terminal, "paris", {at: 10.0}, source="amos", series_key="runway")
        kept = json.dumps({"layout": 1, "slots": ["paris", *[None] * 8]})
        page.add_init_script(f"localStorage.setItem('planetwire.terminal', {kept!r})")
        opened(page, cable.url)

        def held() -> list[float]:
            return [value for _, value in page.evaluate(VALUES, ["paris", "runway"])]

        wait_for(lambda: held() == [10.0], within_s=60, what="the first point")
        fetched: list[str] = []
        page.on("request", lambda request: fetched.append(request.url) if "/detail" in request.url else None)
        cable.unplug()
        wait_for(lambda: not page.evaluate(LIVE), within_s=60, what="the loss noticed")
        missed = {at + 10 * number: 10.0 + number for number in range(1, 13)}
        push(terminal, "paris", missed, source="amos", series_key="runway")
        page.clock.fast_forward(120_000)
        assert held() == [10.0]
        cable.plug_in()
        page.evaluate("() => window.dispatchEvent(new Event('online'))")
        wait_for(lambda: held() == [10.0, *missed.values()], within_s=60, what="all that was missed")
        assert fetched == []


def plates(at: int, *names: str) -> dict[str, Any]:
    points = [{"runway": name, "temp": 20.0 + i, "is_settlement": i == 0} for i, name in enumerate(names)]
    return {"source": "amsc_awos", "series_key": "runway", "runway_points": points, "obs_time": at}


def test_a_runway_switched_off_stays_off_and_a_new_one_comes_by_itself(terminal: Installation, page: Page) -> None:
    """S177, S205: through patches and a reload; the settlement's runway is marked."""
    at = now_s()
    push(terminal, "shanghai", {at - 120: 20.0}, **plates(at - 120, "17L/35R", "16R/34L"))
    opened(page, terminal.url)
    legend = tile(page, "shanghai").locator(".legend")
    legend.get_by_role("button", name="Runway 16R/34L").click()
    push(terminal, "shanghai", {at - 60: 20.0}, **plates(at - 60, "17L/35R", "16R/34L", "17R/35L"))
    expect(legend.get_by_role("button", name="Runway 17R/35L", pressed=True)).to_be_visible()
    expect(legend.get_by_role("button", name="Runway 16R/34L", pressed=False)).to_be_visible()
    settling = legend.get_by_role("button", name="Runway 17L/35R")
    expect(settling.get_by_role("img", name="The day is settled by this")).to_be_visible()
    page.reload()
    page.wait_for_function(LIVE)
    expect(legend.get_by_role("button", name="Runway 16R/34L", pressed=False)).to_be_visible()


CLOSE_PX = 4  # the dot of a reading is four pixels wide


def strokes(page: Page, city: str) -> dict[str, str]:
    """Colours of the curves by their names in the legend."""
    items = tile(page, city).locator(".legend__item").all()
    return {
        item.locator(".legend__name").inner_text(): item.locator("path").get_attribute("stroke") or "" for item in items
    }


def drawn(page: Page, city: str, colour: str) -> set[tuple[int, int]]:
    return ink(page, tile(page, city).locator(".tile__canvas").screenshot(), colour)


def test_a_pushed_reading_is_drawn_at_its_time_and_temperature(terminal: Installation, page: Page) -> None:
    """S102, S176, S177, S221: by the chart's pixels. Two known readings of a curve say where a third must be."""
    at = now_s()
    # Not a city whose midnight lies among the readings: the ring round a new day's high would cover a dot.
    city = "los angeles" if datetime.now(UTC).hour in (14, 15, 16) else "seoul"
    early, middle, late = at - 3_000, at - 2_100, at - 1_200
    runway = {"source": "amsc_awos", "series_key": "runway"}

    def plate(second: int, temp: float) -> None:
        push(terminal, city, {second: temp}, **runway, runway_points=[{"runway": "15L/33R", "temp": temp}])

    push(terminal, city, {at - 3_600: 34.0}, source="awc_metar", series_key="metar")  # the high, and its ring
    push(terminal, city, {early: 30.0, late: 10.0})
    plate(early, 28.0)
    plate(late, 12.0)
    kept = json.dumps({"layout": 1, "slots": [city, *[None] * 8], "window": "6h", "unit": "celsius"})
    page.add_init_script(f"localStorage.setItem('planetwire.terminal', {kept!r})")
    opened(page, terminal.url)
    tile(page, city).locator("canvas").wait_for()
    colours = strokes(page, city)
    for name, (top, low), temp, send in (
        ("Airport", (30.0, 10.0), 27.0, lambda: push(terminal, city, {middle: 27.0})),
        ("Runway 15L/33R", (28.0, 12.0), 15.0, lambda: plate(middle, 15.0)),
    ):
        colour = next(stroke for label, stroke in colours.items() if label.startswith(name))
        before = wait_for(lambda colour=colour: drawn(page, city, colour), within_s=60, what=f"{name} on the chart")
        columns, levels = [x for x, _ in before], [y for _, y in before]
        x = min(columns) + (max(columns) - min(columns)) * (middle - early) / (late - early)
        y = min(levels) + (max(levels) - min(levels)) * (top - temp) / (top - low)
        assert around(before, x, y, CLOSE_PX) == 0, "the place is free"
        send()
        wait_for(
            lambda colour=colour, x=x, y=y: around(drawn(page, city, colour), x, y, CLOSE_PX) >= 6,
            within_s=60,
            what=f"{temp}° of {name} drawn at {x:.0f}, {y:.0f}",
        )
