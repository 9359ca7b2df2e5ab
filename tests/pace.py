"""Time limits of requirements, adjusted to the load of the machine."""

from __future__ import annotations

import time

IDLE_TO = 1.3  # an idle core, as far as measurable
HOPS = 2.0  # an awaited event passes several processes, each of which waits for CPU


def promised(seconds: float) -> float:
    """The required seconds on an idle machine; on a busy one longer, by the present slowdown of a small piece of work,
    for each process on the way. Speed itself is measured in bench/.
    """
    slower = _slower()
    return seconds if slower < IDLE_TO else seconds * slower * HOPS


def _slower() -> float:
    """The ratio of wall time to CPU time, including the wait for a core: 1 on an idle machine."""
    wall = cpu = 0.0
    for _ in range(5):
        time.sleep(0.002)
        began, had = time.monotonic(), time.thread_time()
        while time.thread_time() < had + 0.01:
            sum(range(1_000))
        wall, cpu = wall + time.monotonic() - began, cpu + time.thread_time() - had
    return wall / cpu
