"""What an operator sets and sees per source, in PostgreSQL: port SourceStore."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from planetwire.errors import InputError, NotFound
from planetwire.model import Json, SourceDefaults
from planetwire.postgres import Pool, translated
from planetwire.sql import queries_beside

Q = queries_beside(__file__)

JITTER = 0.05  # share of the interval by which a run may come later
INTERVAL_MAX_S = 31 * 86_400.0


class PostgresSourceStore:
    """Port SourceStore over the sources named at the start; call `ensure` once before `list` and `due`."""

    def __init__(self, pool: Pool, known: Sequence[SourceDefaults], *, jitter: float = JITTER) -> None:
        self._pool = pool
        self._known = {defaults.source: defaults for defaults in known}
        self._jitter = jitter

    async def ensure(self) -> None:
        """Make the rows of sources that have none. Idempotent."""
        async with translated():
            await self._pool.execute(Q.ensure, list(self._known))

    async def list(self) -> Sequence[Json]:
        """See the port. `enabled` and `interval_s` are the effective values; times are ISO with Z."""
        async with translated():
            rows = await self._pool.fetch(Q.list_sources, list(self._known))
        return [self._record(row) for row in rows]

    def _record(self, row: Mapping[str, Any]) -> Json:
        defaults = self._known[row["source"]]
        record = {key: _iso(value) for key, value in row.items()}
        if record["enabled"] is None:
            record["enabled"] = defaults.enabled
        if record["interval_s"] is None:
            record["interval_s"] = defaults.interval_s
        return {**record, "floor_s": defaults.floor_s}

    async def change(self, source: str, *, enabled: bool | None, interval_s: float | None) -> Json:
        """See the port. Codes: `below_floor`, `bad_interval`."""
        defaults = self._known.get(source)
        if defaults is None:
            raise NotFound(f"there is no source {source!r}")
        if interval_s is not None:
            _check_interval(interval_s, defaults)
        await self.ensure()  # whoever is asked first makes the rows: a wish must not depend on who started first
        async with translated():
            await self._pool.execute(Q.change_source, source, enabled, interval_s)
        return next(record for record in await self.list() if record["source"] == source)

    async def due(self, defaults: Mapping[str, float]) -> Sequence[str]:
        """See the port. `defaults` are the intervals, in seconds, of the sources asked about."""
        names = list(defaults)
        enabled = [self._known[name].enabled if name in self._known else True for name in names]
        async with translated():
            rows = await self._pool.fetch(Q.take_due, names, list(defaults.values()), enabled, self._jitter)
        return sorted(row["source"] for row in rows)

    async def report(self, source: str, *, rejects: int, error: tuple[str, str] | None) -> None:
        """See the port. Rejects are also added up."""
        code, text = error or (None, None)
        async with translated():
            await self._pool.execute(Q.report, source, rejects, code, text)


def _check_interval(interval_s: float, defaults: SourceDefaults) -> None:
    if interval_s < defaults.floor_s:
        raise InputError(f"{defaults.source} may be asked every {defaults.floor_s:g} s at most", code="below_floor")
    if not 1 <= interval_s <= INTERVAL_MAX_S:
        raise InputError("the interval must be between 1 s and 31 days", code="bad_interval")


def _iso(value: object) -> object:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return value
