"""What an operator sets and sees per source, in PostgreSQL: port SourceStore."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from planetwire.audit.audit_postgres import note_in
from planetwire.database.postgres import Pool, translated
from planetwire.database.sql import queries_beside
from planetwire.errors import InputError, NotFound
from planetwire.model import Actor, Json, SourceDefaults
from planetwire.model.acts import Act
from planetwire.model.cron import plan, smallest_gap_s, upcoming, zone_of
from planetwire.runtime.backoff import AFTER_FAILURES_S
from planetwire.text.reject_counts import rejected_in

Q = queries_beside(__file__)

INTERVAL_MAX_S = 31 * 86_400.0
SWITCHES = ("enabled", "interval_s", "cron", "time_zone", "misfire")
TICKS_SHOWN = 3
ROWS_COUNTED_MAX = 50_000  # rows of a source; its index is read that far, some 10 ms
JOBS_LOOKED_AT = 200  # ended jobs of a source: an hour of one that runs every 18 s
COUNTS_KEPT_S = 0.5  # less than the page waits after the end of a job, or it would show what was before
HIDDEN = ("now", "failures", "retry_at", "answered_at")  # they show in `next_run_at`


class PostgresSourceStore:
    """Port SourceStore over the sources in `known`, as they are at the moment; `ensure` makes their rows."""

    def __init__(self, pool: Pool, known: Sequence[SourceDefaults]) -> None:
        self._pool = pool
        self._sources = known
        self._counted: Mapping[str, Json] = {}
        self._counted_at = -COUNTS_KEPT_S

    @property
    def _known(self) -> dict[str, SourceDefaults]:
        return {defaults.source: defaults for defaults in self._sources}

    async def ensure(self) -> None:
        """Make the rows of sources that have none. Idempotent."""
        async with translated():
            await self._pool.execute(Q.ensure, list(self._known))

    async def list(self) -> Sequence[Json]:
        """See the port. Switches and schedule are the effective values; times are ISO with Z."""
        known = self._known
        async with translated():
            rows = await self._pool.fetch(Q.list_sources, list(known))
            activity = await self._activity(list(known))
        return [_record(row, known[row["source"]]) | activity.get(row["source"], {}) for row in rows]

    async def _activity(self, sources: Sequence[str]) -> Mapping[str, Json]:
        """By source; kept for a moment, since counting costs more than all the rest."""
        if time.monotonic() - self._counted_at >= COUNTS_KEPT_S:
            rows = await self._pool.fetch(Q.activity, sources, ROWS_COUNTED_MAX, JOBS_LOOKED_AT)
            self._counted = {row["source"]: _activity(row) for row in rows}
            self._counted_at = time.monotonic()
        return self._counted

    async def change(self, source: str, wish: Json, by: Actor | None = None) -> Json:
        """See the port. Codes: `below_floor`, `bad_interval`, `bad_cron`, `bad_time_zone`."""
        defaults = self._known.get(source)
        if defaults is None:
            raise NotFound(f"there is no source {source!r}")
        _check(wish, defaults)
        await self.ensure()  # whoever is asked first makes the rows: a wish must not depend on who started first
        async with translated(), self._pool.acquire() as connection, connection.transaction():
            row = await connection.fetchrow(Q.lock_source, source)
            then = {**row, **wish}
            then |= _timing(row, then, defaults)
            values = [then[key] for key in (*SWITCHES, "next_run_at", "tick_at")]
            await connection.execute(Q.change_source, source, *values)
            if by is not None and wish:
                await note_in(connection, Act(by, "source.changed", source=source, details=wish))
        return next(record for record in await self.list() if record["source"] == source)

    async def report(
        self,
        source: str,
        *,
        rejects: int,
        error: tuple[str, str] | None,
        answered: bool = True,
        soon: bool | None = False,
    ) -> None:
        """See the port. Rejects are also added up."""
        code, text = error or (None, None)
        async with translated():
            await self._pool.execute(Q.report, source, rejects, code, text, answered, soon, list(AFTER_FAILURES_S))


def _check(wish: Json, defaults: SourceDefaults) -> None:
    if (interval_s := wish.get("interval_s")) is not None:
        if interval_s < defaults.floor_s:
            raise _below_floor(defaults)
        if not 1 <= interval_s <= INTERVAL_MAX_S:
            raise InputError("the interval must be between 1 s and 31 days", code="bad_interval")
    zone_of(wish.get("time_zone"))
    # By the wall clock: on the night an hour is doubled, the floor itself keeps two ticks apart.
    if (cron := wish.get("cron")) is not None and smallest_gap_s(cron) < defaults.floor_s:
        raise _below_floor(defaults)


def _below_floor(defaults: SourceDefaults) -> InputError:
    return InputError(f"{defaults.source} may be asked every {defaults.floor_s:g} s at most", code="below_floor")


def _timing(row: Mapping[str, Any], then: Json, defaults: SourceDefaults) -> Json:
    """What the change does to the next run: it is effective at once, and no run of the past is owed for it."""
    calendar = [source[key] for source in (row, then) for key in ("cron", "time_zone")]
    was_on = defaults.enabled if row["enabled"] is None else row["enabled"]
    if then["cron"] is not None:
        if calendar[:2] == calendar[2:] and was_on:
            return {}
        tick_at, next_run_at = plan(then["cron"], zone_of(then["time_zone"]), row["now"], random.random())
        return {"tick_at": tick_at, "next_run_at": next_run_at}
    interval_s = defaults.interval_s if then["interval_s"] is None else then["interval_s"]
    in_time = (row["last_run_at"] or row["now"]) + timedelta(seconds=interval_s)
    if row["cron"] is not None:
        return {"tick_at": None, "next_run_at": in_time}
    if then["interval_s"] == row["interval_s"] or row["next_run_at"] is None:
        return {}
    return {"next_run_at": min(row["next_run_at"], in_time)}


def _record(row: Mapping[str, Any], defaults: SourceDefaults) -> Json:
    """The row with what holds where nothing was set."""
    record = {key: _iso(value) for key, value in row.items() if key not in HIDDEN}
    fallbacks = {
        "enabled": defaults.enabled,
        "interval_s": defaults.interval_s,
        "time_zone": "UTC",
        "misfire": "once",
    }
    record |= {key: value for key, value in fallbacks.items() if record[key] is None}
    next_at = row["retry_at"] or row["next_run_at"]
    due = [next_at] if next_at is not None else []
    if due and row["answered_at"] is not None:
        due.append(row["answered_at"] + timedelta(seconds=defaults.floor_s))
    record["next_run_at"] = _iso(max(due, default=None))
    record["upcoming"] = [_iso(tick) for tick in _ticks(row)] if record["enabled"] else []
    return {**record, "floor_s": defaults.floor_s}


def _activity(row: Mapping[str, Any]) -> Json:
    """`rows` at its maximum means: or more. The sample and codes are those of the last run."""
    record = {key: row[key] for key in ("rows", "rows_hour", "requests_hour", "last_job", "sample")}
    return record | {"reject_codes": rejected_in(row["message"])}


def _ticks(row: Mapping[str, Any]) -> list[datetime]:
    """None for a schedule that was written past the check: it does not run either."""
    with suppress(InputError):
        if row["cron"] is not None:
            return upcoming(row["cron"], zone_of(row["time_zone"]), row["now"], TICKS_SHOWN)
    return []


def _iso(value: object) -> object:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return value
