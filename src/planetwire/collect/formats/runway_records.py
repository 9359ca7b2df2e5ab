"""Rows of runway readings from JSON records with case-insensitive names: a bad record is one reject."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from planetwire.cities import resolve
from planetwire.collect.formats.json_records import json_records
from planetwire.collect.formats.metar_text import iso
from planetwire.collect.formats.obs_time import reported_at
from planetwire.collect.formats.records import Records, number_in, reject
from planetwire.collect.formats.temperature import celsius_or_none
from planetwire.model import Json

MAX_READINGS = 60_000  # per body: a day of forty runways, each minute
WIND_MAX_MPS = 120.0
KNOT_MPS = 0.514444
TEXT_CHARS = 64
LISTS = ("readings", "data")  # members of an object that may hold the records

_STATION = ("airport", "icao", "station", "station_code")
_RUNWAY = ("runway", "rwy", "rno")
_TIME = ("time", "obs_time", "observed_at", "otime")
_TEMPS = {
    "temp_c": ("temp_c", "temp"),
    "tdz_temp_c": ("tdz_temp_c", "tdz_temp"),
    "mid_temp_c": ("mid_temp_c", "mid_temp"),
    "end_temp_c": ("end_temp_c", "end_temp"),
}
_WIND_DIR = ("wind_dir_deg", "wind_dir", "d10")
_WIND_MPS = ("wind_speed_mps", "f10")
_WIND_KT = ("wind_speed_kt", "wind_kt")

_CODE = re.compile(r"[A-Z0-9]{3,8}")
_DESIGNATORS = re.compile(r"(?:0[1-9]|[12][0-9]|3[0-6])[LCR]?(?:/(?:0[1-9]|[12][0-9]|3[0-6])[LCR]?)?")
_NOTHING = re.compile(r"[/\-*. ]*|n/?a|null|none|nan", re.IGNORECASE)  # how senders write a sensor that is out of order


class BadReading(ValueError):
    """Why a record gives no row."""


def records_of(body: bytes) -> Records:
    """From the top-level array, the one under a name of `LISTS`, or a single object. Raises FeedError `bad_body`."""
    if body[:200].lstrip()[:1] == b"{":
        key = next((name for name in LISTS if re.search(rb'"%s"\s*:\s*\[' % name.encode(), body)), None)
        return json_records(body, key, most=MAX_READINGS)
    return json_records(body, most=MAX_READINGS)


def rows_of(records: Records, notes: Counter[str]) -> list[Json]:
    """One row per place, runway and time; counts `duplicates` in `notes`. Refused records are added to the rejects."""
    rows: dict[tuple[str, str, str], Json] = {}
    for index, item in records.items():
        try:
            row = _row(item)
        except BadReading as bad:
            records.rejects.append(reject(str(bad), item, index, "no_reading"))
            continue
        key = (row["station"] or row["city"], row["runway"], row["obs_time"])
        notes["duplicates"] += key in rows
        rows[key] = row
    return list(rows.values())


def _row(record: Any) -> Json:
    if not isinstance(record, dict):
        raise BadReading("not an object")
    given = {name.lower(): value for name, value in record.items()}
    station, city = _place(given)
    runway = "".join(_text(given, _RUNWAY).upper().split()).replace("-", "/")
    if not _DESIGNATORS.fullmatch(runway):
        raise BadReading("no runway")
    observed = next((at for name in _TIME if (at := reported_at(given.get(name), milliseconds=True))), None)
    if observed is None:
        raise BadReading("no time")
    flags: list[str] = []
    temps = {name: _temperature(given, keys, name, flags) for name, keys in _TEMPS.items()}
    temp_c = next((value for value in temps.values() if value is not None), None)
    if temp_c is None and flags:
        raise BadReading("no temperature between -90 and +60 °C")
    return {
        "station": station,
        "city": city,
        "runway": runway,
        "obs_time": iso(observed),
        **temps,
        "temp_c": temp_c,
        "wind": _wind(given, flags),
        "flags": flags,
        "corrected": False,
    }


def _place(given: Mapping[str, Any]) -> tuple[str, str | None]:
    """The airport's code, and the city's key if the record names a known one."""
    station = _text(given, _STATION).upper()
    city = resolve(_text(given, ("city",)))
    if not _CODE.fullmatch(station):
        station = ""
    if not station and city is None:
        raise BadReading("no airport and no city that is known")
    return station, city.key if city else None


def _temperature(given: Mapping[str, Any], keys: Sequence[str], name: str, flags: list[str]) -> float | None:
    """The first valid temperature. A present but invalid value leaves a flag."""
    there = [given[key] for key in keys if not _is_nothing(given.get(key))]
    found = next((celsius for raw in there if (celsius := celsius_or_none(raw, fahrenheit=False)) is not None), None)
    if there and found is None:
        flags.append(f"{name}_out_of_range")
    return found


def _wind(given: Mapping[str, Any], flags: list[str]) -> Json | None:
    """Direction in degrees and speed in m/s; None if absent; an invalid wind leaves a flag."""
    direction, speed = _first_number(given, _WIND_DIR), _first_number(given, _WIND_MPS)
    knots = _first_number(given, _WIND_KT)
    if speed is None and knots is not None:
        speed = knots * KNOT_MPS
    if speed is None:
        return None
    if not 0 <= speed <= WIND_MAX_MPS or (direction is not None and not 0 <= direction <= 360):
        flags.append("wind_out_of_range")
        return None
    return {"dir_deg": None if direction is None else round(direction), "speed_mps": round(speed, 2)}


def _first_number(given: Mapping[str, Any], keys: Sequence[str]) -> float | None:
    return next((found for key in keys if (found := number_in(given.get(key))) is not None), None)


def _is_nothing(value: object) -> bool:
    return value is None or (isinstance(value, str) and _NOTHING.fullmatch(value.strip()) is not None)


def _text(given: Mapping[str, Any], names: Sequence[str]) -> str:
    found = (value.strip() for name in names if isinstance(value := given.get(name), str) and len(value) <= TEXT_CHARS)
    return next((value for value in found if value), "")
