"""Whoever reads only the page on plug-ins can write one: its package is built, installed beside our wheel and run."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from fix_feeds import running_feed_server
from fix_installation import NO_FEEDS, Installation, wait_for
from installed_wheel import build_wheel, install_wheel
from missing import built_page

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"((?:^[^\n]+\n)+)\n^```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NAME = re.compile(r"`([\w./]+\.(?:toml|py|json))`")
URL = "PLANETWIRE_FEEDS__LIGHTHOUSE_LIST__URL"
BROKEN = """
[build-system]
requires = ["hatchling>=1.27"]
build-backend = "hatchling.build"
[project]
name = "planetwire-lava"
version = "0.1"
[project.entry-points."planetwire.datasets"]
lava = "planetwire_lava:DATASET"
"""


def files_of_the_page() -> dict[str, str]:
    """What the page shows, by the name that stands before it."""
    found = ((NAME.findall(paragraph), text) for paragraph, text in BLOCK.findall(PAGE))
    return {names[0]: text for names, text in found if names}


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder


@dataclass(frozen=True)
class Packages:
    """An environment with our wheel and two plug-ins, one of which cannot be imported."""

    python: Path
    tree: Path

    @property
    def command(self) -> Path:
        return self.python.with_name("planetwire")

    def run(
        self, *program: str | Path, cwd: Path | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PLANETWIRE_", "PYTEST_"))}
        return subprocess.run(
            program, cwd=cwd, env=clean | environment, capture_output=True, text=True, timeout=300, check=False
        )


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Packages]:
    built_page()
    place = tmp_path_factory.mktemp("plugins")
    tree = written(place / "lighthouses", files_of_the_page())
    lava = written(place / "lava", {"pyproject.toml": BROKEN, "src/planetwire_lava/__init__.py": "import no_lava\n"})
    python = install_wheel(build_wheel(ROOT, place / "ours"), place / "venv")
    for one in (tree, lava):
        wheel = build_wheel(one, place / one.name / "dist")
        install_wheel(wheel, place / "venv")
    yield Packages(python, tree)


def test_the_page_shows_a_whole_package() -> None:
    assert len([name for name in files_of_the_page() if "examples" in name]) == 4
    assert len(files_of_the_page()) == 8


def test_the_contract_is_kept_by_the_package_of_the_page_with_pytest_alone(packages: Packages) -> None:
    """No file of our tests, and no plug-in of pytest."""
    told = packages.run(
        *(packages.python, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-W", "error"),
        cwd=packages.tree,
        PYTEST_DISABLE_PLUGIN_AUTOLOAD="1",
    )
    assert told.returncode == 0, told.stdout[-3000:] + told.stderr[-1000:]
    named = set(re.findall(r"::(test_\w+)", told.stdout))
    listed = set(re.findall(r"^\| `(test_\w+)`", PAGE, re.MULTILINE))
    assert named == listed and len(named) == 18, "the page lists the tests of the contract"
    assert "failed" not in told.stdout and "skipped" not in told.stdout


def test_a_package_that_breaks_the_contract_is_told_what_to_do(packages: Packages, tmp_path: Path) -> None:
    files = files_of_the_page()
    feed = files["src/planetwire_lighthouses/feed.py"]
    files["src/planetwire_lighthouses/feed.py"] = feed.replace("records.complete, refused_keys", "True, refused_keys")
    files["tests/conftest.py"] = 'import sys\n\nsys.path.insert(0, "src")\n'
    tree = written(tmp_path / "other", files)
    told = packages.run(
        *(packages.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "half_a_body"),
        cwd=tree,
        PYTEST_DISABLE_PLUGIN_AUTOLOAD="1",
    )
    assert told.returncode == 1
    assert "`complete` is True only when the end of the format was seen" in told.stdout


def test_the_product_runs_the_plugin_and_leaves_the_broken_one_out(packages: Packages, data_dir: Path) -> None:
    """S72."""
    body = (packages.tree / "tests" / "examples" / "lighthouse_list" / "full.json").read_bytes()
    with running_feed_server() as provider:
        provider.set_body("/lights", body)
        environment = {**NO_FEEDS, URL: f"{provider.url}/lights"}
        made = Installation(data_dir, ("up",), environment, program=(str(packages.command),)).start()
        try:
            with httpx.Client(base_url=made.url, trust_env=False, timeout=60) as http:
                path = "/api/v1/visualization/lighthouses"
                shown = wait_for(lambda: http.get(path).json()["features"], within_s=90, what="the lighthouses")
                assert {one["title"] for one in shown} == {"Old Head", "Roancarrig", "Fastnet"}
                found = http.get("/api/v1/search", params={"q": "Fastnet"}).json()
                assert "lighthouses:lighthouse_list:a3" in json.dumps(found)
            env = {**environment, "PLANETWIRE_DATA_DIR": str(data_dir)}
            told_by_commands(packages, env)
            log = made.log()
            for role in ("web", "work"):
                lines = [
                    line for line in log.splitlines() if "datasets.plugin.left_out" in line and f"role={role}" in line
                ]
                assert len(lines) == 1, f"{role}: {log[-2000:]}"
        finally:
            assert made.stop() == 0


def told_by_commands(packages: Packages, env: dict[str, str]) -> None:
    origin = {"name": "lighthouses", "package": "planetwire-lighthouses", "version": "1.0", "licence": "MIT"}
    why = "plug-in left out: lava (planetwire-lava 0.1): it cannot be imported: ModuleNotFoundError"
    for what, key, name in (("sources", "source", "lighthouse_list"), ("layers", "id", "lighthouses")):
        listed = packages.run(packages.command, what, "--json", **env)
        records = {one[key]: one["plugin"] for one in json.loads(listed.stdout)}
        assert records.pop(name) == origin
        assert set(records.values()) == {None}
        assert (why in listed.stderr) == (what == "sources")
        table = packages.run(packages.command, what, **env).stdout
        assert "plug-in lighthouses: planetwire-lighthouses 1.0, licence MIT" in table and why in table
    doctor = json.loads(packages.run(packages.command, "doctor", "--json", **env).stdout)
    [step] = [one for one in doctor if one["step"] == "plugins"]
    assert step["ok"] and [one["code"] for one in step["findings"]] == ["plugin_left_out"]
    assert "lighthouses of planetwire-lighthouses 1.0" in step["detail"]
