"""Seconds that a line promises, on a machine that others keep busy too."""

from __future__ import annotations

import time

IDLE_TO = 1.3  # a core to ourselves, as far as one can tell
HOPS = 2.0  # what is waited for passes several processes, each of which waits for its turn


def promised(seconds: float) -> float:
    """As promised where the machine is idle; where others take their share of it, as much longer as a small piece of
    work takes now, for each of the processes on the way. Speed itself is measured in bench/.
    """
    slower = _slower()
    return seconds if slower < IDLE_TO else seconds * slower * HOPS


def _slower() -> float:
    """How much longer work takes than it has of a core, with the waiting for one: 1 on an idle machine."""
    wall = cpu = 0.0
    for _ in range(5):
        time.sleep(0.002)
        began, had = time.monotonic(), time.thread_time()
        while time.thread_time() < had + 0.01:
            sum(range(1_000))
        wall, cpu = wall + time.monotonic() - began, cpu + time.thread_time() - had
    return wall / cpu
