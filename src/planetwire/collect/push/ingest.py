"""Normalises a pushed patch of any accepted shape to one ObservationPatch. Pure and total.

Arbitrary JSON gives a patch or an InputError with a code, nothing else, and no value that the sender did not send.
Accepted shapes: `{city, changes}` with or without `type: city_patch`, runway points in `runway_points` or in
`amos.runway_obs.point_temperatures`, display temperatures besides `temp_c`, and `city_observation_patch.v1` with
`payload`. The sender's revision and `ts` are ignored.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Any

from planetwire.cities import City, resolve
from planetwire.collect.formats.obs_time import parse_obs_time, time_fields
from planetwire.collect.formats.shown import shown
from planetwire.collect.formats.temperature import celsius_or_none, is_fahrenheit, read_celsius
from planetwire.collect.push.runway import runway_points
from planetwire.errors import InputError
from planetwire.model import Json, ObservationPatch
from planetwire.observing import DEFAULT_SOURCE, PLATE_PREFIX, Series, Sources

V1 = "city_observation_patch.v1"
LEGACY = "city_patch"
STATION_CODE_CHARS = 16
STATION_LABEL_CHARS = 80
DISPLAY_TOLERANCE = 1.0  # °F by which a rounded display value may differ from its Celsius counterpart

SERIES = frozenset(series.value for series in Series)
_SOURCE = re.compile(r"[a-z0-9_]{1,32}")


def normalise(sources: Sources, raw: object, now: datetime) -> ObservationPatch:
    """The patch, accepted at `now`. Raises InputError.

    Codes: `bad_patch`, `unknown_schema`, `unknown_city`, `invalid_source`, `invalid_series_key`, `invalid_unit`,
    `invalid_temp`, `no_observation`, `too_many_runways`, `invalid_obs_time`, `obs_time_out_of_range`.
    """
    outer, inner = _parts(raw)
    city = _city(outer.get("city"))
    source = _source(_first(outer.get("source"), inner.get("source")))
    obs_time = parse_obs_time(_first(outer.get("obs_time"), inner.get("obs_time")), city, now)
    payload = _payload(sources, inner, city, source)
    payload.update(time_fields(city, obs_time, now, sources.profile(source, city.metar_cadence_s).cadence_s))
    _drop_foreign_max(payload, inner)
    return ObservationPatch(city.key, source, obs_time, int(now.timestamp() * 1000), payload, _points(payload))


def _parts(raw: object) -> tuple[Json, Json]:
    """The envelope, and the object with the reading."""
    if not isinstance(raw, dict):
        raise InputError("a patch is a JSON object", code="bad_patch")
    kind = raw.get("type")
    if kind not in (None, LEGACY, V1) or raw.get("schema_version") not in (None, 1):
        raise InputError(f"unknown patch type or version: {shown(kind)}", code="unknown_schema")
    names = ("payload", "changes") if kind == V1 else ("changes", "payload")
    for name in names:
        if isinstance(raw.get(name), dict):
            return raw, raw[name]
    raise InputError("a patch needs an object `changes` or `payload`", code="bad_patch")


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _city(raw: object) -> City:
    city = resolve(raw) if isinstance(raw, str) else None
    if city is None:
        raise InputError(f"unknown city: {shown(raw)}", code="unknown_city")
    return city


def _source(raw: object) -> str:
    if raw is None or raw == "":
        return DEFAULT_SOURCE
    source = raw.strip().lower() if isinstance(raw, str) else ""
    if not _SOURCE.fullmatch(source):
        raise InputError("a source is 1 to 32 characters of a-z, 0-9, _", code="invalid_source")
    return source


def _payload(sources: Sources, inner: Json, city: City, source: str) -> Json:
    amos = inner["amos"] if isinstance(inner.get("amos"), dict) else {}
    temp, fahrenheit = _temperature(inner, amos)
    points = runway_points(inner, amos, city, fahrenheit=fahrenheit)
    if temp is None and not points:
        raise InputError("neither a temperature nor a runway point with one", code="no_observation")
    code = _first(inner.get("station_code"), inner.get("icao"), amos.get("icao"))
    label = _first(inner.get("station_label"), amos.get("station_label"), amos.get("station_name"))
    return {
        "temp": temp,
        "max_so_far": _max_so_far(inner, temp, fahrenheit=fahrenheit),
        "station_code": _text(code, STATION_CODE_CHARS, upper=True),
        "station_label": _text(label, STATION_LABEL_CHARS),
        "series_key": _series(sources, inner.get("series_key"), city, source),
        "unit": "celsius",
        "runway_points": points,
    }


def _temperature(inner: Json, amos: Json) -> tuple[float | None, bool]:
    """°C, and whether the patch's other values are °F. `temp_c` wins over `temp`, which may be for display."""
    fahrenheit = is_fahrenheit(inner.get("unit"))
    exact, display = inner.get("temp_c"), inner.get("temp")
    if exact is not None:
        temp = read_celsius(exact, fahrenheit=False)
        return temp, fahrenheit or (inner.get("unit") is None and _is_same_in_fahrenheit(display, temp))
    if display is not None:
        return read_celsius(display, fahrenheit=fahrenheit), fahrenheit
    inside = _first(amos.get("temp_c"), amos.get("temp"))
    return (None if inside is None else celsius_or_none(inside, fahrenheit=False)), fahrenheit


def _is_same_in_fahrenheit(display: object, temp_c: float) -> bool:
    """Whether a value without a unit is `temp_c` in °F: senders of both often omit the unit."""
    as_fahrenheit = celsius_or_none(display, fahrenheit=True)
    as_celsius = celsius_or_none(display, fahrenheit=False)
    if as_fahrenheit is None or as_celsius == temp_c:
        return False
    return abs(as_fahrenheit - temp_c) * 1.8 <= DISPLAY_TOLERANCE


def _max_so_far(inner: Json, temp: float | None, *, fahrenheit: bool) -> float | None:
    """The sender's high of the day, at least `temp`; None without a temperature, or if it is invalid."""
    raw = _first(inner.get("max_so_far"), inner.get("current_max_so_far"))
    high = celsius_or_none(raw, fahrenheit=fahrenheit)
    return None if high is None or temp is None else max(high, temp)


def _drop_foreign_max(payload: Json, inner: Json) -> None:
    """Remove a high of another local day than the reading's."""
    day = _first(inner.get("city_local_date"), inner.get("local_date"))
    if isinstance(day, str) and _date(day) not in (None, payload["city_local_date"]):
        payload["max_so_far"] = None


def _date(text: str) -> str | None:
    try:
        return date.fromisoformat(text.strip()[:10]).isoformat()
    except ValueError:
        return None


def _text(raw: object, chars: int, *, upper: bool = False) -> str | None:
    """Stripped, without control characters, truncated; None if nothing is left."""
    if not isinstance(raw, str):
        return None
    text = raw[: chars * 4]
    if not text.isprintable():
        text = "".join(c for c in text if c.isprintable())
    text = text.strip()[:chars]
    return (text.upper() if upper else text)[:chars] or None


def _series(sources: Sources, raw: object, city: City, source: str) -> str:
    if raw is None or raw == "":
        return sources.default_series(source, city.settlement.source).value
    name = raw.strip().lower() if isinstance(raw, str) else None
    if name not in SERIES:
        raise InputError(f"series_key is one of {', '.join(Series)}", code="invalid_series_key")
    return str(name)


def _points(payload: Json) -> tuple[tuple[str, float], ...]:
    """The points of the curves: the reading itself, and one curve per runway."""
    own = [] if payload["temp"] is None else [(payload["series_key"], payload["temp"])]
    plates = [(PLATE_PREFIX + point["runway"], point["temp"]) for point in payload["runway_points"]]
    return (*own, *plates)
