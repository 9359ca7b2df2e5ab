"""The cost of an idle installation: CPU time of the web process, with the relay, over ten seconds.

Also of the worker and PostgreSQL, with background processes. CPU time, not wall time: a busy machine adds little.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from _running import NO_FEEDS, line, running

SETTLE_S, OVER_S = 8.0, 10.0
GOAL = 1.0
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """User and system time so far, without children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S


def family(pid: int) -> list[int]:
    """The process and its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *map(int, children)]


def main() -> None:
    with running("up", "--only", "earth", **NO_FEEDS) as made:
        pids = {role: family(pid) if role == "postgres" else [pid] for role, pid in made.children().items()}
        time.sleep(SETTLE_S)
        before = {role: sum(map(cpu_s, group)) for role, group in pids.items()}
        began = time.perf_counter()
        time.sleep(OVER_S)
        took = time.perf_counter() - began
        used = {role: (sum(map(cpu_s, group)) - before[role]) / took * 100 for role, group in pids.items()}
    detail = ", ".join(f"{role} {share:.2f} %" for role, share in used.items())
    sys.exit(0 if line("idle web process, % of a core", used["web"], GOAL, detail) else 1)


if __name__ == "__main__":
    main()
