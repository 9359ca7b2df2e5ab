"""Times as publishers write them, read into aware UTC by a reader that is made once for each field."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TypeAlias
from zoneinfo import ZoneInfo

from planetwire.collect.formats.records import number

ReadTime: TypeAlias = Callable[[object], datetime | None]

FIRST_YEAR, LAST_YEAR = 1900, 2100
TEXT_CHARS_MAX = 64
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FROM_S = -2_208_988_800.0  # 1900
_TO_S = 4_102_444_800.0  # 2100; milliseconds of before mid-February 1970 are taken for seconds in the wrong field
# Go's own form, `2026-11-29 12:00:00.123456789 +0000 UTC`, is ISO with a word behind it.
_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d(?::\d\d)?)(\.\d{1,6})?\d{0,9})?\s?([Zz]|[+-]\d\d:?\d\d)?(?: UTC)?"
)
_ISO_BASIC = re.compile(r"(\d{4})(\d\d)(\d\d)[Tt]?(\d\d)(\d\d)(\d\d)?([Zz]|[+-]\d\d:?\d\d)?")
_COUNT = re.compile(r"-?[0-9]{1,14}(?:\.[0-9]{1,9})?")
CODES = frozenset("YmdHMSfjybBzp%")
"""Of `strptime`, those that mean the same in every language setting, and English months."""


def bad_code(pattern: str) -> str | None:
    """The first `%` code that is not read; None: all are."""
    found = re.findall(r"%(.?)", pattern, re.DOTALL)
    return next((f"%{code}" for code in found if code not in CODES), None)


def reader(form: str, zone: tzinfo) -> ReadTime:
    """`form`: `iso`, `unix`, `unix_ms` or a `strptime` pattern. `zone`: of times that name none.

    Of a time that a zone's clocks show twice the first is taken; one that they skip moves on by the gap. The reader
    gives None for what is no such time, or lies outside 1900 … 2100.
    """
    if form in ("unix", "unix_ms"):
        return _epoch_reader(0.001 if form == "unix_ms" else 1.0)
    if form == "iso":
        return _iso_reader(zone)
    return _pattern_reader(form, zone)


def zone_named(name: str) -> tzinfo | None:
    """Of an IANA name, or `UTC`; None when there is none."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (OSError, ValueError):
        return None


def _epoch_reader(scale: float) -> ReadTime:
    whole_seconds = scale == 1.0

    def read(value: object) -> datetime | None:
        text = value.strip() if isinstance(value, str) and len(value) <= TEXT_CHARS_MAX else ""
        given = float(text) if _COUNT.fullmatch(text) else number(value)
        if given is None or not _FROM_S <= given * scale <= _TO_S or (not whole_seconds and 0 <= given < _TO_S):
            return None
        return _EPOCH + (timedelta(seconds=given) if whole_seconds else timedelta(milliseconds=given))

    return read


def _iso_reader(zone: tzinfo) -> ReadTime:
    def read(value: object) -> datetime | None:
        text = value.strip() if isinstance(value, str) and len(value) <= TEXT_CHARS_MAX else ""
        try:
            if found := _ISO.fullmatch(text):
                day, clock, part, offset = found.groups()
                at = datetime.fromisoformat(f"{day}T{clock or '00:00'}{part or ''}{(offset or '').upper()}")
            elif found := _ISO_BASIC.fullmatch(text):
                year, month, day, hour, minute, second, offset = found.groups()
                text = f"{year}-{month}-{day}T{hour}:{minute}:{second or '00'}{(offset or '').upper()}"
                at = datetime.fromisoformat(text)
            else:
                return None
        except ValueError:
            return None
        return _in_utc(at, zone)

    return read


def _pattern_reader(form: str, zone: tzinfo) -> ReadTime:
    def read(value: object) -> datetime | None:
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)  # 202611291200 in JSON
        if not isinstance(value, str) or len(value) > TEXT_CHARS_MAX:
            return None
        try:
            at = datetime.strptime(value.strip(), form)  # noqa: DTZ007 - the zone comes next
        except ValueError:
            return None
        return _in_utc(at, zone)

    return read


def _in_utc(at: datetime, zone: tzinfo) -> datetime | None:
    try:
        at = (at.replace(tzinfo=zone) if at.tzinfo is None else at).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return at if FIRST_YEAR <= at.year < LAST_YEAR else None
