"""When writers should ring: only while the relay is idle enough to be woken by it. Pure; monotonic seconds.

A NOTIFY takes a lock that every notifying commit in the cluster waits for. Under load the relay looks by itself
many times a second, so nobody needs to ring, and nobody does.
"""

from __future__ import annotations

BUSY_ROWS = 100  # rows within a second from which the gate is shut
CALM_ROWS = 50  # … and up to which it is opened again
OPEN_S = 30.0
RENEW_BEFORE_S = 10.0
BUSY_POLL_S = (0.005, 0.02)  # a tenth of the merge window, within these


class Gate:
    """What this relay last did to the gate, and how many rows came lately."""

    def __init__(self) -> None:
        self.busy = False
        self._open_until = float("-inf")
        self._window_from = float("-inf")
        self._rows = 0

    def note(self, rows: int, now: float) -> None:
        """Rows were found."""
        if now - self._window_from >= 1.0:
            self.busy = self.busy and self._rows > CALM_ROWS
            self._window_from, self._rows = now, 0
        self._rows += rows
        self.busy = self.busy or self._rows >= BUSY_ROWS

    def wanted(self, now: float) -> float | None:
        """Seconds to open it for, 0 to shut it, None to leave it as it is."""
        if self.busy:
            return 0.0 if self._open_until > now else None
        return OPEN_S if self._open_until - now <= RENEW_BEFORE_S else None

    def moved(self, seconds: float, now: float) -> None:
        """The gate was opened for so long, or shut."""
        self._open_until = now + seconds if seconds else float("-inf")

    def poll_s(self, window_s: float, calm_s: float) -> float:
        """How soon to look again without a ring."""
        return min(max(window_s / 10, BUSY_POLL_S[0]), BUSY_POLL_S[1]) if self.busy else calm_s

    def forget(self) -> None:
        """Another relay may have moved it since."""
        self._open_until = float("-inf")
