"""What held: whatever feeds, senders and failed jobs say, the pages show as text.

No script runs, and no element is made of it. (The policy of the page would stop a script; elements it does not stop.)
"""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import orjson
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from fix_browser import DESKTOP, Watched
from fix_installation import NO_FEEDS, Installation, an_installation, wait_for

pytestmark = pytest.mark.browser

SCRIPT = "window.__ran = (window.__ran ?? 0) + 1"
EVIL = f"""'"><img class="made" src=x onerror="{SCRIPT}"><svg class=made onload="{SCRIPT}"></svg>{{{{7*7}}}}"""
MADE = ".made, img[src='x'], svg[onload], a[href^='javascript' i], [onerror]"
HELD = "layer => window.__planetwire?.earth?.held(layer) ?? -1"
CITIES = "() => [...(window.__planetwire?.terminal?.cities ?? [])]"
FACT = """insert into collected_data (source, external_key, kind, title, data, lat, lon, observed_at)
values ('{source}', '{key}', '{kind}', {title}, {data}, 38.0, 142.0, now() - interval '2 hours')"""

DATA = {"mag": 5.5, "mag_type": EVIL, "status": EVIL, "url": f"javascript:{SCRIPT}", "raw": EVIL, "station_label": EVIL}
FACTS = (
    ("usgs_quakes", "us1", "earthquake"),
    ("celestrak_gp", "25544", "satellite"),
    ("city_observation", "atlantis", "weather_station"),
)


def quoted(text: str) -> str:
    """As a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


@pytest.fixture(scope="module")
def told() -> Iterator[Installation]:
    """An installation in which every text that comes from elsewhere is an attack."""
    with an_installation("up", **NO_FEEDS) as made:
        title = quoted(f"zebra {EVIL}")
        for source, key, kind in FACTS:
            made.execute(
                FACT.format(source=source, key=key, kind=kind, title=title, data=quoted(orjson.dumps(DATA).decode()))
            )
        made.execute(
            "insert into collection_tasks (task_type, source, status, message, error_code, error, sample, finished_at)"
            f" select 'collect', source, 'failed', {title}, code, {title}, {title}, clock_timestamp()"
            f" from (values ({quoted(EVIL)}, 'bad_body'), ('usgs_quakes', {quoted(EVIL)})) as jobs (source, code)"
        )
        yield made


@pytest.fixture
def told_page(told: Installation, browser: Browser) -> Iterator[Page]:
    """Fails its test when anything was made of a text, or the browser had to refuse to run it."""
    context = browser.new_context(locale="en-GB", viewport=DESKTOP, timezone_id="UTC")  # type: ignore[arg-type]
    page = context.new_page()
    page.on("dialog", lambda dialog: pytest.fail(f"a dialog: {dialog.message}"))
    watched = Watched(page)
    yield page
    assert page.evaluate("window.__ran ?? 0") == 0
    expect(page.locator(MADE)).to_have_count(0)
    context.close()
    assert watched.errors == []


def shows(place: Locator, text: str = EVIL) -> None:
    expect(place).to_contain_text(text)
    expect(place.locator(MADE)).to_have_count(0)


def test_what_feeds_and_failed_jobs_say_is_text_on_the_globes_page(told: Installation, told_page: Page) -> None:
    """Titles in search, titles and values in the cards, sources, words and samples of jobs; a link is a web address."""
    told_page.goto(f"{told.url}/earth")
    options = told_page.locator(".search").get_by_role("option")
    card = told_page.get_by_role("region", name="Selected object")
    box = told_page.get_by_role("combobox", name="Search for an object")
    for number in range(len(FACTS)):
        box.fill("zebra")
        expect(options).to_have_count(len(FACTS))
        shows(options.nth(number))
        options.nth(number).click()
        shows(card)
        expect(card.locator("a")).to_have_count(0)
        told_page.keyboard.press("Escape")
        expect(card).to_have_count(0)
    told_page.locator("#tab-finished").click()
    jobs = told_page.locator("[data-job]")
    expect(jobs).to_have_count(2)
    for number in range(2):
        jobs.nth(number).locator("summary").click()
        shows(jobs.nth(number).locator(".job__error"))
        shows(jobs.nth(number).locator(".sample__text"))
    shows(told_page.locator(".job__name", has_text="made"))


def test_what_senders_say_is_text_on_the_charts(told: Installation, told_page: Page) -> None:
    """Whatever of it is shown."""
    told_page.goto(f"{told.url}/terminal")
    city = wait_for(lambda: told_page.evaluate(CITIES), within_s=60, what="charts with cities")[0]
    changes = {"temp": 21.5, "source": "evil", "station_label": EVIL, "station_code": "<b class=made>X", "raw": EVIL}
    answer = httpx.post(
        f"{told.url}/api/internal/collector-patch",
        headers={"Authorization": f"Bearer {told.token('ingest')}"},
        json={"city": city, "changes": changes | {"runway_points": [{"runway": "<b class=made>R", "temp": 22.5}]}},
        trust_env=False,
    )
    assert answer.status_code == 200, answer.text
    expect(told_page.locator("body")).to_contain_text("21.5")
