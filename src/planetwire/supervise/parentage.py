"""Lets the kernel end a child whenever its parent ends."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable

PR_SET_PDEATHSIG = 1
ORPHANED = 96  # exit status of a child whose parent died between fork and exec


def ends_with_parent(number: int) -> Callable[[], None]:
    """Runs in the child between fork and exec: its own process group, and signal `number` at the parent's death.

    The signal is tied to the thread that forks: call from the main thread. Linux only.
    """
    libc = ctypes.CDLL(None)
    parent = os.getpid()

    def before_exec() -> None:
        os.setpgid(0, 0)  # a terminal's Ctrl-C goes to the parent alone
        libc.prctl(PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:
            os._exit(ORPHANED)

    return before_exec
