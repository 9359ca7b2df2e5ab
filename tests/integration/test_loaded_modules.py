"""What a process loads it keeps, in memory and in the time of its start: only the web process loads a framework."""

from __future__ import annotations

import subprocess
import sys

import pytest

FRAMEWORK = ("fastapi", "starlette", "uvicorn")


def loaded_with(module: str) -> list[str]:
    program = f"import sys, {module}; print(*[name for name in {FRAMEWORK} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize("role", ["installation", "roles", "commands.jobs_commands", "doctor"])
def test_no_other_process_loads_the_web_framework(role: str) -> None:
    assert loaded_with(f"planetwire.supervise.{role}") == []


def test_the_web_process_does() -> None:
    assert loaded_with("planetwire.supervise.web_role") == list(FRAMEWORK)
