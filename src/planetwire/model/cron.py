"""Five-field cron expressions in a time zone: the next tick, the narrowest gap. Pure; every wait is bounded.

On the night a clock changes the rules are Debian cron's. An expression whose minute and hour both name times
(`30 2 * * *`) runs once that night: in the skipped hour at the first minute after it, in the doubled hour the first
time. One in which either begins with `*` follows real time: nothing in the skipped hour, both passes of the doubled.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice, pairwise, takewhile
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from planetwire.errors import InputError

EXPRESSION_MAX = 100
FIELDS = 5
DAY_S = 86_400.0
JITTER = 0.05  # maximum delay of a run as a share of its interval, so that not all run at once
JITTER_MAX_S = 30.0  # of a tick, which people expect on the minute
_YEARS_SEARCHED = 60  # 29 February falls on the same weekday every 28
_DAYS_SEARCHED = 1_500
_MIDNIGHT = datetime(2024, 1, 1, tzinfo=UTC) - timedelta(seconds=1)


def zone_of(name: str | None) -> tzinfo:
    """UTC for None. Raises InputError `bad_time_zone`."""
    if name in (None, "UTC"):
        return UTC
    try:
        return ZoneInfo(name or "")
    except (KeyError, ValueError, OSError) as error:
        raise InputError(f"no time zone {name!r}; names are like Europe/Berlin", code="bad_time_zone") from error


def next_after(expression: str, zone: tzinfo, after: datetime) -> datetime | None:
    """The first tick later than `after`, in UTC; None if there is none in 50 years. Raises InputError `bad_cron`."""
    return next(_ticks(expression, zone, after), None)


def upcoming(expression: str, zone: tzinfo, after: datetime, count: int) -> list[datetime]:
    """The first ticks later than `after`, at most `count`, in UTC. Raises InputError `bad_cron`."""
    return list(islice(_ticks(expression, zone, after), count))


def plan(expression: str, zone: tzinfo, after: datetime, share: float) -> tuple[datetime, datetime]:
    """The next tick and when to run for it: later by `share` of the jitter. Raises InputError `bad_cron`."""
    tick = next_after(expression, zone, after)
    if tick is None:
        raise InputError(f"{expression!r} never comes", code="bad_cron")
    following = next_after(expression, zone, tick)
    gap_s = (following - tick).total_seconds() if following is not None else math.inf
    return tick, tick + timedelta(seconds=min(JITTER * gap_s, JITTER_MAX_S) * share)


def smallest_gap_s(expression: str) -> float:
    """The smallest gap between two ticks by the wall clock. Raises InputError `bad_cron`, also if it never ticks.

    Exact: all days with ticks have the same ones, so one such day and the smallest gap between two days suffice.
    """
    minute, hour, *days = _fields(expression)
    times = [at.hour * 3600.0 + at.minute * 60.0 for at in _until(f"{minute} {hour} * * *", timedelta(days=1))]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    dates = _until(" ".join(["0", "0", *days]), timedelta(days=365 * _YEARS_SEARCHED))
    apart_s = math.inf
    for earlier, later in pairwise(islice(dates, _DAYS_SEARCHED)):
        apart_s = min(apart_s, (later - earlier).total_seconds())
        if apart_s <= DAY_S:
            break
    if apart_s == math.inf:
        raise InputError(f"{expression!r} comes once in {_YEARS_SEARCHED} years or never", code="bad_cron")
    return min([*gaps, apart_s - times[-1] + times[0]])


def _until(expression: str, span: timedelta) -> Iterator[datetime]:
    return takewhile(lambda tick: tick <= _MIDNIGHT + span, _ticks(expression, UTC, _MIDNIGHT))


def _fields(expression: str) -> list[str]:
    fields = expression.split()
    if len(expression) > EXPRESSION_MAX or len(fields) != FIELDS:
        raise InputError("a schedule has five fields: minute, hour, day, month, weekday", code="bad_cron")
    return fields


def _ticks(expression: str, zone: tzinfo, after: datetime) -> Iterator[datetime]:
    """Rising, in UTC; ends where nothing comes within 50 years."""
    text = " ".join(_fields(expression))
    last = after.astimezone(UTC)
    try:
        for local in CronSim(text, after.astimezone(zone)):
            tick = local.astimezone(UTC)
            # After the second pass of a doubled hour the library returns the first pass again.
            if tick > last:
                yield tick
                last = tick
    except CronSimError as error:
        raise InputError(f"{expression!r} is no schedule: {error}", code="bad_cron") from error
    except OverflowError:
        return  # the year 9999
