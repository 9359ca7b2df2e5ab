"""Snapshots of the terminal from stored readings. Pure.

A page that applies patches with `is_latest` to a snapshot arrives at the next snapshot: both use the same headline
(observing.headline).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from planetwire.cities import City
from planetwire.model import Json
from planetwire.observing import PLATE_PREFIX, Freshness, Series, Sources, headline
from planetwire.runtime.clock import utc_text

History = Sequence[tuple[str, str, datetime, float]]
High = tuple[float, datetime] | None

CURVE_BACK = timedelta(hours=24)  # at least; the local day so far may be longer
POINTS_MAX = 1_500  # of one curve: a day of 25 hours by the minute


def curve_start(city: City, now: datetime) -> datetime:
    """The start of a city's curves: its local day so far, and 24 hours at least."""
    return min(day_start(city, now), now - CURVE_BACK)


def day_start(city: City, now: datetime) -> datetime:
    """When the city's present day began."""
    return city.day_start(city.local(now).date())


def freshness(sources: Sources, city: City, reading: Json | None, now: datetime) -> Freshness:
    """The freshness of the city's reading by the limits of its source; `unknown` without a reading."""
    if reading is None:
        return Freshness.UNKNOWN
    known = sources.profile(reading["source"], city.metar_cadence_s)
    return known.freshness((now - reading["obs_time"]).total_seconds())


def _own_limits(sources: Sources, city: City) -> Json:
    """Where the city's limits differ from those of the list as a whole."""
    usual, own = sources.freshness_limits(), sources.freshness_limits(city.metar_cadence_s)
    return {source: limits for source, limits in own.items() if limits != usual[source]}


def scan_row(sources: Sources, city: City, now: datetime, readings: Sequence[Json], high: High) -> Json:
    """The city's row of `/api/scan/terminal`; values are null until there is a reading. Temperatures are °C."""
    current = headline(readings)
    return {
        "id": city.key.replace(" ", "-"),
        "city": city.key,
        "display_name": city.display_name,
        "display_name_zh": city.display_name_zh,
        "airport": city.airport,
        "icao": city.icao,
        "aliases": list(city.aliases),
        "lat": city.lat_deg,
        "lon": city.lon_deg,
        "timezone": city.timezone,
        "local_date": city.local(now).date().isoformat(),
        "temp_symbol": city.temp_symbol,
        "current_temp": current and current["temp"],
        "current_max_so_far": None if high is None else high[0],
        "obs_time": current and utc_text(current["obs_time"]),
        "source": current and current["source"],
        "series_key": current and current["series_key"],
        "freshness": freshness(sources, city, current, now),
        "freshness_limits": _own_limits(sources, city),
        "rank": city.rank,
    }


def detail(sources: Sources, city: City, now: datetime, readings: Sequence[Json], history: History, high: High) -> Json:
    """The content of `/api/city/{name}/detail`, cursor and stamp aside. Curves rise by time; temperatures are °C."""
    today = day_start(city, now)
    settling = Series.METAR if city.settlement.source == "metar" else Series.SETTLEMENT
    return {
        "city": city.key,
        "display_name": city.display_name,
        "display_name_zh": city.display_name_zh,
        "timezone": city.timezone,
        "unit": "fahrenheit" if city.use_fahrenheit else "celsius",
        "local_date": city.local(now).date().isoformat(),
        "airport_primary": _primary(headline(readings)),
        "freshness": freshness(sources, city, headline(readings), now),
        "freshness_limits": sources.freshness_limits(city.metar_cadence_s),
        "timeseries": {
            "series": _curves(sources, city, readings, history),
            "metar_today_obs": _observations(history, Series.METAR, today),
            "settlement_today_obs": _observations(history, settling, today),
        },
        "day_high": None if high is None else {"temp": high[0], "obs_time": utc_text(high[1])},
        "runway_plate_history": _plates(history),
        "settlement_station": settlement_station(city),
        "errors": [],
    }


def summary(sources: Sources, city: City, now: datetime, readings: Sequence[Json], high: High) -> Json:
    """The content of `/api/city/{name}/summary`: the headline alone."""
    current = headline(readings)
    local = city.local(now)
    return {
        "name": city.key,
        "display_name": city.display_name,
        "icao": city.icao,
        "timezone": city.timezone,
        "utc_offset_seconds": int((local.utcoffset() or timedelta()).total_seconds()),
        "local_date": local.date().isoformat(),
        "temp_symbol": city.temp_symbol,
        "current": {
            "temp": current and current["temp"],
            "obs_time": current and utc_text(current["obs_time"]),
            "source": current and current["source"],
            "freshness": freshness(sources, city, current, now),
            "max_so_far": None if high is None else high[0],
            "settlement_source": city.settlement.source,
            "settlement_source_label": city.settlement.label,
        },
        "updated_at": current and utc_text(current["obs_time"]),
    }


def registry_entry(city: City) -> Json:
    """A city of `/api/cities`."""
    return {
        "city": city.key,
        "display_name": city.display_name,
        "display_name_zh": city.display_name_zh,
        "airport": city.airport,
        "icao": city.icao,
        "iata": city.iata,
        "lat": city.lat_deg,
        "lon": city.lon_deg,
        "timezone": city.timezone,
        "temp_symbol": city.temp_symbol,
        "settlement_station": settlement_station(city),
        "aliases": list(city.aliases),
        "rank": city.rank,
    }


def settlement_station(city: City) -> Json:
    """The station that settles the city's day; `runway` if sensors beside one replace it."""
    return {
        "source": city.settlement.source,
        "station_code": city.settlement.station,
        "label": city.settlement.label,
        "runway": city.settlement_runway,
    }


def _primary(reading: Json | None) -> Json | None:
    if reading is None:
        return None
    return {
        "temp": reading["temp"],
        "obs_time": utc_text(reading["obs_time"]),
        "source": reading["source"],
        "station_code": reading["station_code"],
        "series_key": reading["series_key"],
    }


def _curves(sources: Sources, city: City, readings: Sequence[Json], history: History) -> list[Json]:
    """One curve a (series, source), in a fixed order; runways have their own place."""
    labels = {(r["series_key"], r["source"]): r["station_label"] or r["station_code"] for r in readings}
    curves: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for series_key, source, at, temp_c in history:
        if not series_key.startswith(PLATE_PREFIX):
            curves.setdefault((series_key, source), []).append((round(at.timestamp() * 1000), temp_c))
    return [
        {
            "series_key": series_key,
            "source": source,
            "label": labels.get((series_key, source)) or source,
            "cadence_s": sources.profile(source, city.metar_cadence_s).cadence_s,
            "points": thin(curves[series_key, source]),
        }
        for series_key, source in sorted(curves)
    ]


def thin(points: Sequence[tuple[int, float]]) -> Sequence[tuple[int, float]]:
    """The points, or only the last of each minute if there are more than a curve may have."""
    if len(points) <= POINTS_MAX:
        return points
    return list({at_ms // 60_000: (at_ms, temp_c) for at_ms, temp_c in points}.values())


def _observations(history: History, series: str, since: datetime) -> list[Json]:
    return [
        {"time": utc_text(at), "temp": temp_c}
        for series_key, _, at, temp_c in history
        if series_key == series and at >= since
    ]


def _plates(history: History) -> dict[str, list[Json]]:
    """Each runway's curve under its name."""
    plates: dict[str, list[tuple[int, float]]] = {}
    for series_key, _, at, temp_c in history:
        if series_key.startswith(PLATE_PREFIX):
            name = series_key.removeprefix(PLATE_PREFIX)
            plates.setdefault(name, []).append((round(at.timestamp() * 1000), temp_c))
    return {name: [_point(*point) for point in thin(plates[name])] for name in sorted(plates)}


def _point(at_ms: int, temp_c: float) -> Json:
    return {"time": utc_text(datetime.fromtimestamp(at_ms / 1000, UTC)), "temp": temp_c}
