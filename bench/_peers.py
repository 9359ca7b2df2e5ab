"""The neighbours, each in a process and an environment of its own (`make bench-peers`)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PYTHON = HERE.parent / ".venv-bench" / "bin" / "python"
PEERS = ("procrastinate", "pgqueuer")
TIMEOUT_S = 150


def ask(peer: str, what: str, dsn: str, **numbers: int) -> Any:
    """What `_peer_<peer>.py` answers: JSON on its last line."""
    if not PYTHON.exists():
        sys.exit("the peers are not installed: make bench-peers")
    done = subprocess.run(
        [PYTHON, HERE / f"_peer_{peer}.py", what, dsn, json.dumps(numbers)],
        stdout=subprocess.PIPE,
        timeout=TIMEOUT_S,
        check=True,
        text=True,
    )
    return json.loads(done.stdout.splitlines()[-1])
