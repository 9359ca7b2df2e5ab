"""Bytes of real publishers, from the wire to the pixel: collected by a running installation, seen in a browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

import pytest
from playwright.sync_api import Page

from fix_installation import Installation, wait_for
from planetwire.demo.server import FeedServer

pytestmark = pytest.mark.browser

ELEMENTS = files("gpconf") / "corpus/derived/alpha5-tle/alpha5-A-last-30-days-snapshot.tle"
METARS = Path(__file__).parent.parent / "fixtures" / "metar" / "worldwide.txt"
GP_PATH, METAR_PATH = "/NORAD/elements/gp.php", "/api/data/metar"
DRAWN = """() => {
    const earth = window.__planetwire?.earth;
    return earth ? ["held", "count", "missing"].map((name) => earth[name]("satellites")) : [];
}"""
JEDDAH_C = 39.0  # OEJN in the recording


def reported_now(text: str) -> str:
    """The recording's reports with today's day and hour: older ones are history that no chart of today shows."""
    return re.sub(r"\b01\d{4}Z\b", f"{datetime.now(UTC):%d%H%M}Z", text)


def test_real_elements_and_reports_reach_globe_and_chart(
    installation: Callable[..., Installation],
    start_feed_server: Callable[..., FeedServer],
    page: Page,
) -> None:
    """256 objects of the new six-digit catalogue on the globe; one airport's real report in its city's chart."""
    server = start_feed_server(at=None, rate=1.0)
    server.set_body(GP_PATH, ELEMENTS.read_bytes(), "text/plain")
    server.set_body(METAR_PATH, reported_now(METARS.read_text()).encode(), "text/plain")
    made = installation(
        "up",
        PLANETWIRE_FEEDS__CELESTRAK_GP__URL=f"{server.url}{GP_PATH}?GROUP=active&FORMAT=json",
        PLANETWIRE_FEEDS__AWC_METAR__URL=f"{server.url}{METAR_PATH}",
        PLANETWIRE_FEEDS__USGS_QUAKES__ENABLED="false",
    )
    page.goto(f"{made.url}/earth")
    held, count, missing = wait_for(
        lambda: (found := page.evaluate(DRAWN)) and found[0] == 256 and found[1] > 0 and found,
        within_s=60,
        what="256 satellites held, and drawn",
    )
    # Elements age: what SGP4 calls decayed by now is counted, not drawn.
    assert (held, count + missing) == (256, 256)
    with made.client() as client:
        body = client.get("/api/v1/visualization/satellites").json()
        assert body["count"] == 256
        assert min(int(feature["data"]["NORAD_CAT_ID"]) for feature in body["features"]) >= 100_000
        job = client.get("/api/v1/jobs", params={"source": "celestrak_gp"}).json()["items"][-1]
        assert (job["status"], job["records_processed"]) == ("completed", 256)
        detail = wait_for(
            lambda: (found := client.get("/api/city/jeddah/detail").json())["airport_primary"] and found,
            within_s=60,
            what="the report of Jeddah",
        )
        assert detail["airport_primary"]["temp"] == JEDDAH_C
    page.evaluate("() => localStorage.clear()")
    page.goto(f"{made.url}/terminal")
    page.locator('tr[data-city="jeddah"] button').click()
    values = "() => (window.__planetwire?.terminal?.values('jeddah', 'metar') ?? []).map((point) => point[1])"
    charted = wait_for(lambda: page.evaluate(values), within_s=60, what="the report in the chart")
    assert charted == [JEDDAH_C]
