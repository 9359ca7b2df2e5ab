"""Limits live connections, in total and per address."""

from __future__ import annotations

from collections import Counter

from planetwire.errors import BackendError


class TooManyConnections(BackendError):
    """The cap is reached; try again later."""

    code = "too_many_connections"


class Slot:
    """One counted connection; `release` gives it back, once."""

    __slots__ = ("_address", "_limits")

    def __init__(self, limits: ConnectionLimits, address: str) -> None:
        self._limits: ConnectionLimits | None = limits
        self._address = address

    def release(self) -> None:
        """Idempotent."""
        limits, self._limits = self._limits, None
        if limits is not None:
            limits._give_back(self._address)


class ConnectionLimits:
    """Counts live connections. Both transports share it: the cap is one of the process."""

    def __init__(self, *, total: int, per_address: int) -> None:
        self.total = total
        self.per_address = per_address
        self.refused = 0
        self._open: Counter[str] = Counter()
        self._count = 0

    @property
    def connections(self) -> int:
        """Live connections now."""
        return self._count

    def take(self, address: str) -> Slot:
        """Count one more. Raises TooManyConnections."""
        if self._count >= self.total or self._open[address] >= self.per_address:
            self.refused += 1
            self._forget_if_none(address)
            raise TooManyConnections("too many live connections; try again in a moment")
        self._count += 1
        self._open[address] += 1
        return Slot(self, address)

    def _give_back(self, address: str) -> None:
        self._count -= 1
        self._open[address] -= 1
        self._forget_if_none(address)

    def _forget_if_none(self, address: str) -> None:
        if not self._open[address]:
            del self._open[address]
