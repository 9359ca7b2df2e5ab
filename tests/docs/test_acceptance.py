"""The commands that acceptance names, as they are typed: each is there, runs the files that it is for, and is run."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = json.loads((ROOT / "frontend" / "package.json").read_text(encoding="utf-8"))["scripts"]
BUSINESS = {"ssePatchArchitecture.test.ts", "temperatureDefaultVisibilityPolicy.test.ts"}
THREE = ("test_realtime_patch_schema.py", "test_realtime_event_store.py", "test_sse_replay.py")


@pytest.fixture(scope="module")
def commands() -> list[str]:
    """What `make test` would run, whatever is up to date."""
    alone = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    told = subprocess.run(
        ("make", "-nB", "test"), cwd=ROOT, env=alone, capture_output=True, text=True, timeout=60, check=True
    )
    return told.stdout.splitlines()


@pytest.mark.parametrize(
    ("script", "program"), [("test:business", "vitest run "), ("typecheck", "tsc"), ("build", "vite build")]
)
def test_make_test_runs_each_command_of_the_front_end(commands: list[str], script: str, program: str) -> None:
    """S206: under the name that it has in the manual."""
    assert SCRIPTS[script].startswith(program)
    assert [line for line in commands if f"npm run --silent {script}" in line], commands


def test_the_business_command_runs_the_two_files_that_are_named() -> None:
    """S203-S206."""
    folder = ROOT / "frontend" / SCRIPTS["test:business"].removeprefix("vitest run ")
    assert {file.name for file in folder.glob("*.test.ts")} >= BUSINESS


def test_make_test_runs_the_three_files_of_the_back_end(commands: list[str]) -> None:
    """S195-S202, S206: they lie where every test is taken from, and none of them is left to the browser's turn."""
    assert [line for line in commands if '-m pytest -q -m "not browser"' in line and "tests/" not in line], commands
    for name in THREE:
        text = (ROOT / "tests" / name).read_text(encoding="utf-8")
        assert "def test_" in text and "mark.browser" not in text
