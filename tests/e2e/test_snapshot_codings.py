"""Snapshots and the page's files as a real browser asks for them: packed, and not fetched again without need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, Response

from fix_installation import NO_FEEDS, Installation, an_installation

pytestmark = pytest.mark.browser

PATH = "/api/scan/terminal"
FETCH = "async path => { const answer = await fetch(path); return (await answer.json()).rows.length }"


@pytest.fixture(scope="module")
def terminal() -> Iterator[Installation]:
    """The terminal half without feeds."""
    with an_installation("up", "--only", "terminal", **NO_FEEDS) as made:
        yield made


def test_a_browser_opens_what_it_asked_for_and_is_spared_the_rest(terminal: Installation, page: Page) -> None:
    """Contracts §3: zstd where it says so, gzip where not; 304 to the tag it has."""
    page.goto(f"{terminal.url}/terminal")
    with page.expect_response(lambda answer: answer.url.endswith(PATH)) as first:
        rows = page.evaluate(FETCH, PATH)
    asked = first.value.request.all_headers()["accept-encoding"]
    expected = "zstd" if "zstd" in asked else "gzip"
    assert (rows, first.value.all_headers()["content-encoding"]) == (50, expected)
    with terminal.client() as client:
        tag = client.get(PATH, headers={"Accept-Encoding": asked}).headers["etag"]
        known = client.get(PATH, headers={"Accept-Encoding": asked, "If-None-Match": tag})
    assert (known.status_code, known.content) == (304, b"")


def test_the_page_comes_packed_without_a_cache_and_its_files_once_with_one(terminal: Installation, page: Page) -> None:
    """What is named after its bytes is asked for once; the page itself each time, and answered with 304."""
    devtools = page.context.new_cdp_session(page)
    devtools.send("Network.enable")
    devtools.send("Network.setCacheDisabled", {"cacheDisabled": True})
    answers: list[Response] = []
    page.on("response", lambda answer: answers.append(answer))

    def loaded() -> dict[str, Response]:
        answers.clear()
        page.goto(f"{terminal.url}/terminal")
        page.locator("[data-connection]").first.wait_for()
        return {answer.url: answer for answer in answers if "/api/" not in answer.url}

    for _ in range(2):
        files = {url: answer for url, answer in loaded().items() if "/assets/" in url}
        assert len(files) >= 4
        for answer in files.values():
            assert answer.status == 200
            assert answer.all_headers()["content-encoding"] in ("br", "zstd", "gzip"), answer.url
    devtools.send("Network.setCacheDisabled", {"cacheDisabled": False})
    loaded()
    kept: list[str] = []
    devtools.on("Network.requestServedFromCache", lambda event: kept.append(event["requestId"]))
    again = loaded()
    assert again[f"{terminal.url}/terminal"].status in (200, 304)  # the driver says 200 where the browser got a 304
    assert len(kept) >= len(files)
