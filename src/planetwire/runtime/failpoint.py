"""Named points at which a crash test kills the process (SIGKILL), or suspends it until resumed.

`PLANETWIRE_FAILPOINT=name` dies at the first pass, `name:3` at the third. In production the setting is unset
and a point costs one dictionary look-up.
"""

from __future__ import annotations

import os
import signal

_armed: dict[str, int] = {}


def arm(spec: str | None) -> None:
    """Arm one point from the setting's text; None disarms all."""
    _armed.clear()
    if spec:
        name, _, count = spec.partition(":")
        _armed[name] = int(count or 1)


def failpoint(name: str) -> None:
    """Die here if armed and the count is reached."""
    if name in _armed:
        _armed[name] -= 1
        if _armed[name] <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
