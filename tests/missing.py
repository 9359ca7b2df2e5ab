"""Programs that a test needs: if one is missing, the test is skipped locally and fails in CI."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NoReturn

import pytest

STATIC = Path(__file__).resolve().parent.parent / "src" / "planetwire" / "web" / "static"
PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin"  # Debian's servers are not on every user's path
ABSENT = "not installed: "  # prefix of a reason; `conftest.py` collects them into one line
PACKAGES = {
    "caddy": "caddy",
    "chromium": "chromium",
    "libfaketime": "faketime",
    "nginx": "nginx-light",
    "openssl": "openssl",
    "pgbouncer": "pgbouncer",
}


def program(name: str, *others: str) -> str:
    """The path of the first name that is found. Skips, or fails in CI, if there is none."""
    found = next(filter(None, (shutil.which(known, path=PATH) for known in (name, *others))), None)
    return found or absent(name)


def faketime_library() -> str:
    """The library that shifts a process's clock. Skips, or fails in CI, if it is missing."""
    found = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
    return str(found) if found else absent("libfaketime")


def absent(name: str) -> NoReturn:
    """Skip; in CI fail."""
    without(f"{ABSENT}{name} (apt-get install {PACKAGES[name]})")


def built_page() -> Path:
    """The folder of the built front end. Skips, or fails in CI, if it is not built."""
    if not (STATIC / "index.html").exists():
        without("the front end is not built")
    return STATIC


def without(reason: str) -> NoReturn:
    """Skip; in CI fail."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def said_once(reasons: list[str]) -> str | None:
    """One line for all of them, or None if nothing is missing."""
    names = sorted({reason.partition(ABSENT)[2].partition(" ")[0] for reason in reasons if ABSENT in reason})
    if not names:
        return None
    packages = " ".join(sorted({PACKAGES[name] for name in names if name in PACKAGES}))
    return f"skipped for want of {', '.join(names)}: apt-get install {packages}"
