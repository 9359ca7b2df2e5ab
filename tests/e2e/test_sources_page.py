"""The Sources page in a real browser, on a running demo."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from fix_browser import DESKTOP, Watched
from fix_installation import Installation

pytestmark = pytest.mark.browser

NARROWEST = {"width": 320, "height": 640}
OUTSIDE = """() => [...document.querySelectorAll(".topbar *, .sourcespage *")]
    .map((part) => [part.outerHTML.slice(0, 80), part.getBoundingClientRect()])
    .filter(([, box]) => box.width > 0 && (box.left < -1 || box.right > innerWidth + 1)).map(([text]) => text)"""
# Every state that the source's row shows from now on, how far the row moved or grew, and what was asked for meanwhile.
FOLLOW = """source => {
    const row = document.querySelector(`[data-source="${source}"]`);
    const place = () => { const box = row.getBoundingClientRect(); return `${box.top} ${box.height}`; };
    const seen = window.__seen = {states: [row.dataset.state], bars: 0, places: [place()]};
    new MutationObserver(() => {
        if (seen.states.at(-1) !== row.dataset.state) seen.states.push(row.dataset.state);
        seen.bars += row.querySelectorAll("progress").length;
        if (!seen.places.includes(place())) seen.places.push(place());
    }).observe(row, {subtree: true, childList: true, characterData: true, attributes: true});
}"""

# A run that lasts until the test has seen it, however busy the machine is.
RUN = """insert into collection_tasks (task_type, source, status, attempts, lease_seq, lease_until, started_at, phase,
        records_processed, records_total, progress)
    values ('collect', 'celestrak_gp', 'running', 1, 1, clock_timestamp() + interval '1 h', clock_timestamp(), 'write',
        100, 1000, 0.1)
    returning id"""
END = """update collection_tasks set status = 'completed', progress = 1, lease_until = null,
        finished_at = clock_timestamp() where id = {}"""


@contextmanager
def opened(
    browser: Browser,
    made: Installation,
    *,
    path: str = "/sources",
    size: dict[str, int] = DESKTOP,
    locale: str = "en-GB",
    signed_in: bool = True,
) -> Iterator[Page]:
    """The page; fails its test on an error in the console."""
    context = browser.new_context(viewport=size, locale=locale, timezone_id="UTC")  # type: ignore[arg-type]
    if signed_in:
        context.request.post(
            f"{made.url}/api/v1/session", data={"token": made.token()}, headers={"Origin": made.url}
        ).dispose()
    page = context.new_page()
    watched = Watched(page)
    page.goto(f"{made.url}{path}")
    yield page
    context.close()
    assert watched.errors == []


def row(page: Page, source: str) -> Locator:
    return page.locator(f'[data-source="{source}"]')


def test_it_is_found_by_keyboard_and_follows_a_job_by_the_socket_without_moving(
    demo_installation: Installation, browser: Browser
) -> None:
    """From the header of any page to a run that somebody else began: no globe is loaded for it, nothing jumps."""
    with opened(browser, demo_installation, path="/no-such-page") as page:
        loaded: list[str] = []
        page.on("request", lambda request: loaded.append(request.url))
        link = page.get_by_role("link", name="Sources")
        link.focus()
        page.keyboard.press("Enter")
        expect(page).to_have_title("Sources · Planetwire")
        expect(page.locator('[data-connection="live"]')).to_be_visible()
        satellites = row(page, "celestrak_gp")
        expect(satellites).to_have_attribute("data-state", "waiting")  # the first collect has ended
        page.evaluate(FOLLOW, "celestrak_gp")
        run = demo_installation.value(RUN)
        expect(satellites).to_have_attribute("data-state", "running")
        expect(satellites.get_by_role("progressbar")).to_be_visible()
        demo_installation.execute(END.format(run))
        expect(satellites).to_have_attribute("data-state", "waiting")
        rows = demo_installation.value("select count(*) from collected_data where source = 'celestrak_gp'")
        expect(satellites).to_contain_text(f"{rows:,}")
        seen = page.evaluate("window.__seen")
        assert seen["bars"] > 0 and len(seen["places"]) == 1, seen
        assert [url for url in loaded if re.search("Earth-|cesium|countries", url)] == []


def test_an_operator_pauses_resumes_and_sets_the_schedule(demo_installation: Installation, browser: Browser) -> None:
    """A pause moves the source to the top once nobody points at the list; the keyboard comes back after an edit."""
    kept = "select interval_s from datasources where source = 'usgs_quakes'"
    with opened(browser, demo_installation) as page:
        quakes = row(page, "usgs_quakes")
        quakes.get_by_role("button", name="Pause usgs_quakes").click()
        expect(quakes).to_have_attribute("data-state", "paused")
        page.mouse.move(2, 2)
        page.evaluate("document.activeElement.blur()")
        expect(page.locator("[data-source]").first).to_have_attribute("data-source", "usgs_quakes")
        quakes.get_by_role("button", name="Resume usgs_quakes").click()
        expect(quakes).not_to_have_attribute("data-state", "paused")
        quakes.get_by_role("button", name="About usgs_quakes").click()
        expect(quakes).to_contain_text("Public domain", ignore_case=True)
        edit = quakes.get_by_role("button", name="Schedule of usgs_quakes")
        edit.click()
        quakes.get_by_label("Unit").select_option("s")
        quakes.get_by_label("Every").fill("97")
        quakes.get_by_role("button", name="Save").click()
        expect(edit).to_be_focused()
        expect(quakes).to_contain_text("every 97 s")
        assert demo_installation.value(kept) == 97
        edit.click()
        quakes.get_by_role("button", name="Use the default").click()
        expect(quakes).not_to_contain_text("every 97 s")
        assert demo_installation.value(kept) is None


def test_a_failing_source_is_first_and_a_stranger_may_look_and_sign_in(
    demo_installation: Installation, browser: Browser
) -> None:
    """What was refused, by code; no button acts but the one that signs in."""
    demo_installation.execute(
        "insert into collection_tasks (task_type, source, status, attempts, finished_at, message, sample, rejects)"
        " values ('collect', 'usgs_quakes', 'completed', 1, clock_timestamp(),"
        " '3 records, 5 rejected (bad_time 4, no_record 1)', '{\"id\": null}', 5)"
    )
    failing = "last_error_code = 'mostly_rejected', last_error = '5 records refused', rejects_last_run = 5"
    well = "last_error_code = null, last_error = null, rejects_last_run = 0"
    later = "next_run_at = clock_timestamp() + interval '5 minutes'"
    demo_installation.execute(f"update datasources set {failing}, {later} where source = 'usgs_quakes'")
    try:
        with opened(browser, demo_installation, signed_in=False) as page:
            first = page.locator("[data-source]").first
            expect(first).to_have_attribute("data-source", "usgs_quakes")
            expect(first).to_have_attribute("data-state", "failing")
            expect(page.locator(".summary")).to_contain_text("1 source needs a look")
            first.get_by_role("button", name="About usgs_quakes").click()
            expect(first).to_contain_text("4 × bad_time has no valid time")
            expect(first.get_by_text("Record or body at fault")).to_be_visible()
            inside = page.locator(".sourcespage").get_by_role("button")
            named = [re.sub(r" \w+_\w+$", "", one.get_attribute("aria-label") or "") for one in inside.all()]
            assert set(named) == {"Sign in to work with sources", "About"}
            page.get_by_role("button", name="Sign in to work with sources").click()
            expect(page.get_by_role("dialog", name="Sign in")).to_be_visible()
    finally:
        demo_installation.execute(f"update datasources set {well}, next_run_at = null where source = 'usgs_quakes'")


@pytest.mark.parametrize("locale", ["en-GB", "zh-CN"])
def test_on_the_narrowest_phone_nothing_is_out_of_reach(
    demo_installation: Installation, browser: Browser, locale: str
) -> None:
    """320 px, everything unfolded."""
    with opened(browser, demo_installation, size=NARROWEST, locale=locale) as page:
        page.locator(".srow__item").nth(1).wait_for()
        for fold in page.locator(".srow__fold").all():
            fold.click()
        page.locator(".sdetails .source__more .button").first.click()
        page.locator(".meanings summary").click()
        assert page.evaluate("() => innerWidth") == NARROWEST["width"]
        assert page.evaluate(OUTSIDE) == []
        last = page.locator(".meanings dd").last
        last.scroll_into_view_if_needed()
        box = last.bounding_box()
        assert box is not None and box["y"] + box["height"] <= NARROWEST["height"]
