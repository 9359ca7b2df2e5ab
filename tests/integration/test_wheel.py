"""The wheel carries the built front end: installing it needs no Node, and the page it serves is whole."""

from __future__ import annotations

import gzip
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from fix_installation import Installation, wait_for
from installed_wheel import build_wheel, install_wheel
from missing import built_page

ROOT = Path(__file__).resolve().parents[2]
STATIC = "planetwire/web/static/"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    built_page()
    with zipfile.ZipFile(build_wheel(ROOT, tmp_path_factory.mktemp("wheel"))) as opened:
        yield opened


def test_every_file_that_the_page_names_is_inside(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    page = wheel.read(f"{STATIC}index.html").decode()
    named = re.findall(r'(?:src|href)="/([^"]+)"', page)
    assert len(named) >= 3
    assert {f"{STATIC}{name}" for name in named} <= names
    scripts = [name for name in names if name.startswith(f"{STATIC}assets/") and name.endswith(".js")]
    assert any("Earth" in name for name in scripts) and any("Terminal" in name for name in scripts)


def test_what_the_page_loads_is_inside_in_each_coding_too(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    loaded = [name for name in names if name.startswith(STATIC) and name.endswith((".js", ".css", ".json"))]
    assert len(loaded) > 20
    for name in loaded:
        assert {f"{name}.br", f"{name}.gz"} <= names
        assert gzip.decompress(wheel.read(f"{name}.gz")) == wheel.read(name)


def test_sql_schema_and_samples_travel_too(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    for file in (ROOT / "src" / "planetwire").rglob("*"):
        if file.suffix in {".sql", ".csv", ".json", ".geojson"} and "static" not in file.parts:
            assert file.relative_to(ROOT / "src").as_posix() in names


def test_no_test_and_no_source_of_the_front_end_is_inside(wheel: zipfile.ZipFile) -> None:
    assert not [name for name in wheel.namelist() if name.endswith((".ts", ".tsx")) or "/tests/" in name]


@pytest.fixture
def installed(wheel: zipfile.ZipFile, tmp_path: Path) -> Path:
    """The command of a new environment that holds the wheel; only what it depends on is borrowed from this one."""
    return install_wheel(Path(str(wheel.filename)), tmp_path / "venv").with_name("planetwire")


@pytest.fixture
def without_programs(data_dir: Path) -> dict[str, str]:
    """An environment whose path leads nowhere: no Node, no PostgreSQL of the machine's."""
    empty = data_dir.parent / "nothing"
    empty.mkdir()
    return {"PLANETWIRE_FEEDS__AWC_METAR__ENABLED": "false", "PATH": str(empty)}


def assert_whole(http: httpx.Client, path: str) -> None:
    """The page, and every file that it names."""
    page = http.get(path)
    assert (page.status_code, page.headers["content-type"].partition(";")[0]) == (200, "text/html")
    named = re.findall(r'(?:src|href)="(/[^"]+)"', page.text)
    assert len(named) >= 3
    for name in named:
        answer = http.get(name, headers={"Accept-Encoding": "gzip"})
        assert (answer.status_code, answer.headers.get("content-encoding")) == (200, "gzip")


def test_the_installed_wheel_starts_without_node_and_serves_the_whole_page(
    installed: Path, data_dir: Path, without_programs: dict[str, str]
) -> None:
    """S206: nothing of the source tree, and no program on the path, is needed to see the page."""
    made = Installation(data_dir, ("up", "--only", "terminal"), without_programs, program=(str(installed),)).start()
    try:
        with httpx.Client(base_url=made.url, trust_env=False) as http:
            assert_whole(http, "/terminal")
            assert len(http.get("/api/scan/terminal").json()["rows"]) >= 50
    finally:
        assert made.stop() == 0


def test_the_installed_wheel_shows_the_demo_and_a_delete_empties_it(
    installed: Path, data_dir: Path, without_programs: dict[str, str]
) -> None:
    """S206: as the README says: install the wheel, `planetwire demo`; its PostgreSQL and its feeds are in it."""
    made = Installation(data_dir, ("demo",), without_programs, program=(str(installed),)).start()
    try:
        with httpx.Client(base_url=made.url, trust_env=False, timeout=60) as http:

            def satellites() -> int:
                return int(http.get("/api/v1/visualization/satellites").json()["count"])

            assert_whole(http, "/earth")
            wait_for(lambda: satellites() > 12_000, within_s=90, what="the demo's satellites")
            assert made.execute("DELETE FROM collected_data WHERE source = 'celestrak_gp'") != "DELETE 0"
            wait_for(lambda: satellites() == 0, within_s=30, what="an empty layer")
    finally:
        assert made.stop() == 0
