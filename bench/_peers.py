"""The neighbours, each in its own process and environment (`make bench-peers`)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PYTHON = HERE.parent / ".venv-bench" / "bin" / "python"
PEERS = ("procrastinate", "pgqueuer")
IN_NODE = "graphile"
TIMEOUT_S = 150


def ask(peer: str, what: str, dsn: str, **numbers: int) -> Any:
    """The JSON on the last line of `_peer_<peer>.py` or `peers/<peer>.mjs`."""
    if not PYTHON.exists() or not (HERE / "peers" / "node_modules").exists():
        sys.exit("the peers are not installed: make bench-peers")
    program = ("node", HERE / "peers" / f"{peer}.mjs") if peer == IN_NODE else (PYTHON, HERE / f"_peer_{peer}.py")
    done = subprocess.run(
        [*program, what, dsn, json.dumps(numbers)],
        stdout=subprocess.PIPE,
        timeout=TIMEOUT_S,
        check=True,
        text=True,
    )
    return json.loads(done.stdout.splitlines()[-1])
