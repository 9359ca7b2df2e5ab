"""A new dataset of each built-in kind, made as CONTRIBUTING.md says and seen on the globe of one installation."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from fix_installation import Installation, an_installation, wait_for
from pixels import changed

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parents[2]
STATIC = "src/planetwire/web/static"
MADE = {"volcanoes": "point", "sea_cables": "line", "fire_zones": "area"}
COUNT = "layer => window.__planetwire?.earth?.count(layer) ?? -1"
SHIPPED = ("CELESTRAK_GP", "USGS_QUAKES", "AWC_METAR")


def run(house: Path, *command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(house / "src")}
    done = subprocess.run(command, cwd=house, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def fill_in(house: Path, files: list[str]) -> None:
    """What its author knows."""
    for file in files:
        if file.endswith(".py"):
            place = house / file
            place.write_text(place.read_text(encoding="utf-8").replace("…", "known"), encoding="utf-8")


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository, with the page as it was built, and three datasets made in it by the recipe."""
    made = tmp_path_factory.mktemp("house")
    made.chmod(0o755)
    for part in ("src", "scripts"):
        shutil.copytree(ROOT / part, made / part, ignore=shutil.ignore_patterns("static", "__pycache__"))
    (made / STATIC).symlink_to(ROOT / STATIC)
    shutil.copy(ROOT / "Makefile", made)
    for name, kind in MADE.items():
        written = run(made, "make", "new-dataset", f"NAME={name}", f"KIND={kind}", f"PYTHON={sys.executable}").split()
        fill_in(made, written)
    example = next(file for file in written if file.endswith("full.json"))
    assert '"rejects": []' in run(made, sys.executable, "-m", "planetwire", "parse", name, example)
    declared = ROOT / "tests/unit/test_layer_registry.py"
    run(
        made,
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        str(declared),
        "-k",
        "declaration_is_complete",
    )
    return made


@pytest.fixture(scope="module")
def running(house: Path) -> Iterator[Installation]:
    """Its demo, with the feeds of the new datasets alone, so that nothing else changes the picture."""
    off = {f"PLANETWIRE_FEEDS__{source}__ENABLED": "false" for source in SHIPPED}
    with an_installation("demo", "--only", "earth", PYTHONPATH=str(house / "src"), **off) as made:
        yield made


def picture(page: Page) -> bytes:
    """The middle of the globe, once two looks at it are the same."""
    canvas = page.locator("canvas").first.bounding_box()
    assert canvas is not None
    x, y = canvas["x"] + canvas["width"] / 2 - 200, canvas["y"] + canvas["height"] / 2 - 200

    def steady() -> bytes | None:
        looks = [page.screenshot(clip={"x": x, "y": y, "width": 400, "height": 400}) for _ in range(2)]
        return looks[0] if looks[0] == looks[1] else None

    found: bytes = wait_for(steady, within_s=60, what="a picture that stays as it is")
    return found


def test_a_new_dataset_of_each_kind_is_on_the_globe_and_can_be_opened(running: Installation, browser: Browser) -> None:
    """S71–S76, S58: counted, drawn by the pixels, found by search, opened by a click on what is drawn."""
    context = browser.new_context(
        viewport={"width": 1440, "height": 900}, locale="en-GB", timezone_id="UTC", reduced_motion="reduce"
    )
    page = context.new_page()
    page.goto(f"{running.url}/earth")
    for layer in MADE:
        wait_for(lambda on=layer: page.evaluate(COUNT, on) == 40, within_s=90, what=f"40 {layer} on the globe")
    wait_for(lambda: page.evaluate("window.__planetwire.earth.ready"), within_s=60, what="the map")

    whole = picture(page)
    for layer in MADE:
        switch = page.locator(f"[data-layer={layer}] [role=switch]")
        switch.click()
        less = picture(page)
        assert changed(page, whole, less) > 200, f"{layer} was not drawn"
        whole = less
    for layer in MADE:
        page.locator(f"[data-layer={layer}] [role=switch]").click()

    canvas = page.locator("canvas").first.bounding_box()
    assert canvas is not None
    for layer, title in (("sea_cables", "Sea cables 3"), ("fire_zones", "Fire zones 3")):
        page.keyboard.press("/")
        page.keyboard.type(title)
        page.get_by_role("option", name=title).first.click()
        card = page.locator(f"section.card[data-feature='{layer}:3']")
        card.wait_for()
        page.keyboard.press("Escape")
        card.wait_for(state="detached")
        page.mouse.click(canvas["x"] + canvas["width"] / 2, canvas["y"] + canvas["height"] / 2)
        card.wait_for()
        page.keyboard.press("Escape")
    context.close()
