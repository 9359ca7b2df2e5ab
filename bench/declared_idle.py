"""What 200 declared sources cost while none is due: CPU time of the web and the work process over ten seconds.

Beside it the same without them. CPU time, not wall time: a busy machine adds little.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from _running import NO_FEEDS, line, running
from idle_cpu import OVER_S, SETTLE_S, cpu_s

from declared_tools import quakes
from fix_installation import wait_for

SOURCES = 200
GOAL = 2.0
# Their runs are a year apart, so that none is due; each has its row and is looked at every second.
INSERT = """
insert into datasources (source, cron) select 'declared_' || n, '0 0 1 1 *' from generate_series(1, {count}) n;
insert into declared_sources (name, text)
select 'declared_' || n, replace($text${text}$text$, 'declared_0', 'declared_' || n) from generate_series(1, {count}) n
"""
PLANNED = "select not exists (select from datasources where cron is not null and next_run_at is null)"


def shares(pids: Mapping[str, int]) -> dict[str, float]:
    """Percent of a core that each process takes while nothing happens."""
    time.sleep(SETTLE_S)
    before = {role: cpu_s(pid) for role, pid in pids.items()}
    began = time.perf_counter()
    time.sleep(OVER_S)
    took = time.perf_counter() - began
    return {role: (cpu_s(pid) - before[role]) / took * 100 for role, pid in pids.items()}


def main() -> None:
    with running("up", "--only", "earth", **NO_FEEDS) as made:
        children = made.children()
        pids = {role: children[role] for role in ("web", "work")}
        without = shares(pids)
        made.execute(INSERT.format(count=SOURCES, text=quakes("declared_0")))
        wait_for(lambda: made.value(PLANNED), within_s=120, what="every source is planned")
        used = shares(pids)
    told = ", ".join(f"{role} {used[role]:.2f} %, without them {without[role]:.2f} %" for role in pids)
    sys.exit(0 if line("idle with 200 declared sources, % of a core", sum(used.values()), GOAL, told) else 1)


if __name__ == "__main__":
    main()
