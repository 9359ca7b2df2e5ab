"""Search and the object card in a real browser: from a key to a point on the globe, kept true by events."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from fix_browser import PHONE
from fix_installation import NO_FEEDS, Installation, an_installation, wait_for

pytestmark = pytest.mark.browser

QUAKE = """insert into collected_data (source, external_key, kind, title, data, lat, lon, observed_at)
values ('usgs_quakes', '{key}', 'earthquake', '{title}',
    '{{"mag": {mag}, "mag_type": "mww", "depth_km": 10.0}}', 38.0, 142.0, now() - interval '2 hours')"""
OBJECT = """insert into earth_interactables (id, layer, source, fact_key, kind, title, subtitle, lat, lon, severity)
select 'earthquakes:' || source || ':' || external_key, 'earthquakes', source, external_key, kind, title,
    'M ' || (data->>'mag'), lat, lon, (data->>'mag')::float8
from collected_data where external_key = '{key}'
on conflict (id) do nothing"""  # a worker may have derived it already
HELD = "layer => window.__planetwire?.earth?.held(layer) ?? -1"


@pytest.fixture(scope="module")
def still() -> Iterator[Installation]:
    """Without feeds: what is there is what the test wrote."""
    with an_installation("up", "--only", "earth", **NO_FEEDS) as made:
        for key, title, mag in (("us1", "10 km SSW of Honshu, Japan", 4.5), ("us2", "off the coast of Honshu", 7.1)):
            made.execute(QUAKE.format(key=key, title=title, mag=mag))
            made.execute(OBJECT.format(key=key))
        yield made


def results(page: Page) -> Locator:
    return page.locator(".search").get_by_role("option")


def ready(page: Page, made: Installation) -> None:
    page.goto(f"{made.url}/earth")
    wait_for(lambda: page.evaluate(HELD, "earthquakes") >= 2, within_s=60, what="the quakes on the page")


def test_the_keyboard_alone_finds_an_object_and_opens_its_card(still: Installation, page: Page) -> None:
    ready(page, still)
    page.keyboard.press("/")
    box = page.get_by_role("combobox", name="Search for an object")
    expect(box).to_be_focused()
    page.keyboard.type("honshu")
    options = results(page)
    expect(options).to_have_count(2)
    expect(options.first).to_contain_text("off the coast of Honshu")
    page.keyboard.press("ArrowDown")
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    card = page.get_by_role("region", name="Selected object")
    expect(card).to_contain_text("10 km SSW of Honshu, Japan")
    expect(card).to_contain_text("4.5 mww")
    expect(card).to_contain_text("10 km")
    expect(card).to_contain_text("Collected")
    expect(card).to_contain_text("usgs_quakes")
    card.get_by_text("Where this comes from").click()
    expect(card).to_contain_text("U.S. Geological Survey")
    page.keyboard.press("Escape")
    expect(card).to_have_count(0)


def test_an_open_card_follows_sql_and_closes_with_its_fact(still: Installation, page: Page) -> None:
    """S79, S80: a derived row edited, then the fact, then the fact deleted; without a reload of the page."""
    still.execute(QUAKE.format(key="us9", title="near Crete", mag=5.0))
    still.execute(OBJECT.format(key="us9"))
    ready(page, still)
    page.keyboard.press("/")
    page.keyboard.type("crete")
    page.keyboard.press("Enter")  # before the answer: the best of it is meant
    card = page.get_by_role("region", name="Selected object")
    expect(card).to_contain_text("near Crete")
    expect(card).to_contain_text("38.00° N 142.00° E")
    still.execute(
        "insert into resolved_locations (source, fact_key, method, lat, lon)"
        " values ('usgs_quakes', 'us9', 'manual', 35.25, 25.5)"
    )
    expect(card).to_contain_text("35.25° N 25.50° E")
    still.execute(
        "update collected_data set data = data || '{\"mag\": 6.2}', title = 'in Crete' where external_key = 'us9'"
    )
    expect(card).to_contain_text("6.2 mww")
    expect(card.get_by_role("heading")).to_have_text("in Crete")
    page.watched.expected = ("404",)  # type: ignore[attr-defined]  # the browser notes how the card learns that it is gone
    still.execute("delete from collected_data where external_key = 'us9'")
    expect(card).to_have_count(0)
    expect(page.get_by_text("no longer there")).to_be_visible()


def test_a_fact_with_a_name_alone_is_put_on_the_map_and_its_card_says_how(still: Installation, page: Page) -> None:
    """S22, S80: typed into psql, looked up by a worker; the list of towns is named, as its licence wants."""
    still.execute(
        "insert into collected_data (source, external_key, kind, title, data, observed_at) values"
        " ('usgs_quakes', 'us7', 'earthquake', 'a cellar', '{\"mag\": 3.1, \"place\": \"Paris\"}', now())"
    )
    looked_up = "select exists (select from resolved_locations where fact_key = 'us7')"
    wait_for(lambda: still.value(looked_up), within_s=60, what="a place for the fact")
    ready(page, still)
    card = page.get_by_role("region", name="Selected object")
    page.keyboard.press("/")
    page.keyboard.type("cellar")
    page.keyboard.press("Enter")
    expect(card).to_contain_text("48.85° N 2.35° E")
    expect(card).to_contain_text("by its name: GeoNames, CC BY 4.0 · ± 17 km")
    card.get_by_text("Where this comes from").click()
    expect(card).to_contain_text("Public domain; GeoNames: CC BY 4.0")
    still.execute(
        "update resolved_locations set method = 'manual', lat = 35.25, precision_m = null where fact_key = 'us7'"
    )
    expect(card).to_contain_text("35.25° N 2.35° E")
    expect(card).to_contain_text("by hand")
    still.execute("delete from collected_data where external_key = 'us7'")


def test_a_result_of_a_hidden_layer_shows_it_again(still: Installation, page: Page) -> None:
    ready(page, still)
    switch = page.get_by_role("switch", name="Show Earthquakes")
    switch.click()
    expect(switch).to_have_attribute("aria-checked", "false")
    page.get_by_role("combobox", name="Search for an object").fill("us2")
    results(page).first.click()
    expect(switch).to_have_attribute("aria-checked", "true")
    expect(page.get_by_role("region", name="Selected object")).to_contain_text("off the coast of Honshu")


def test_nothing_found_is_said_and_the_layer_behind_search_is_not_listed(still: Installation, page: Page) -> None:
    ready(page, still)
    page.get_by_role("combobox", name="Search for an object").fill("zzzz")
    expect(page.locator(".search__note")).to_have_text("Nothing begins like that.")
    page.keyboard.press("Escape")
    expect(page.locator(".search__answer")).to_have_count(0)
    names = page.locator("[data-layer]").evaluate_all("all => all.map((one) => one.dataset.layer)")
    assert {"satellites", "earthquakes"} <= set(names)
    assert "interactables" not in names


def test_on_a_phone_the_box_spans_the_width_and_the_card_opens_below(still: Installation, browser: Browser) -> None:
    context = browser.new_context(viewport=PHONE, locale="zh-CN", has_touch=True)  # type: ignore[arg-type]
    page = context.new_page()
    ready(page, still)
    box = page.get_by_role("combobox", name="搜索对象")
    place = box.bounding_box()
    assert place is not None and place["width"] > 340 and place["x"] >= 0
    box.fill("honshu")
    results(page).first.tap()
    card = page.get_by_role("region", name="选中的对象")
    expect(card).to_contain_text("7.1")
    shape = card.bounding_box()
    assert shape is not None and shape["x"] == 0 and shape["width"] == PHONE["width"]
    context.close()


def test_a_satellite_is_found_by_number_and_its_point_is_flown_to(demo_installation: Installation, page: Page) -> None:
    page.goto(f"{demo_installation.url}/earth")
    wait_for(lambda: page.evaluate(HELD, "satellites") >= 12_000, within_s=90, what="12,000 satellites on the page")
    page.keyboard.press("/")
    page.keyboard.type("25544")
    page.keyboard.press("Enter")
    card = page.get_by_role("region", name="Selected object")
    expect(card).to_contain_text("25544")
    expect(card).to_contain_text("LEO")
    expect(card).to_contain_text("km")
