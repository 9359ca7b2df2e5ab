"""A machine without a proxy or a browser says so in one line; in CI the same run is red."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from missing import PACKAGES, said_once

TESTS = Path(__file__).resolve().parents[1]
WANTS = """
import pytest
import missing

@pytest.mark.parametrize("name", ["nginx", "nginx", "pgbouncer"])
def test_needs(name):
    missing.PATH = ""
    missing.program(name)

def test_needs_nothing():
    pass
"""


def test_what_is_missing_is_said_once_with_how_to_get_it() -> None:
    reasons = [f"Skipped: not installed: {name} (apt-get install x)" for name in ("nginx", "caddy", "nginx")]
    assert said_once(reasons) == "skipped for want of caddy, nginx: apt-get install caddy nginx-light"
    assert said_once(["Skipped: the parent-death signal is Linux's"]) is None


def test_what_ci_installs_is_what_the_tests_name() -> None:
    script = (TESTS.parent / ".ci" / "run").read_text(encoding="utf-8")
    assert all(package in script for package in PACKAGES.values())


@pytest.mark.parametrize(("ci", "code"), [("", 0), ("true", 1)], ids=["at home", "in CI"])
def test_a_run_without_a_program_is_green_at_home_and_red_in_ci(ci: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "test_wants.py").write_text(WANTS, encoding="utf-8")
    environment = {**os.environ, "CI": ci, "PYTHONPATH": str(TESTS), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "fix_missing", "-p", "no:cacheprovider", tmp_path],
        env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stdout
    once = done.stdout.count("skipped for want of nginx, pgbouncer: apt-get install nginx-light pgbouncer")
    assert once == (0 if ci else 1)
