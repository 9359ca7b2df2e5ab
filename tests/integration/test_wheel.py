"""The wheel carries the built front end: installing it needs no Node, and the page it serves is whole."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STATIC = "planetwire/web/static/"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    if not (ROOT / "src" / STATIC / "index.html").exists():
        if os.environ.get("CI"):
            pytest.fail("the front end is not built; in CI that is a failure")
        pytest.skip("the front end is not built")
    out = tmp_path_factory.mktemp("wheel")
    built = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--outdir", out, ROOT], capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stdout[-2000:] + built.stderr[-2000:]
    [file] = out.glob("*.whl")
    with zipfile.ZipFile(file) as opened:
        yield opened


def test_every_file_that_the_page_names_is_inside(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    page = wheel.read(f"{STATIC}index.html").decode()
    named = re.findall(r'(?:src|href)="/([^"]+)"', page)
    assert len(named) >= 3
    assert {f"{STATIC}{name}" for name in named} <= names
    scripts = [name for name in names if name.startswith(f"{STATIC}assets/") and name.endswith(".js")]
    assert any("Earth" in name for name in scripts) and any("Terminal" in name for name in scripts)


def test_sql_schema_and_samples_travel_too(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    for file in (ROOT / "src" / "planetwire").rglob("*"):
        if file.suffix in {".sql", ".csv", ".json", ".geojson"} and "static" not in file.parts:
            assert file.relative_to(ROOT / "src").as_posix() in names


def test_no_test_and_no_source_of_the_front_end_is_inside(wheel: zipfile.ZipFile) -> None:
    assert not [name for name in wheel.namelist() if name.endswith((".ts", ".tsx")) or "/tests/" in name]
