"""Snapshots as a real browser asks for them: packed, and not fetched again while nothing is newer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from fix_installation import NO_FEEDS, Installation

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

PATH = "/api/scan/terminal"
FETCH = "async path => { const answer = await fetch(path); return (await answer.json()).rows.length }"


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """The terminal half without feeds."""
    folder = tmp_path_factory.mktemp("codings")
    folder.chmod(0o755)
    made = Installation(folder / "data", ("up", "--only", "terminal"), dict(NO_FEEDS))
    try:
        yield made.start()
    finally:
        made.stop()


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
