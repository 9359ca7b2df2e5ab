"""A real Chromium. If it is missing, the test is skipped locally and fails in CI."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, expect, sync_playwright

from missing import program

FLAGS = [
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Software WebGL: newer Chromium refuses it without this flag.
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
]
DESKTOP = {"width": 1280, "height": 720}
PHONE = {"width": 390, "height": 844}
PATIENCE_MS = 60_000  # the machine's load must not decide


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser per test session."""
    executable = program("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=executable, args=FLAGS, headless=True)
        make = launched.new_context

        def patient(**options: Any) -> BrowserContext:
            context = make(**options)
            context.set_default_timeout(PATIENCE_MS)
            return context

        launched.new_context = patient  # type: ignore[method-assign]
        expect.set_options(timeout=PATIENCE_MS)
        yield launched
        launched.close()


class Watched:
    """Detects what a page must not do: throw, log an error, or send a request to another host."""

    def __init__(self, page: Page) -> None:
        self.errors: list[str] = []
        self.expected: tuple[str, ...] = ()
        page.on("pageerror", lambda error: self.errors.append(f"pageerror: {error}"))
        page.on("console", self._console)
        page.on("request", self._request)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not any(text in message.text for text in self.expected):
            self.errors.append(f"console: {message.text}")

    def _request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.hostname not in ("127.0.0.1", "localhost"):
            self.errors.append(f"asked {request.url}")


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A desktop context in English, UTC."""
    made = browser.new_context(viewport=DESKTOP, locale="en-GB", timezone_id="UTC")  # type: ignore[arg-type]
    yield made
    made.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A page that fails its test on an error or a foreign request; `page.watched.expected` names exceptions."""
    made = context.new_page()
    watched = Watched(made)
    made.watched = watched  # type: ignore[attr-defined]
    yield made
    assert watched.errors == []
