"""What a process loads it keeps, in memory and in the time of its start: only the web process loads a framework."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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


def test_a_plain_server_loads_no_class_of_ours_that_leans_on_uvicorn(tmp_path: Path) -> None:
    """So that it starts whatever a release of uvicorn has changed."""
    program = f"""
import asyncio, sys
from pathlib import Path
from planetwire.settings import Settings
from planetwire.supervise import web_role
from planetwire.wiring.secrets import Secrets

async def main():
    settings = Settings(data_dir=Path({str(tmp_path)!r}), halves="terminal", plain_http=PLAIN)
    async with web_role.serving.open_web(settings, None, Secrets("a", "i", b"k"), login_code=None) as web:
        made = web_role._plain_server if PLAIN else lambda settings, *rest: web_role._server(*rest)
        made(settings, web, None, asyncio.Event()).config.load()
        print("planetwire.web.http.uvicorn_seam" in sys.modules)

asyncio.run(main())
"""
    for plain in (True, False):
        asked = [sys.executable, "-c", program.replace("PLAIN", str(plain))]
        done = subprocess.run(asked, capture_output=True, text=True, check=True)
        assert done.stdout.split()[-1] == str(not plain), done.stderr
