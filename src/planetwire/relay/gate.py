"""When writers should send a NOTIFY: only while the relay is idle. Pure; monotonic seconds.

A NOTIFY takes a lock that every notifying commit in the cluster waits for. Under load the relay polls many times a
second anyway, so the gate is shut and no writer notifies.
"""

from __future__ import annotations

BUSY_ROWS = 100  # rows within a second from which the gate is shut
CALM_ROWS = 50  # … and up to which it is opened again
OPEN_S = 30.0
RENEW_BEFORE_S = 10.0
BUSY_POLL_S = (0.005, 0.02)  # a tenth of the merge window, within these


class Gate:
    """How this relay last set the gate, and the recent rate of rows."""

    def __init__(self) -> None:
        self.busy = False
        self._open_until = float("-inf")
        self._window_from = float("-inf")
        self._rows = 0

    def note(self, rows: int, now: float) -> None:
        """Count rows that were found."""
        if now - self._window_from >= 1.0:
            self.busy = self.busy and self._rows > CALM_ROWS
            self._window_from, self._rows = now, 0
        self._rows += rows
        self.busy = self.busy or self._rows >= BUSY_ROWS

    def wanted(self, now: float) -> float | None:
        """Seconds to open the gate for, 0 to shut it, None to leave it."""
        if self.busy:
            return 0.0 if self._open_until > now else None
        return OPEN_S if self._open_until - now <= RENEW_BEFORE_S else None

    def moved(self, seconds: float, now: float) -> None:
        """The gate was opened for so many seconds, or shut (0)."""
        self._open_until = now + seconds if seconds else float("-inf")

    def poll_s(self, window_s: float, calm_s: float) -> float:
        """The wait until the next poll if no wake-up arrives."""
        return min(max(window_s / 10, BUSY_POLL_S[0]), BUSY_POLL_S[1]) if self.busy else calm_s

    def forget(self) -> None:
        """Forget the gate's state: another relay may have changed it."""
        self._open_until = float("-inf")
