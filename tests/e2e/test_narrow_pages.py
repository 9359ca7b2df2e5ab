"""Both pages on the narrowest phones, zoomed in, and with notices up: nothing is out of reach, nothing is covered."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from fix_browser import DESKTOP, PHONE
from fix_installation import Installation

pytestmark = pytest.mark.browser

NARROWEST = {"width": 320, "height": 640}
ZOOMED = {"width": 720, "height": 450}  # a window of 1440 × 900 at 200 %
OUTSIDE = """() => [".topbar", ".terminal__bar", ".hud", ".tile__title", ".job", ".search"]
    .flatMap((part) => [...document.querySelectorAll(`${part} *`)])
    .map((part) => [part.outerHTML.slice(0, 80), part.getBoundingClientRect()])
    .filter(([, box]) => box.width > 0 && (box.left < -1 || box.right > innerWidth + 1)).map(([text]) => text)"""
LONG_NAME = "a_source_with_a_long_name_" * 3


@contextmanager
def opened(
    browser: Browser, made: Installation, path: str, size: dict[str, int], *, locale: str = "en-GB", touch: bool = False
) -> Iterator[Page]:
    """A page of somebody who is signed in."""
    context = browser.new_context(viewport=size, locale=locale, has_touch=touch, is_mobile=touch)  # type: ignore[arg-type]
    context.request.post(
        f"{made.url}/api/v1/session", data={"token": made.token()}, headers={"Origin": made.url}
    ).dispose()
    page = context.new_page()
    page.goto(f"{made.url}{path}")
    yield page
    context.close()


def box(page: Page, selector: str) -> dict[str, Any]:
    found = page.locator(selector).first.bounding_box()
    assert found is not None, selector
    return dict(found)


@pytest.mark.parametrize("locale", ["en-GB", "zh-CN"])
@pytest.mark.parametrize(("path", "part"), [("/earth", ".hud"), ("/terminal", ".tile__now")])
def test_nothing_is_out_of_reach_at_320_pixels(
    demo_installation: Installation, browser: Browser, path: str, part: str, locale: str
) -> None:
    with opened(browser, demo_installation, path, NARROWEST, locale=locale, touch=True) as page:
        page.locator(part).first.wait_for()
        assert page.evaluate("() => innerWidth") == NARROWEST["width"], "a part that is too wide widens the page"
        assert page.evaluate(OUTSIDE) == []


def test_a_long_source_leaves_room_for_the_state_and_the_button_of_its_job(
    demo_installation: Installation, browser: Browser
) -> None:
    demo_installation.execute(
        "insert into collection_tasks (task_type, source, status, attempts, error_code, error, finished_at)"
        f" values ('collect', '{LONG_NAME}', 'failed', 3, 'transient', 'no answer', clock_timestamp())"
    )
    with opened(browser, demo_installation, "/earth", PHONE, locale="zh-CN", touch=True) as page:
        page.locator(".earth__tabs button").nth(1).tap()
        page.locator("#tab-finished").tap()
        page.locator(".jobs__dead .link").tap()
        item = page.locator(".job", has_text="a_source_with").first
        expect(item).to_contain_text("数据提供方没有响应")
        expect(item.get_by_role("button", name=re.compile("再次运行"))).to_be_visible()
        assert page.evaluate(OUTSIDE) == []
    demo_installation.execute(f"delete from collection_tasks where source = '{LONG_NAME}'")


def test_a_notice_stands_beside_the_job_list_and_on_a_phone_above_it(
    demo_installation: Installation, browser: Browser
) -> None:
    with opened(browser, demo_installation, "/earth", DESKTOP) as page:
        page.get_by_role("button", name="Collect usgs_quakes now").click()
        expect(page.locator("[data-sonner-toast]").first).to_be_attached()
        notice, jobs = box(page, "[data-sonner-toast]"), box(page, ".earth__right")
        assert notice["x"] + notice["width"] <= jobs["x"]
    with opened(browser, demo_installation, "/earth", PHONE, touch=True) as page:
        page.locator(".earth__tabs button").nth(1).tap()
        page.get_by_role("button", name="Collect usgs_quakes now").tap()
        expect(page.locator("[data-sonner-toast]").first).to_be_attached()
        notice, jobs = box(page, "[data-sonner-toast]"), box(page, ".earth__right .panel")
        assert notice["y"] + notice["height"] <= jobs["y"]


def test_a_phone_is_not_told_of_a_key_it_does_not_have(demo_installation: Installation, browser: Browser) -> None:
    with opened(browser, demo_installation, "/earth", DESKTOP) as page:
        expect(page.locator(".search__key")).to_be_visible()
    with opened(browser, demo_installation, "/earth", PHONE, touch=True) as page:
        expect(page.get_by_role("combobox", name="Search for an object")).to_be_visible()
        expect(page.locator(".search__key")).to_be_hidden()


@pytest.mark.parametrize("size", [ZOOMED, {"width": 844, "height": 390}], ids=["zoomed", "phone on its side"])
def test_on_a_low_screen_the_jobs_are_reached_by_scrolling(
    demo_installation: Installation, browser: Browser, size: dict[str, int]
) -> None:
    with opened(browser, demo_installation, "/earth", size) as page:
        page.locator(".earth__tabs button").nth(1).click()
        page.locator("#tab-finished").click()
        button = page.locator(".job .button").nth(1)
        button.scroll_into_view_if_needed()
        button.click(trial=True)  # nothing lies over it
        expect(page.locator(".search")).to_be_hidden()


def test_zoomed_in_the_list_of_cities_is_reached_by_scrolling(
    demo_installation: Installation, browser: Browser
) -> None:
    with opened(browser, demo_installation, "/terminal", ZOOMED) as page:
        row = page.locator(".rows tbody tr").nth(5)
        row.wait_for()
        row.scroll_into_view_if_needed()
        where = row.bounding_box()
        assert where is not None and where["y"] >= 0 and where["y"] + where["height"] <= ZOOMED["height"]
        assert box(page, ".tile__canvas")["height"] > 100
