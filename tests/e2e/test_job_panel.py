"""The job panel in a real browser: a throttled collect started, watched, stopped and run again; sources changed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from fix_browser import DESKTOP, PHONE, Watched
from fix_feeds import running_feed_server
from fix_installation import Installation, an_installation, wait_for
from planetwire.demo.script import Step
from planetwire.demo.server import FeedServer, demo_environment
from planetwire.demo.world import QUAKES_FOLDER

pytestmark = pytest.mark.browser

QUAKES_PATH = f"{QUAKES_FOLDER}all_day.geojson"
NO_QUAKES = b'{"type": "FeatureCollection", "features": [{"type": "Feature", "id": null}]}'
FLOOR_S = 60
REMEMBER = """id => {
    const seen = window.__seen = [];
    const look = () => {
        const job = document.querySelector(`[data-job="${id}"]`);
        for (const now of [job?.dataset.status, job?.querySelector("button")?.textContent])
            if (now && !seen.includes(now)) seen.push(now);
    };
    look();
    const what = {subtree: true, childList: true, characterData: true, attributes: true};
    new MutationObserver(look).observe(document.body, what);
}"""


@pytest.fixture(scope="module")
def feeds() -> Iterator[FeedServer]:
    """Providers whose answers a test can script."""
    with running_feed_server(at=None, rate=1.0) as server:
        yield server


@pytest.fixture(scope="module")
def panel_installation(feeds: FeedServer) -> Iterator[Installation]:
    """Nothing runs by itself; the catalogue is collected slowly, in small batches; quakes have a floor."""
    environment = demo_environment(feeds.url) | {
        "PLANETWIRE_JOBS__BATCH_ROWS": "100",
        "PLANETWIRE_FEEDS__CELESTRAK_GP__MAX_ROWS_PER_S": "400",
        "PLANETWIRE_FEEDS__USGS_QUAKES__FLOOR_S": str(FLOOR_S),
        "PLANETWIRE_FEEDS__USGS_QUAKES__INTERVAL_S": "600",
        "PLANETWIRE_FEEDS__CELESTRAK_GP__ENABLED": "false",
        "PLANETWIRE_FEEDS__USGS_QUAKES__ENABLED": "false",
        "PLANETWIRE_FEEDS__AWC_METAR__ENABLED": "false",
    }
    with an_installation("up", **environment) as made:
        yield made


def opened(browser: Browser, made: Installation, *, size: dict[str, int] = DESKTOP, locale: str = "en-GB") -> Page:
    """The Earth page of somebody who is signed in; `watched.errors` holds what the page complained about."""
    context = browser.new_context(locale=locale, viewport=size, timezone_id="UTC")  # type: ignore[arg-type]
    context.request.post(
        f"{made.url}/api/v1/session", data={"token": made.token()}, headers={"Origin": made.url}
    ).dispose()
    page = context.new_page()
    page.watched = Watched(page)  # type: ignore[attr-defined]
    page.goto(f"{made.url}/earth")
    page.locator(".source").first.wait_for(state="attached")
    return page


@pytest.fixture
def panel(browser: Browser, panel_installation: Installation) -> Iterator[Page]:
    """The page at desktop size; fails its test on an error in the console."""
    page = opened(browser, panel_installation)
    yield page
    page.context.close()
    assert page.watched.errors == []  # type: ignore[attr-defined]


def tab(page: Page, name: str) -> None:
    page.get_by_role("tab", name=re.compile(name)).click()


def job_item(page: Page, task_id: int) -> Locator:
    return page.locator(f'[data-job="{task_id}"]')


def newest(made: Installation, source: str) -> int:
    """Id of the latest job of the source."""
    return int(made.value(f"select coalesce(max(id), 0) from collection_tasks where source = '{source}'"))


def started(page: Page, made: Installation, source: str) -> int:
    """A collect started by the panel's button; its id."""
    before = newest(made, source)
    page.get_by_role("button", name=f"Collect {source} now").click()
    found = wait_for(lambda: (now := newest(made, source)) > before and now, within_s=60, what="a job in the ledger")
    return int(found)


def source_details(page: Page, source: str) -> Locator:
    row = page.locator(f'[data-source="{source}"]')
    row.get_by_role("button", name=f"About {source}").click()
    return row


def records_shown(item: Locator) -> int:
    found = re.search(r"([\d,]+) of [\d,]+ records", item.inner_text())
    return int(found[1].replace(",", "")) if found else 0


def test_a_collect_is_started_watched_stopped_and_run_again_from_the_panel(
    panel: Page, panel_installation: Installation
) -> None:
    """S45–S51: what a stop kept is what the ledger says; the job that does the work again is named."""
    task_id = started(panel, panel_installation, "celestrak_gp")
    tab(panel, "Running")
    item = job_item(panel, task_id)
    bar = item.get_by_role("progressbar")
    expect(bar).to_be_visible()
    first = wait_for(lambda: records_shown(item), within_s=60, what="records on the panel")
    wait_for(lambda: records_shown(item) > first, within_s=60, what="more records on the panel")
    expect(item.locator('[data-fact="rate"]')).to_have_text(re.compile(r"^[\d,.]+/s$"))
    expect(item.locator('[data-fact="remaining"]')).to_have_text(re.compile(r"^about \d+ (s|min) left$"))
    assert re.fullmatch(r"\d+%, [\d,]+ of [\d,]+ records", bar.get_attribute("aria-valuetext") or "")

    panel.evaluate(REMEMBER, task_id)
    item.get_by_role("button", name=f"Stop job {task_id}").click()
    with panel_installation.client() as client:
        done = panel_installation.wait_job(client, task_id, within_s=60)
    assert (done["status"], done["batches"] > 0) == ("cancelled", True)
    assert done["records_processed"] == panel_installation.value(
        "select count(*) from collected_data where source = 'celestrak_gp'"
    )
    tab(panel, "Finished")
    batches = f"{done['batches']} batch{'es' if done['batches'] > 1 else ''}"
    kept = f"stopped; {batches}, {done['records_processed']:,} records kept"
    expect(item).to_contain_text(kept)
    expect(panel.locator("[data-news]")).to_have_text(f"Job #{task_id}: {kept}")
    seen = panel.evaluate("window.__seen")
    assert seen[0] == "running" and any(text.startswith("Stopping") for text in seen), seen

    item.get_by_role("button", name=f"Run job {task_id} again").dblclick()
    again = wait_for(
        lambda: (now := newest(panel_installation, "celestrak_gp")) > task_id and now, within_s=60, what="a new job"
    )
    expect(item).to_contain_text(f"retried as #{again}")
    expect(item.get_by_role("button", name=f"Run job {task_id} again")).to_have_count(0)
    tab(panel, "Running")
    job_item(panel, again).get_by_role("button", name=f"Stop job {again}").click()
    with panel_installation.client() as client:
        panel_installation.wait_job(client, again, within_s=60)
    assert newest(panel_installation, "celestrak_gp") == again  # a double click is one wish


def test_a_failing_source_shows_its_code_and_the_bytes_at_fault(
    panel: Page, panel_installation: Installation, feeds: FeedServer
) -> None:
    """Code, text, sample and attempts; found again among those that failed and were not run again."""
    feeds.script(QUAKES_PATH, [Step(body=NO_QUAKES, content_type="application/json", validators=False)])
    panel_installation.execute(
        "insert into collection_tasks (task_type, source, max_attempts) values ('collect', 'usgs_quakes', 1)"
    )
    task_id = newest(panel_installation, "usgs_quakes")
    with panel_installation.client() as client:
        failed = panel_installation.wait_job(client, task_id, within_s=60)
    assert failed["status"] == "failed"
    assert "Feature" in failed["sample"]
    tab(panel, "Finished")
    panel.get_by_role("combobox", name="Show").select_option("dead")
    item = job_item(panel, task_id)
    expect(item.locator(".job__error code")).to_have_text(failed["error_code"])
    expect(item).to_contain_text("1 of 1 attempts used")
    item.get_by_text("Record or body at fault").click()
    expect(item.locator("pre")).to_have_text(failed["sample"])
    expect(item.locator("pre")).to_be_visible()
    item.get_by_role("button", name="Copy").click()
    expect(item.get_by_role("status")).to_have_text(re.compile("Copied|Selected"))
    row = source_details(panel, "usgs_quakes")
    expect(row.locator(".source__error")).to_contain_text(failed["error_code"])


def test_a_paused_source_starts_nothing_until_it_is_resumed(panel: Page, panel_installation: Installation) -> None:
    """Pause, a job by hand that waits and says why, resume, and it runs."""
    row = source_details(panel, "celestrak_gp")
    row.get_by_role("button", name="Pause celestrak_gp").click()
    resume = row.get_by_role("button", name="Resume celestrak_gp")
    expect(resume).to_be_enabled()
    assert panel_installation.value("select count(*) from paused_sources where source = 'celestrak_gp'") == 1
    task_id = started(panel, panel_installation, "celestrak_gp")
    tab(panel, "Queued")
    item = job_item(panel, task_id)
    expect(item).to_contain_text("source is paused")
    resume.click()
    expect(row.get_by_role("button", name="Pause celestrak_gp")).to_be_enabled()
    tab(panel, "Running")
    job_item(panel, task_id).get_by_role("button", name=f"Stop job {task_id}").click()
    with panel_installation.client() as client:
        assert panel_installation.wait_job(client, task_id, within_s=60)["status"] == "cancelled"


def test_an_interval_below_the_providers_floor_is_refused_beside_its_field(
    panel: Page, panel_installation: Installation
) -> None:
    """The floor is shown before; the server's own words after; a good value is kept."""
    panel.watched.expected = ("400",)  # type: ignore[attr-defined]
    row = source_details(panel, "usgs_quakes")
    row.get_by_role("button", name="Schedule of usgs_quakes").click()
    expect(row).to_contain_text("The provider allows every 1 min at most.")
    row.get_by_label("Unit").select_option("s")
    row.get_by_label("Every").fill("10")
    row.get_by_role("button", name="Save").click()
    expect(row.get_by_role("alert")).to_contain_text("60 s at most")
    expect(row.get_by_label("Every")).to_have_attribute("aria-invalid", "true")
    row.get_by_label("Every").fill("90")
    row.get_by_role("button", name="Save").click()
    expect(row.get_by_role("button", name="Schedule of usgs_quakes")).to_be_focused()
    expect(row).to_contain_text("every 90 s")
    assert panel_installation.value("select interval_s from datasources where source = 'usgs_quakes'") == 90


def test_a_calendar_shows_its_next_three_runs(panel: Page, panel_installation: Installation) -> None:
    """Cron, zone and the rule for missed runs; then back to the default."""
    panel.watched.expected = ("400",)  # type: ignore[attr-defined]
    row = source_details(panel, "usgs_quakes")
    row.get_by_role("button", name="Schedule of usgs_quakes").click()
    row.get_by_label("by calendar").check()
    row.get_by_role("textbox", name="Calendar").fill("15 6 * * *")
    row.get_by_label("Time zone").fill("Mars/Base")
    row.get_by_label("Missed runs").select_option("skip")
    row.get_by_role("button", name="Save").click()
    expect(row.get_by_label("Time zone")).to_have_attribute("aria-invalid", "true")
    row.get_by_label("Time zone").fill("Asia/Shanghai")
    row.get_by_role("button", name="Save").click()
    expect(row).to_contain_text("15 6 * * * (Asia/Shanghai)")
    expect(row).to_contain_text("schedule off")
    row.get_by_role("switch").click()
    expect(row.locator("dd li")).to_have_text([re.compile("06:15")] * 3)
    row.get_by_role("switch").click()
    expect(row).to_contain_text("schedule off")
    row.get_by_role("button", name="Schedule of usgs_quakes").click()
    row.get_by_role("button", name="Use the default").click()
    expect(row).to_contain_text("every 10 min")
    kept = panel_installation.value(
        "select coalesce(cron, time_zone, misfire, interval_s::text) from datasources where source = 'usgs_quakes'"
    )
    assert kept is None


@pytest.mark.parametrize("locale", ["en-GB", "zh-CN"])
def test_on_a_phone_the_panel_has_no_width_to_spare_and_needs_none(
    browser: Browser, panel_installation: Installation, locale: str
) -> None:
    """390 px, both languages, everything unfolded: nothing is wider than the screen."""
    page = opened(browser, panel_installation, size=PHONE, locale=locale)
    page.locator(".earth__tabs button").nth(1).click()
    page.locator(".source .layer__more").first.click()
    page.locator(".source__more .button").first.click()
    page.locator("#tab-finished").click()
    wide: list[Any] = page.evaluate(
        """() => [...document.querySelectorAll(".float__body *")].map((part) => [part.className,
            part.getBoundingClientRect()]).filter(([, box]) => box.width > 0 && box.right > innerWidth + 1)
            .map(([name]) => String(name))"""
    )
    assert wide == []
    assert page.watched.errors == []  # type: ignore[attr-defined]
    page.context.close()


def test_a_clear_says_how_many_rows_go_and_asks_before_it_is_run_and_before_it_is_run_again(
    panel: Page, panel_installation: Installation
) -> None:
    """By the keyboard alone: Escape keeps, and the focus comes back to the button that began it."""
    count = "select count(*) from collected_data where source = 'usgs_quakes'"
    panel_installation.execute(
        "insert into collected_data (source, external_key, kind, lat, lon)"
        " select 'usgs_quakes', 'made-' || n, 'earthquake', 1, 1 from generate_series(1, 1234) n"
        " on conflict do nothing"
    )
    rows = panel_installation.value(count)
    row = source_details(panel, "usgs_quakes")
    clear = row.get_by_role("button", name="Clear all data of usgs_quakes")
    clear.focus()
    panel.keyboard.press("Enter")
    dialog = panel.get_by_role("alertdialog")
    expect(dialog).to_contain_text(f"{rows:,} records will be deleted")
    panel.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(clear).to_be_focused()
    assert panel_installation.value(count) == rows
    panel.keyboard.press("Enter")
    expect(dialog).to_contain_text(f"{rows:,} records")
    panel.keyboard.press("Tab")
    expect(dialog.get_by_role("button", name="Delete")).to_be_focused()
    before = newest(panel_installation, "usgs_quakes")
    panel.keyboard.press("Enter")
    task_id = wait_for(
        lambda: (now := newest(panel_installation, "usgs_quakes")) > before and now, within_s=60, what="a clear"
    )
    with panel_installation.client() as client:
        assert panel_installation.wait_job(client, task_id, within_s=60)["records_processed"] == rows

    tab(panel, "Finished")
    item = job_item(panel, task_id)
    item.get_by_text("Who and log").click()
    expect(item).to_contain_text("Started by admin token")
    expect(item).to_contain_text(f"{rows:,} records deleted, as admin token asked")
    expect(item.get_by_role("list", name=f"Log of job {task_id}")).to_contain_text("rows deleted from collected_data")
    panel_installation.execute(
        "insert into collected_data (source, external_key, kind) values ('usgs_quakes', 'x', 'earthquake')"
    )
    item.get_by_role("button", name=f"Run job {task_id} again").click()
    expect(dialog).to_contain_text("1 record will be deleted")
    dialog.get_by_role("button", name="Keep").click()
    expect(dialog).to_have_count(0)
    assert newest(panel_installation, "usgs_quakes") == task_id
    item.get_by_role("button", name=f"Run job {task_id} again").click()
    dialog.get_by_role("button", name="Delete").click()
    again = wait_for(
        lambda: (now := newest(panel_installation, "usgs_quakes")) > task_id and now, within_s=60, what="a clear again"
    )
    expect(item).to_contain_text(f"Run again by admin token as #{again}")
    with panel_installation.client() as client:
        panel_installation.wait_job(client, again, within_s=60)
    assert panel_installation.value(count) == 0


def test_the_log_of_a_running_job_grows_while_it_is_looked_at(panel: Page, panel_installation: Installation) -> None:
    task_id = started(panel, panel_installation, "celestrak_gp")
    tab(panel, "Running")
    item = job_item(panel, task_id)
    item.get_by_text("Who and log").click()
    lines = item.get_by_role("list", name=f"Log of job {task_id}").get_by_role("listitem")
    expect(lines.filter(has_text="committed").first).to_be_visible()
    first = lines.count()
    wait_for(lambda: lines.count() > first, within_s=60, what="more lines")
    item.get_by_role("button", name=f"Stop job {task_id}").click()
    with panel_installation.client() as client:
        panel_installation.wait_job(client, task_id, within_s=60)
