"""The previous version, from the history: its tree, and an environment that runs its wheel.

`previous_version.txt` names the commit; a release writes its own there (CONTRIBUTING). In a clone without that commit
the tests are skipped locally, with the command that fetches it, and fail in CI.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import tomllib
from importlib.metadata import version
from pathlib import Path

from packaging.requirements import Requirement

from installed_wheel import build_wheel, install_wheel
from missing import built_page, without

ROOT = Path(__file__).resolve().parent.parent
STATIC = Path("src/planetwire/web/static")


def commit() -> str:
    """The commit of the version whose installations this one must upgrade."""
    return (ROOT / "tests" / "previous_version.txt").read_text(encoding="ascii").strip()


def unpack(folder: Path) -> None:
    """Extract its tree, without history, into a folder. Skips, or fails in CI, if the clone does not have it."""
    git = ["git", "-c", "safe.directory=*", "-C", ROOT]  # also reads a clone owned by another user
    packed = subprocess.run([*git, "archive", commit()], capture_output=True, check=False)
    if packed.returncode != 0:
        without(f"the previous version {commit()[:7]} is not in this clone (git fetch --unshallow origin main)")
    subprocess.run(["tar", "-x", "-C", folder], input=packed.stdout, check=True)


def python_with_it(cache: Path) -> Path:
    """The Python of an environment with its wheel; kept in `cache`, since a commit never changes.

    The page is not tested: it gets the one built here.
    """
    home = cache / commit()
    if not (home / "ready").exists():
        with tempfile.TemporaryDirectory(prefix="pw-previous-") as scratch:
            tree = Path(scratch) / "tree"
            tree.mkdir()
            unpack(tree)
            check_borrowable(tree)
            shutil.copytree(built_page(), tree / STATIC)
            shutil.rmtree(home, ignore_errors=True)
            install_wheel(build_wheel(tree, Path(scratch) / "wheel"), home)
        (home / "ready").touch()
    return home / "bin" / "python"


def check_borrowable(tree: Path) -> None:
    """It uses our dependencies; fails if a release has moved them past its constraints."""
    declared = tomllib.loads((tree / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    for requirement in map(Requirement, declared):
        if requirement.marker is None or requirement.marker.evaluate():
            assert requirement.specifier.contains(version(requirement.name)), (
                f"the previous version wants {requirement}: install its own requirements/run.lock for it ({sys.prefix})"
            )
