"""The globe in a real browser, on a running demo."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, Page

from fix_installation import Installation, wait_for
from pace import promised
from pixels import around, colours, ink

pytestmark = pytest.mark.browser

COUNT = "layer => window.__planetwire?.earth?.count(layer) ?? -1"


def count(page: Page, layer: str) -> int:
    return int(page.evaluate(COUNT, layer))


def wait_count(page: Page, layer: str, condition: Callable[[int], bool], *, within_s: float, what: str) -> int:
    def look() -> int | None:
        found = count(page, layer)
        return found + 1 if condition(found) else None  # zero is an answer too

    return int(wait_for(look, within_s=within_s, what=what)) - 1


def test_the_globe_shows_every_satellite_and_the_quakes(demo_installation: Installation, page: Page) -> None:
    """S56–S58 seen from the browser: collected, committed, drawn."""
    page.goto(f"{demo_installation.url}/earth")
    wait_count(page, "satellites", lambda n: n >= 12_000, within_s=90, what="12,000 satellites on the globe")
    wait_count(page, "earthquakes", lambda n: n >= 10, within_s=60, what="quakes on the globe")
    canvas = page.locator("canvas").first.bounding_box()
    assert canvas is not None and canvas["width"] > 600 and canvas["height"] > 500
    middle = {"x": canvas["x"] + canvas["width"] / 2 - 150, "y": canvas["y"] + canvas["height"] / 2 - 150}
    assert colours(page, page.screenshot(clip={**middle, "width": 300, "height": 300})) > 50, "the globe is flat"  # type: ignore[typeddict-item]
    assert page.get_by_text("simulated", exact=False).first.is_visible()


def test_a_flat_picture_has_one_colour(page: Page) -> None:
    """The measure above can fail."""
    page.goto("about:blank")
    assert colours(page, page.screenshot(clip={"x": 0, "y": 0, "width": 300, "height": 300})) == 1


def test_a_delete_typed_into_psql_empties_the_globe_and_collecting_fills_it(
    demo_installation: Installation, page: Page
) -> None:
    """S62, S63, S66, S79, S80: `DELETE FROM collected_data` reaches the page within two seconds, without a reload."""
    with demo_installation.client() as client:
        page.goto(f"{demo_installation.url}/earth")
        wait_count(page, "satellites", lambda n: n >= 12_000, within_s=90, what="satellites before the delete")
        page.evaluate("window.__notReloaded = true")
        deleted = demo_installation.execute("DELETE FROM collected_data WHERE source = 'celestrak_gp'")
        assert deleted != "DELETE 0"
        wait_count(page, "satellites", lambda n: n == 0, within_s=promised(2), what="an empty layer after the delete")
        body = client.get("/api/v1/visualization/satellites").json()
        assert (body["count"], body["features"]) == (0, [])
        done = demo_installation.wait_job(
            client, demo_installation.submit(client, "collect", "celestrak_gp"), within_s=60
        )
        assert done["status"] == "completed", done
        wait_count(page, "satellites", lambda n: n >= 12_000, within_s=60, what="satellites after collecting again")
        assert page.evaluate("window.__notReloaded") is True


QUAKE = """insert into collected_data (source, external_key, kind, title, data, lat, lon, observed_at)
values ('usgs_quakes', 'drawn-by-hand', 'earthquake', 'M 7.0', '{"mag": 7.0}', 18, 0, now())"""
LIVE = "() => window.__planetwire.earth.connection() === 'live'"
FRESH = "#f35b4c"  # a quake of the last hour, on the dark Earth


def test_an_object_is_drawn_where_it_is_and_its_place_is_empty_once_it_is_deleted(
    demo_installation: Installation, page: Page
) -> None:
    """S62, S63, S64: by the globe's pixels. To somebody whose clock is UTC the globe begins over 18° N, 0° E."""
    page.goto(f"{demo_installation.url}/earth")
    wait_count(page, "earthquakes", lambda n: n >= 0, within_s=90, what="the layer on the globe")
    wait_for(lambda: page.evaluate(LIVE), within_s=30, what="live")
    canvas = page.locator("canvas").first.bounding_box()
    assert canvas is not None
    middle = {"x": canvas["x"] + canvas["width"] / 2 - 50, "y": canvas["y"] + canvas["height"] / 2 - 50}

    def quake() -> int:
        picture = page.screenshot(clip={**middle, "width": 100, "height": 100})  # type: ignore[typeddict-item]
        return around(ink(page, picture, FRESH, 40), 50, 50, 12)

    assert quake() == 0
    demo_installation.execute(QUAKE)
    try:
        wait_for(lambda: quake() > 50, within_s=30, what="the quake in the middle of the picture")
    finally:
        demo_installation.execute("delete from collected_data where external_key = 'drawn-by-hand'")
    wait_for(lambda: quake() == 0, within_s=30, what="nothing where it was")


def test_clear_data_empties_the_layer_on_the_globe(demo_installation: Installation, page: Page) -> None:
    """S41, S77, S62."""
    with demo_installation.client() as client:
        page.goto(f"{demo_installation.url}/earth")
        wait_count(page, "earthquakes", lambda n: n > 0, within_s=60, what="quakes before clearing")
        client.patch("/api/v1/sources/usgs_quakes", json={"enabled": False}).raise_for_status()
        try:
            done = demo_installation.wait_job(client, demo_installation.submit(client, "clear_data", "usgs_quakes"))
            assert done["status"] == "completed", done
            wait_count(page, "earthquakes", lambda n: n == 0, within_s=promised(5), what="no quakes after clearing")
        finally:
            client.patch("/api/v1/sources/usgs_quakes", json={"enabled": True}).raise_for_status()
        demo_installation.wait_job(client, demo_installation.submit(client, "collect", "usgs_quakes"))
        wait_count(page, "earthquakes", lambda n: n > 0, within_s=60, what="quakes again")


def test_the_printed_link_signs_the_browser_in_once(
    installation: Callable[..., Installation], browser: Browser
) -> None:
    """Q15: sign-in by a one-time code; without a session the buttons ask to sign in."""
    made = installation("demo")
    first = browser.new_context(locale="en-GB")
    page = first.new_page()
    page.goto(made.login_url)
    page.wait_for_function("() => location.hash === ''")
    signed_in = "async () => (await (await fetch('/api/v1/session')).json()).signed_in"
    wait_for(lambda: page.evaluate(signed_in), within_s=60, what="a signed-in session")
    second = browser.new_context(locale="en-GB")
    other = second.new_page()
    other.goto(made.login_url)
    other.wait_for_function("() => location.hash === ''")
    assert other.evaluate(signed_in) is False
    refused = other.evaluate(
        """async () => (await fetch('/api/v1/jobs', {method: 'POST', headers: {'Content-Type': 'application/json'},
        body: JSON.stringify({task_type: 'collect', source: 'usgs_quakes'})})).status"""
    )
    assert refused == 401
    first.close()
    second.close()


def test_stop_keeps_the_committed_batches_on_the_globe(
    installation: Callable[..., Installation], browser: Browser
) -> None:
    """S45–S51: `cancelling`, then `cancelled`; progress equals the rows that are there; the globe shows them."""
    made = installation(
        "demo",
        PLANETWIRE_JOBS__BATCH_ROWS="200",
        PLANETWIRE_FEEDS__CELESTRAK_GP__MAX_ROWS_PER_S="200",
    )
    context = browser.new_context(locale="en-GB", viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.goto(made.login_url)
    with made.client() as client:

        def running() -> dict[str, object] | None:
            items = client.get("/api/v1/jobs", params={"source": "celestrak_gp", "status": "running"}).json()["items"]
            return items[0] if items and items[0]["records_processed"] >= 400 else None

        job = wait_for(running, within_s=60, what="a collect under way")
        page.get_by_role("button", name="Stop").first.click()
        done = made.wait_job(client, int(job["id"]), within_s=60)
        assert done["status"] == "cancelled"
        assert done["cancel_requested_at"] is not None
        rows = made.value("select count(*) from collected_data where source = 'celestrak_gp'")
        assert 400 <= done["records_processed"] == rows < 12_000
        wait_count(page, "satellites", lambda n: n == rows, within_s=60, what="the committed satellites on the globe")
    context.close()
