"""Parses the observation times of senders, and relates them to the city's local time. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from planetwire.cities import City
from planetwire.collect.formats.records import number
from planetwire.collect.formats.shown import shown
from planetwire.errors import InputError
from planetwire.model import Json
from planetwire.runtime.clock import utc_text

FUTURE_MAX = timedelta(minutes=5)  # senders' clocks are inaccurate
AGE_MAX = timedelta(hours=48)
EPOCH_MS_FROM = 100_000_000_000  # as seconds that would be the year 5138
EPOCH_MAX = 10**14
FIRST_YEAR, LAST_YEAR = 1980, 2099  # of providers' records

_ISO = re.compile(r"\d{4}-?\d\d-?\d\d[Tt ]\d\d(:?\d\d(:?\d\d([.,]\d{1,9})?)?)?\s?([Zz]|[+-]\d\d(:?\d\d)?)?", re.ASCII)
_LOOSE_ISO = re.compile(r"[0-9]{4}-[0-9T:. Z+-]{4,40}")
_BEFORE_ZONE = re.compile(r" (?=[Z+-])")
_DIGITS = re.compile(r"[0-9]{9,14}")


def _invalid(raw: object) -> InputError:
    return InputError(f"not an observation time: {shown(raw)}", code="invalid_obs_time")


def _out_of_range(raw: object) -> InputError:
    return InputError(
        f"the observation time is over 5 minutes ahead or over 48 hours old: {shown(raw)}",
        code="obs_time_out_of_range",
    )


def parse_obs_time(raw: object, city: City, now: datetime) -> datetime | None:
    """Aware UTC in whole milliseconds; None if absent, null or empty.

    Accepts ISO 8601 with a zone, ISO 8601 in the city's local time (the first if ambiguous; a skipped time is moved
    on by the gap), and seconds or milliseconds since 1970. Raises InputError `invalid_obs_time`,
    `obs_time_out_of_range`.
    """
    if raw is None or raw == "":
        return None
    try:
        at = _instant(raw, city)
        in_range = now - AGE_MAX <= at <= now + FUTURE_MAX
    except OverflowError:
        raise _out_of_range(raw) from None
    if not in_range:
        raise _out_of_range(raw)
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


def _instant(raw: object, city: City) -> datetime:
    if isinstance(raw, bool) or not isinstance(raw, int | float | str):
        raise _invalid(raw)
    if isinstance(raw, str):
        text = raw.strip()
        if not _DIGITS.fullmatch(text):
            return _from_iso(text, city)
        raw = int(text)
    return _from_epoch(raw)


def _from_epoch(number: float) -> datetime:
    if not 0 <= number <= EPOCH_MAX:
        raise _out_of_range(number)
    return datetime.fromtimestamp(number / 1000 if number >= EPOCH_MS_FROM else number, UTC)


def _from_iso(text: str, city: City) -> datetime:
    if not _ISO.fullmatch(text):
        raise _invalid(text)
    try:
        at = datetime.fromisoformat(_BEFORE_ZONE.sub("", text.upper().replace(",", ".")))
    except ValueError:
        raise _invalid(text) from None
    if at.tzinfo is None:
        at = at.replace(tzinfo=city.zone)
    return at.astimezone(UTC)


def reported_at(value: object, *, milliseconds: bool = False) -> datetime | None:
    """The time of a provider's record: seconds since 1970, or `milliseconds` if set, or ISO text; without a zone it is
    UTC. None for an impossible time.
    """
    since = number(value)
    try:
        if since is not None:
            seconds = since / 1000 if milliseconds and since >= EPOCH_MS_FROM else since
            at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
        elif isinstance(value, str) and _LOOSE_ISO.fullmatch(text := value.strip()):
            at = datetime.fromisoformat(text)
            at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
        else:
            return None
    except (ValueError, OverflowError):
        return None
    return at if FIRST_YEAR <= at.year <= LAST_YEAR else None


def time_fields(city: City, obs_time: datetime | None, now: datetime, cadence_s: int) -> Json:
    """The additive time keys of a payload: times of observation and receipt, local day, delay.

    Without an observation time the local day is that of the receipt.
    """
    local = city.local(obs_time or now)
    offset = local.utcoffset()
    return {
        "observed_at_utc": None if obs_time is None else utc_text(obs_time),
        "observed_at_local": None if obs_time is None else local.isoformat(timespec="seconds"),
        "city_local_date": local.date().isoformat(),
        "city_timezone": city.timezone,
        "city_utc_offset_seconds": None if offset is None else int(offset.total_seconds()),
        "source_cadence_sec": cadence_s,
        "received_at_utc": utc_text(now),
        "latency_sec": None if obs_time is None else round((now - obs_time).total_seconds(), 3),
    }
