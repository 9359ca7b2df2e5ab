"""Both pages without a mouse."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from fix_installation import Installation

pytestmark = pytest.mark.browser

FOCUSED = "() => document.activeElement?.className ?? ''"


@pytest.mark.parametrize(("path", "title"), [("/earth", "Earth · Planetwire"), ("/terminal", "Terminal · Planetwire")])
def test_the_first_stop_leads_past_the_bar_and_the_tab_of_the_browser_names_the_page(
    demo_installation: Installation, page: Page, path: str, title: str
) -> None:
    page.goto(f"{demo_installation.url}{path}")
    page.locator(".page > *").first.wait_for()
    expect(page).to_have_title(title)
    page.keyboard.press("Tab")
    skip = page.get_by_role("button", name="Skip to the page")
    expect(skip).to_be_focused()
    box = skip.bounding_box()
    assert box is not None and box["x"] >= 0 and box["width"] > 50
    page.keyboard.press("Enter")
    assert page.evaluate(FOCUSED) == "page"
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement?.closest('main') !== null")


def test_every_stop_of_the_terminal_shows_where_the_keyboard_is(demo_installation: Installation, page: Page) -> None:
    """Each has a name to be read and a ring to be seen."""
    page.goto(f"{demo_installation.url}/terminal")
    page.locator(".legend__item").first.wait_for()
    seen = []
    for _ in range(30):
        page.keyboard.press("Tab")
        seen.append(
            page.evaluate(
                """() => {
                    const at = document.activeElement;
                    const ring = getComputedStyle(at).boxShadow;
                    const name = at.getAttribute("aria-label") || at.innerText || at.placeholder || at.title;
                    return [Boolean(name?.trim()), ring !== "none", at.outerHTML.slice(0, 120)];
                }"""
            )
        )
    assert [html for named, ringed, html in seen if not (named and ringed)] == []
