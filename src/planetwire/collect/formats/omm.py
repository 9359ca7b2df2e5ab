"""Orbit Mean-Elements records (CCSDS 502.0-B) of any encoding: validates a mapping of keywords into one record.

The catalogue number is an integer of up to nine digits; the five-character Alpha-5 form exists in TLE only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Any

from planetwire.collect.formats.records import number
from planetwire.collect.formats.shown import shown
from planetwire.model import Fact, Json

KEYS = (
    "OBJECT_NAME",
    "OBJECT_ID",
    "EPOCH",
    "MEAN_MOTION",
    "ECCENTRICITY",
    "INCLINATION",
    "RA_OF_ASC_NODE",
    "ARG_OF_PERICENTER",
    "MEAN_ANOMALY",
    "EPHEMERIS_TYPE",
    "CLASSIFICATION_TYPE",
    "NORAD_CAT_ID",
    "ELEMENT_SET_NO",
    "REV_AT_EPOCH",
    "BSTAR",
    "MEAN_MOTION_DOT",
    "MEAN_MOTION_DDOT",
)
_REQUIRED_FLOATS = KEYS[3:9]
_OPTIONAL_FLOATS = KEYS[14:17]
_FLOATS = (*_REQUIRED_FLOATS, *_OPTIONAL_FLOATS)
_ANGLES = ("RA_OF_ASC_NODE", "ARG_OF_PERICENTER", "MEAN_ANOMALY")
_NUMERIC, _INTEGRAL, _TEXT_OR_NONE = {float, int}, {int}, (str, type(None))
_EPOCH_CHARS = len("2026-11-30T12:00:00.000000")
_OPTIONAL_INTS = ("EPHEMERIS_TYPE", "ELEMENT_SET_NO", "REV_AT_EPOCH")
_get_floats = itemgetter(*_FLOATS)
_get_integers = itemgetter("NORAD_CAT_ID", *_OPTIONAL_INTS)
_get_texts = itemgetter("OBJECT_NAME", "OBJECT_ID", "CLASSIFICATION_TYPE", "EPOCH")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_INTEGER = re.compile(r"[+-]?[0-9]{1,20}")
_CATALOGUE_NUMBER = re.compile(r"\+?0{0,20}[1-9][0-9]{0,8}|\+?[0-9]{1,9}")
_EPOCH = re.compile(
    r"(?P<year>\d{4})-(?:(?P<month>\d\d)-(?P<day>\d\d)|(?P<doy>\d{3}))"
    r"T(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:\.(?P<fraction>\d+))?Z?",
    re.ASCII,
)
_MIN_MEAN_MOTION = 0.001  # revolutions per day: one in three years, beyond the moon
_MAX_MEAN_MOTION = 20.0  # an orbit at ground level has 17
_MAX_DRAG = 10_000.0  # of BSTAR and the derivatives of the mean motion, nearly always below one
_MAX_INTEGER = 2**31 - 1
MAX_NAME_CHARS = 200
_MAX_CATALOGUE_NUMBER = 999_999_999
_FIRST_YEAR, _LAST_YEAR = 1957, 2099


class BadRecord(ValueError):
    """Why a record is refused; `key`: its catalogue number as text, if readable."""

    def __init__(self, reason: str, key: str | None = None, sample: str = "", *, code: str = "bad_value") -> None:
        super().__init__(reason)
        self.reason = reason
        self.key = key
        self.sample = sample
        self.code = code


def fact_of(record: Mapping[str, object]) -> Fact:
    """One satellite. Values may be numbers or text. Raises BadRecord."""
    return _usual(record) or _any(record)


def _usual(record: Mapping[str, Any]) -> Fact | None:
    """The fast path, for records exactly as CelesTrak writes them; None: take the slow path, which reports errors.

    A catalogue has more than 12,000 records: this takes a third of the time of the slow path.
    """
    try:
        values = _get_floats(record)
        integers = _get_integers(record)
        name, designator, classification, text = _get_texts(record)
    except KeyError:
        return None
    if not ({*map(type, values)} <= _NUMERIC and {*map(type, integers)} == _INTEGRAL):
        return None
    if not (type(name) is type(classification) is type(text) is str and type(designator) in _TEXT_OR_NONE):
        return None
    at = _usual_epoch(text)
    if at is None or not _usual_values(*values) or max(integers) > _MAX_INTEGER or min(integers) < 0:
        return None
    if len(name) > MAX_NAME_CHARS or len(designator or "") > MAX_NAME_CHARS or len(classification) > MAX_NAME_CHARS:
        return None
    key, ephemeris_type, element_set_no, rev_at_epoch = integers
    mean_motion, eccentricity, inclination, node, perigee, anomaly, bstar, dot, ddot = map(float, values)
    if not 0 < key <= _MAX_CATALOGUE_NUMBER:
        return None
    title = name.strip()
    data: Json = {
        "OBJECT_NAME": title,
        "OBJECT_ID": (designator.strip() or None) if designator else None,
        "EPOCH": text,
        "MEAN_MOTION": mean_motion,
        "ECCENTRICITY": eccentricity,
        "INCLINATION": inclination,
        "RA_OF_ASC_NODE": node,
        "ARG_OF_PERICENTER": perigee,
        "MEAN_ANOMALY": anomaly,
        "EPHEMERIS_TYPE": ephemeris_type,
        "CLASSIFICATION_TYPE": classification.strip() or "U",
        "NORAD_CAT_ID": key,
        "ELEMENT_SET_NO": element_set_no,
        "REV_AT_EPOCH": rev_at_epoch,
        "BSTAR": bstar,
        "MEAN_MOTION_DOT": dot,
        "MEAN_MOTION_DDOT": ddot,
    }
    return Fact(str(key), "satellite", title or f"NORAD {key}", data, None, None, at)


def _usual_epoch(text: str) -> datetime | None:
    if len(text) != _EPOCH_CHARS:
        return None
    try:
        at = datetime.fromisoformat(text + "+00:00")
    except ValueError:
        return None
    # Other formats have the same length: only a text that round-trips unchanged is usual.
    return at if at.isoformat(timespec="microseconds")[:-6] == text and _FIRST_YEAR <= at.year <= _LAST_YEAR else None


def _usual_values(
    mean_motion: float,
    eccentricity: float,
    inclination: float,
    node: float,
    perigee: float,
    anomaly: float,
    bstar: float,
    dot: float,
    ddot: float,
) -> bool:
    """Whether all are in range; False for NaN, which compares false, and for the infinities."""
    return (
        _MIN_MEAN_MOTION <= mean_motion <= _MAX_MEAN_MOTION
        and 0.0 <= eccentricity < 1.0
        and 0.0 <= inclination <= 180.0
        and -360.0 <= node <= 360.0
        and -360.0 <= perigee <= 360.0
        and -360.0 <= anomaly <= 360.0
        and -_MAX_DRAG <= bstar <= _MAX_DRAG
        and -_MAX_DRAG <= dot <= _MAX_DRAG
        and -_MAX_DRAG <= ddot <= _MAX_DRAG
    )


def _any(record: Mapping[str, object]) -> Fact:
    key = str(catalogue_number(record.get("NORAD_CAT_ID")))
    try:
        data = _data(record, int(key))
        at = epoch(record.get("EPOCH"))
    except BadRecord as bad:
        raise BadRecord(bad.reason, key, code=bad.code) from bad
    data["EPOCH"] = epoch_text(at)
    return Fact(
        external_key=key,
        kind="satellite",
        title=data["OBJECT_NAME"] or f"NORAD {key}",
        data={name: data[name] for name in KEYS},
        observed_at=at,
    )


def catalogue_number(value: object) -> int:
    """1 … 999,999,999 in ASCII digits. Raises BadRecord for anything else, including Alpha-5."""
    if type(value) is int and 0 < value <= _MAX_CATALOGUE_NUMBER:
        return value
    text = str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else ""
    if not _CATALOGUE_NUMBER.fullmatch(text) or int(text) == 0:
        raise BadRecord(f"NORAD_CAT_ID is no number of one to nine digits: {shown(value)}", code="bad_key")
    return int(text)


def epoch(value: object) -> datetime:
    """Aware UTC from a calendar or day-of-year time code, with or without fraction and Z. Raises BadRecord."""
    match = _EPOCH.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise BadRecord(f"EPOCH is no CCSDS time: {shown(value)}", code="bad_time")
    year = int(match["year"])
    try:
        day = _day(year, match)
    except ValueError as error:
        raise BadRecord(f"EPOCH is no date: {shown(value)}", code="bad_time") from error
    hour, minute, second = int(match["hour"]), int(match["minute"]), int(match["second"])
    if not (_FIRST_YEAR <= year <= _LAST_YEAR and hour < 24 and minute < 60 and second <= 60):
        raise BadRecord(f"EPOCH is out of range: {shown(value)}", code="out_of_range")
    micros = int((match["fraction"] or "0")[:6].ljust(6, "0"))
    return day + timedelta(hours=hour, minutes=minute, seconds=second, microseconds=micros)


def _day(year: int, match: re.Match[str]) -> datetime:
    if match["doy"] is None:
        return datetime(year, int(match["month"]), int(match["day"]), tzinfo=UTC)
    day = datetime(year, 1, 1, tzinfo=UTC) + timedelta(days=int(match["doy"]) - 1)
    if day.year != year:
        raise ValueError("no such day of the year")
    return day


def epoch_text(at: datetime) -> str:
    """In CelesTrak's format: six decimals, no zone."""
    return at.replace(tzinfo=None).isoformat(timespec="microseconds")


def _float(record: Mapping[str, object], name: str) -> float:
    value = record.get(name)
    if type(value) is float and math.isfinite(value):  # nearly always: a catalogue has 160,000 of them
        return value
    if isinstance(value, str):
        value = float(value) if _NUMBER.fullmatch(value.strip()) else None
    result = number(value)
    if result is None:
        raise BadRecord(f"{name} is no finite number: {shown(record.get(name))}")
    return result


def _integer(record: Mapping[str, object], name: str) -> int:
    value = record.get(name)
    if type(value) is int and 0 <= value <= _MAX_INTEGER:
        return value
    text = str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else ""
    if not _INTEGER.fullmatch(text):
        raise BadRecord(f"{name} is no integer: {shown(value)}")
    if not 0 <= int(text) <= _MAX_INTEGER:
        raise BadRecord(f"{name} is not in 0 … {_MAX_INTEGER}: {shown(value)}", code="out_of_range")
    return int(text)


def _absent(value: object) -> bool:
    """Whether it is None, empty text or NaN; an absent optional value takes its default."""
    return value is None or value == "" or value != value


def _text(record: Mapping[str, object], name: str) -> str:
    value = record.get(name)
    text = value.strip() if isinstance(value, str) else ""
    if len(text) > MAX_NAME_CHARS:
        raise BadRecord(f"{name} has more than {MAX_NAME_CHARS} characters", code="too_large")
    return text


def _data(record: Mapping[str, object], key: int) -> Json:
    data: Json = {name: _float(record, name) for name in _REQUIRED_FLOATS}
    for name in _OPTIONAL_FLOATS:
        data[name] = 0.0 if _absent(record.get(name)) else _float(record, name)
    for name in _OPTIONAL_INTS:
        data[name] = 0 if _absent(record.get(name)) else _integer(record, name)
    data["NORAD_CAT_ID"] = key
    data["OBJECT_NAME"] = _text(record, "OBJECT_NAME")
    data["OBJECT_ID"] = _text(record, "OBJECT_ID") or None
    data["CLASSIFICATION_TYPE"] = _text(record, "CLASSIFICATION_TYPE") or "U"
    _check_ranges(data)
    return data


def _check_ranges(data: Json) -> None:
    within = {
        "MEAN_MOTION": (_MIN_MEAN_MOTION, _MAX_MEAN_MOTION),
        "ECCENTRICITY": (0.0, math.nextafter(1.0, 0.0)),
        "INCLINATION": (0.0, 180.0),
        **dict.fromkeys(_ANGLES, (-360.0, 360.0)),
        **dict.fromkeys(_OPTIONAL_FLOATS, (-_MAX_DRAG, _MAX_DRAG)),
    }
    for name, (least, most) in within.items():
        if not least <= data[name] <= most:
            raise BadRecord(f"{name} is not in {least:g} … {most:g}: {shown(data[name])}", code="out_of_range")
