"""`make release`: what it writes, and what it refuses."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import release
from jsonschema import Draft7Validator
from referencing import Registry, Resource

from missing import built_page

ROOT = Path(__file__).resolve().parents[2]
STATIC = Path("src/planetwire/web/static")
VERSION = release.version_of(ROOT)
SCHEMAS = ("bom-1.6.SNAPSHOT.schema.json", "spdx.SNAPSHOT.schema.json", "jsf-0.82.SNAPSHOT.schema.json")
AUTHOR = ("-c", "user.name=Somebody", "-c", "user.email=somebody@localhost", "-c", "commit.gpgsign=false")


def commit(tree: Path) -> None:
    release.git(tree, "add", "--all")
    release.git(tree, *AUTHOR, "commit", "--quiet", "--message", "As it is")


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """What a release looks at before it builds, committed."""
    tree = tmp_path / "small"
    (tree / "src" / "planetwire").mkdir(parents=True)
    (tree / "frontend").mkdir()
    (tree / "src" / "planetwire" / "__init__.py").write_text('__version__ = "1.2.0"\n')
    (tree / "frontend" / "package.json").write_text('{"version": "1.2.0"}')
    (tree / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.0 – 2026-11-30\n\n- New.\n\n## 1.1.0\n\n- Old.\n")
    release.git(tmp_path, "init", "--quiet", str(tree))
    commit(tree)
    return tree


def dirty(tree: Path) -> None:
    (tree / "CHANGELOG.md").write_text("## 1.2.0\n\n- Other.\n")


def unknown_file(tree: Path) -> None:
    (tree / "src" / "planetwire" / "more.py").write_text("")


def no_section(tree: Path) -> None:
    (tree / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n\n- New.\n\n## 1.2.0.1\n\n- Near.\n")
    commit(tree)


def empty_section(tree: Path) -> None:
    (tree / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.0\n\n## 1.1.0\n\n- Old.\n")
    commit(tree)


def other_page(tree: Path) -> None:
    (tree / "frontend" / "package.json").write_text('{"version": "1.1.0"}')
    commit(tree)


def other_tag(tree: Path) -> None:
    release.git(tree, "tag", "v1.3.0")


def tag_of_another_commit(tree: Path) -> None:
    release.git(tree, "tag", "v1.2.0")
    unknown_file(tree)
    commit(tree)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (dirty, "changes that are not committed"),
        (unknown_file, "more.py"),
        (no_section, "no section “## 1.2.0”"),
        (empty_section, "or an empty one"),
        (other_page, "frontend/package.json says 1.1.0"),
        (other_tag, "tag is v1.3.0"),
        (tag_of_another_commit, "tag of another commit"),
    ],
)
def test_what_the_history_does_not_hold_is_refused_and_nothing_is_written(
    small: Path, tmp_path: Path, spoil: Callable[[Path], None], reason: str
) -> None:
    spoil(small)
    with pytest.raises(release.Refused, match=reason):
        release.release(small, tmp_path / "dist")
    assert not (tmp_path / "dist").exists()


def test_a_tagged_and_an_untagged_version_pass_with_the_section_of_the_changelog(small: Path) -> None:
    release.check_tree(small, "1.2.0")
    release.git(small, "tag", "v1.2.0")
    release.git(small, "tag", "kept-for-later")
    release.check_tree(small, "1.2.0")
    assert release.notes_of(small, "1.2.0") == "## 1.2.0 – 2026-11-30\n\n- New.\n"


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dist/ of a clone whose changelog has this version; the front end is the one that is built here."""
    tree = tmp_path_factory.mktemp("release") / "tree"
    release.git(ROOT, "clone", "--quiet", "--depth", "1", ROOT.as_uri(), str(tree))
    shutil.copytree(built_page(), tree / STATIC, copy_function=shutil.copy)
    log = tree / "CHANGELOG.md"
    log.write_text(log.read_text(encoding="utf-8").replace("## Unreleased", f"## {VERSION}", 1), encoding="utf-8")
    commit(tree)
    release.git(tree, "tag", f"v{VERSION}")
    told = subprocess.run(
        [sys.executable, "scripts/release.py"], cwd=tree, capture_output=True, text=True, check=False, timeout=300
    )
    assert told.returncode == 0, told.stderr[-3_000:]
    return tree / "dist"


def test_a_release_is_five_files_and_their_checksums_are_right(released: Path) -> None:
    stem = f"planetwire-{VERSION}"
    archives = {f"{stem}-py3-none-any.whl", f"{stem}.tar.gz"}
    assert {file.name for file in released.iterdir()} == {*archives, f"{stem}.md", f"{stem}.cdx.json", "SHA256SUMS"}
    sums = dict(reversed(line.split("  ")) for line in (released / "SHA256SUMS").read_text().splitlines())
    assert sums == {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in released.iterdir()
        if file.name != "SHA256SUMS"
    }
    assert (released / f"{stem}.md").read_text(encoding="utf-8").startswith(f"## {VERSION}\n\n- ")


def test_both_archives_hold_the_page_and_the_wheel_is_made_of_the_sdist(released: Path) -> None:
    with zipfile.ZipFile(released / f"planetwire-{VERSION}-py3-none-any.whl") as wheel:
        in_wheel = {name for name in wheel.namelist() if name.startswith("planetwire/")}
    with tarfile.open(released / f"planetwire-{VERSION}.tar.gz") as sdist:
        in_sdist = {name.partition("/src/")[2] for name in sdist.getnames()}
    assert "planetwire/web/static/index.html" in in_wheel and in_wheel <= in_sdist


@pytest.fixture
def bill(released: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((released / f"planetwire-{VERSION}.cdx.json").read_bytes())
    return loaded


def test_the_bill_of_materials_is_valid_cyclonedx(bill: dict[str, Any]) -> None:
    folder = files("cyclonedx.schema") / "_res"
    schemas = {name: json.loads((folder / name).read_text()) for name in SCHEMAS}
    named = ((f"http://cyclonedx.org/schema/{name}", Resource.from_contents(text)) for name, text in schemas.items())
    validator = Draft7Validator(schemas[SCHEMAS[0]], registry=Registry().with_resources(named))
    faults = [error.message for error in validator.iter_errors(bill)]
    assert (bill["bomFormat"], bill["specVersion"], faults) == ("CycloneDX", "1.6", [])


def test_the_bill_of_materials_has_every_locked_package_and_what_the_page_is_made_of(bill: dict[str, Any]) -> None:
    components = {one["purl"]: one for one in bill["components"]}
    lock = (ROOT / "requirements" / "run.lock").read_text(encoding="utf-8")
    locked = {line.split()[0] for line in lock.splitlines() if line[:1].isalnum()}
    assert {purl for purl in components if purl.startswith("pkg:pypi/")} == {
        "pkg:pypi/" + pinned.replace("==", "@") for pinned in locked
    }
    page = json.loads((ROOT / "frontend" / "package.json").read_bytes())
    of_page = {
        purl.removeprefix("pkg:npm/").replace("%40", "@").rpartition("@")[0] for purl in components if "npm" in purl
    }
    assert set(page["dependencies"]) <= of_page and of_page.isdisjoint(page["devDependencies"])
    assert all(one["licenses"] and one["hashes"] for purl, one in components.items() if purl.startswith("pkg:npm/"))
    needs = {one["ref"]: set(one.get("dependsOn", [])) for one in bill["dependencies"]}
    assert {purl for purl in needs["planetwire"] if "/react@" in purl or "/asyncpg@" in purl} and len(needs) > 60
    reached, open_ends = set[str](), ["planetwire"]
    while open_ends:
        for purl in needs[open_ends.pop()] - reached:
            reached.add(purl)
            open_ends.append(purl)
    assert reached == set(components), "a component that nothing needs"
