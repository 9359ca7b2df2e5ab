"""What the content policy lets a page do, in the browser that enforces it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from certificates import self_signed
from fix_browser import DESKTOP
from fix_installation import NO_FEEDS, Installation, wait_for

pytestmark = pytest.mark.browser

LIVE = "() => window.__planetwire?.terminal?.connection === 'live'"
WATCH = """() => {
    window.refused = [];
    document.addEventListener('securitypolicyviolation', (event) =>
        window.refused.push(`${event.effectiveDirective} ${event.blockedURI}`));
}"""
# The page's own sockets are let through to the server (which knows no such path), others end in the browser.
TRY = """async ([url]) => {
    const before = window.refused.length;
    await new Promise((done) => {
        try {
            const socket = new WebSocket(url);
            socket.onerror = socket.onopen = () => setTimeout(done, 50);
        } catch { done(); }
    });
    return window.refused.slice(before);
}"""


def outcome(browser: Browser, made: Installation, scheme: str, host: str) -> tuple[list[Any], list[Any], list[Any]]:
    """What the policy refused of the page itself, of a socket to its host, and of one to another."""
    context = browser.new_context(viewport=DESKTOP, locale="en-GB", ignore_https_errors=True)  # type: ignore[arg-type]
    page = context.new_page()
    page.add_init_script(f"({WATCH})()")
    port = made.url.rpartition(":")[2]
    page.goto(f"{scheme}://{host}:{port}/terminal")
    wait_for(lambda: page.evaluate(LIVE), within_s=60, what="a live page")
    sockets = scheme.replace("http", "ws")
    own = page.evaluate("() => window.refused")
    same = page.evaluate(TRY, [f"{sockets}://{host}:{port}/ws"])
    other = page.evaluate(TRY, [f"{sockets}://{host}:1/ws"])
    context.close()
    return own, same, other


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_page_does_all_it_needs_and_connects_to_nobody_else(
    installation: Callable[..., Installation], browser: Browser, host: str
) -> None:
    made = installation("up", "--only", "terminal", **NO_FEEDS)
    own, same, other = outcome(browser, made, "http", host)
    assert (own, same) == ([], [])
    assert other == [f"connect-src ws://{host}:1/ws"]


def test_so_does_a_page_that_came_over_our_own_tls(
    installation: Callable[..., Installation], browser: Browser, tmp_path: Path
) -> None:
    made = installation("up", "--only", "terminal", **NO_FEEDS, **self_signed(tmp_path).settings)
    own, same, other = outcome(browser, made, "https", "localhost")
    assert (own, same) == ([], [])
    assert other == ["connect-src wss://localhost:1/ws"]
