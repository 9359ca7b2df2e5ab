"""`make release`: wheel, sdist, notes, bill of materials and checksums of the checked-out version, into dist/.

Refuses a release that is not reproducible from the history: uncommitted changes, a version without a section in the
changelog, a tag of another version. Times in the archives are those of the commit.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from bill_of_materials import bill

ROOT = Path(__file__).resolve().parent.parent
NAME = "planetwire"


class Refused(Exception):
    """Why this tree cannot be released."""


def git(tree: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=tree, capture_output=True, text=True, check=True).stdout.strip()


def version_of(tree: Path) -> str:
    """The package's version; the page's must be equal."""
    text = (tree / "src" / NAME / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    if found is None:
        raise Refused(f"src/{NAME}/__init__.py names no version")
    page = json.loads((tree / "frontend" / "package.json").read_bytes())["version"]
    if page != found[1]:
        raise Refused(f"the package is {found[1]}, frontend/package.json says {page}")
    return found[1]


def notes_of(tree: Path, version: str) -> str:
    """The changelog's section `## <version>`, with anything after the version on its line."""
    text = (tree / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(version)}(?: [^\n]*)?\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if found is None or not found[1].strip():
        raise Refused(f"CHANGELOG.md has no section “## {version}”, or an empty one")
    return found[0].strip() + "\n"


def check_tree(tree: Path, version: str) -> None:
    """Raises Refused for uncommitted changes, or a tag of another version."""
    if changed := git(tree, "status", "--porcelain"):
        raise Refused(f"the tree has changes that are not committed:\n{changed}")
    tags = [tag for tag in git(tree, "tag", "--points-at", "HEAD").splitlines() if re.match(r"v\d", tag)]
    if tags and tags != [f"v{version}"]:
        raise Refused(f"the version is {version}, and this commit's tag is {', '.join(tags)}")
    if not tags and git(tree, "tag", "--list", f"v{version}"):
        raise Refused(f"v{version} is the tag of another commit")


def build(tree: Path, out: Path, at: datetime) -> None:
    """Build the sdist, and the wheel from it, which proves that the sdist is complete."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(int(at.timestamp()))}
    subprocess.run(
        [sys.executable, "-m", "build", "--outdir", out, tree], check=True, env=environment, stdout=sys.stderr
    )


def checksums(out: Path) -> str:
    """In the format of `sha256sum --check`."""
    files = sorted(file for file in out.iterdir() if file.is_file())
    return "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files)


def release(tree: Path, out: Path) -> list[Path]:
    """The files of the release. Raises Refused, before anything is written."""
    version = version_of(tree)
    notes = notes_of(tree, version)
    check_tree(tree, version)
    commit = git(tree, "rev-parse", "HEAD")
    at = datetime.fromtimestamp(int(git(tree, "show", "--no-patch", "--format=%ct", "HEAD")), UTC)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    build(tree, out, at)
    (out / f"{NAME}-{version}.md").write_text(notes, encoding="utf-8")
    (out / f"{NAME}-{version}.cdx.json").write_text(bill(tree, NAME, version, commit, at), encoding="utf-8")
    (out / "SHA256SUMS").write_text(checksums(out), encoding="utf-8")
    return sorted(out.iterdir())


def main() -> int:
    try:
        files = release(ROOT, ROOT / "dist")
    except Refused as refused:
        print(f"no release: {refused}", file=sys.stderr)
        return 1
    for file in files:
        print(f"{file.relative_to(ROOT)}  {file.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
