"""A run started by `make test &`, by a service or in another country is the same run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
TOLD = """
import json, os, signal, sys, time
import inherited
inherited.put_right()
child = [sys.executable, "-c", "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"]
import subprocess
said = subprocess.run(child, capture_output=True, text=True, check=True).stdout.strip()
os.write(int(sys.argv[1]), json.dumps({
    "sigint": said, "zone": time.tzname[0], "stdin": os.fstat(0).st_rdev == os.stat(os.devnull).st_rdev,
    "settings": sorted(name for name in os.environ if name.startswith(("PLANETWIRE_", "POLYWEATHER_"))),
    "umask": os.umask(0), "blocked": len(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
}).encode())
"""


def spoil() -> None:
    """In the child, before it becomes Python: what a careless parent leaves behind."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGCHLD))
    os.umask(0o777)
    os.close(0)


@pytest.mark.skipif(sys.platform != "linux", reason="the descriptors of a child are listed in /proc")
def test_what_a_run_inherits_is_put_right_for_it_and_its_children() -> None:
    reading, writing = os.pipe()
    environment = {**os.environ, "TZ": "Asia/Kathmandu", "PLANETWIRE_PORT": "tcp://x", "POLYWEATHER_DB_PATH": "/x"}
    environment |= {"PLANETWIRE_LONG_SEED": "7", "PYTHONPATH": str(TESTS), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", TOLD, str(writing)], env=environment, preexec_fn=spoil, pass_fds=(writing,),
        timeout=60, check=False, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    os.close(writing)
    assert json.loads(os.read(reading, 10_000)) == {
        "sigint": "True",
        "zone": "UTC",
        "stdin": True,
        "settings": ["PLANETWIRE_LONG_SEED"],
        "umask": 0o022,
        "blocked": 0,
    }
    os.close(reading)
