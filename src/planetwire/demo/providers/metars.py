"""The simulated aviation weather service: `/api/data/metar` and `/data/cache/metars.cache.csv.gz`.

From the server's start every station reports each cadence; before it at its routine minutes. A report depends only on
seed, station and time, so a restarted server repeats the same reports.
"""

from __future__ import annotations

import csv
import gzip
import heapq
import io
import math
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice

import orjson

from planetwire.demo.providers.answer import JSON, TEXT, Answer, Query, text
from planetwire.demo.providers.metar_text import Report, as_raw, as_row, observe
from planetwire.demo.providers.noise import bits, spread
from planetwire.demo.providers.weather import Station, stations, weather

ROWS_MAX = 400
HOURS_MAX = 360.0
_LATEST_S = 2 * 3_600
_CORRECTED_AFTER_S = 75


@lru_cache(maxsize=60_000)
def _issued(seed: int, station: Station, obs_s: int) -> tuple[Report, ...]:
    """The reports of one observation in order of receipt: one, or an erroneous one and its correction."""
    chance = bits(seed, station.key, obs_s, 31)
    receipt_s = obs_s + spread(3, 12, seed, station.key, obs_s, 32)
    report = observe(station, weather(seed, station, obs_s), obs_s, receipt_s)
    if chance % 400 == 0:
        return (replace(report, temp_c=None, dew_c=None),)
    if chance % 150 == 1:
        return (replace(report, kind="SPECI"),)
    if chance % 220 == 2 and report.temp_c is not None:
        wrong = replace(report, temp_c=report.temp_c + 2)
        return wrong, replace(report, corrected=True, receipt_s=receipt_s + _CORRECTED_AFTER_S)
    return (report,)


@dataclass(frozen=True)
class _Times:
    """The observation times of a station."""

    start_s: float
    cadence_s: int

    def newest_first(self, station: Station, since_s: float, now_s: float) -> Iterator[int]:
        dense_s = math.ceil(self.start_s / self.cadence_s) * self.cadence_s
        at_s = int(now_s // self.cadence_s) * self.cadence_s
        while at_s >= max(dense_s, since_s):
            yield at_s
            at_s -= self.cadence_s
        step_s = 1_800 if station.style in ("half", "mps") else 3_600
        offset_s = (51 + station.key % 6) * 60 if station.style == "us" else 0
        at_s = int((min(now_s, dense_s - 1) - offset_s) // step_s) * step_s + offset_s
        while at_s >= since_s:
            yield at_s
            at_s -= step_s


class Metars:
    """Answers METAR queries. Thread-safe."""

    def __init__(self, seed: int, start_s: float, cadence_s: int = 60) -> None:
        if cadence_s < 60 or cadence_s % 60:
            raise ValueError("reports carry whole minutes: the cadence must be a multiple of 60 s")
        self._seed = seed
        self._times = _Times(start_s, cadence_s)
        self._lock = threading.Lock()
        self._kept: dict[str, Answer] = {}

    def reports(self, station: Station, since_s: float, now_s: float) -> Iterator[Report]:
        """Reports received by `now_s` of observations since `since_s`, newest observation first, corrections first."""
        for obs_s in self._times.newest_first(station, since_s, now_s):
            for report in reversed(_issued(self._seed, station, obs_s)):
                if report.receipt_s <= now_s:
                    yield report

    def answer(self, query: Query, now_s: float) -> Answer:
        """Rows of the requested stations: all of the last `hours`, or the latest of each; 204 if there are none."""
        form = query.get("format", "raw").lower()
        if form not in ("json", "raw"):
            return text(400, f'{{"status":"error","error":"Invalid format {form}"}}')
        ids = [one.strip().upper() for one in query.get("ids").split(",") if one.strip()]
        try:
            hours = float(query.get("hours") or 0)
        except ValueError:
            hours = -1.0
        if not ids or not 0 <= hours <= HOURS_MAX:
            return text(400, '{"status":"error","error":"Invalid or missing ids or hours"}')
        asked = [stations()[one] for one in dict.fromkeys(ids) if one in stations()]
        rows = self._last(asked, hours, now_s) if hours else self._latest(asked, now_s)
        return self._write(rows, form) if rows else Answer(b"", JSON, 204)

    def _last(self, asked: Iterable[Station], hours: float, now_s: float) -> list[Report]:
        streams = [self.reports(station, now_s - hours * 3_600, now_s) for station in asked]
        return list(islice(heapq.merge(*streams, key=lambda report: -report.obs_s), ROWS_MAX))

    def _latest(self, asked: Iterable[Station], now_s: float) -> list[Report]:
        firsts = (next(self.reports(station, now_s - _LATEST_S, now_s), None) for station in asked)
        return [report for report in firsts if report is not None][:ROWS_MAX]

    @staticmethod
    def _write(rows: list[Report], form: str) -> Answer:
        received_s = max(report.receipt_s for report in rows)
        if form == "raw":
            lines = "\n".join(as_raw(report) for report in rows) + "\n"
            return Answer(lines.encode(), TEXT, modified_s=received_s)
        return Answer(orjson.dumps([as_row(report) for report in rows]), JSON, modified_s=received_s)

    def cache_file(self, now_s: float) -> Answer:
        """The compressed table of every station's latest report."""
        rows = self._latest(stations().values(), now_s)
        received_s = max((report.receipt_s for report in rows), default=now_s)
        with self._lock:
            key = f"{received_s}:{len(rows)}"
            if key not in self._kept:
                body = gzip.compress(_csv(rows).encode(), mtime=0)
                self._kept = {key: Answer(body, "application/gzip", modified_s=received_s)}
            return self._kept[key]


_BEFORE_SKY = (
    "raw_text,station_id,observation_time,latitude,longitude,temp_c,dewpoint_c,wind_dir_degrees,wind_speed_kt,"
    "wind_gust_kt,visibility_statute_mi,altim_in_hg,sea_level_pressure_mb,corrected,auto,auto_station,"
    "maintenance_indicator_on,no_signal,lightning_sensor_off,freezing_rain_sensor_off,present_weather_sensor_off,"
    "wx_string"
)
_AFTER_SKY = (
    "flight_category,three_hr_pressure_tendency_mb,maxT_c,minT_c,maxT24hr_c,minT24hr_c,precip_in,pcp3hr_in,"
    "pcp6hr_in,pcp24hr_in,snow_in,vert_vis_ft,metar_type,elevation_m"
)
CACHE_HEADER = ",".join([_BEFORE_SKY, *["sky_cover,cloud_base_ft_agl"] * 4, _AFTER_SKY])


def _csv(rows: list[Report]) -> str:
    out = io.StringIO()
    out.write(CACHE_HEADER + "\n")
    csv.writer(out, lineterminator="\n").writerows(_cache_row(report) for report in rows)
    return out.getvalue()


def _cache_row(report: Report) -> list[object]:
    row = as_row(report)
    sky: list[object] = [value for cover, base in report.layers for value in (cover, base)] or [report.sky]
    before = {
        "raw_text": as_raw(report),
        "station_id": report.station.icao,
        "observation_time": report.obs_text,
        "latitude": report.station.lat,
        "longitude": report.station.lon,
        "temp_c": row["temp"],
        "dewpoint_c": row["dewp"],
        "wind_dir_degrees": row["wdir"],
        "wind_speed_kt": row["wspd"],
        "wind_gust_kt": row.get("wgst"),
        "visibility_statute_mi": row["visib"],
        "altim_in_hg": f"{report.altim_hpa / 33.8639:.2f}",
        "sea_level_pressure_mb": row.get("slp"),
        "corrected": "TRUE" if report.corrected else None,
        "auto_station": "TRUE" if report.american else None,
        "wx_string": report.wx,
    }
    after = {
        "flight_category": row["fltCat"],
        "metar_type": report.kind,
        "elevation_m": report.station.elev_m,
    }
    return [
        *(before.get(name) for name in _BEFORE_SKY.split(",")),
        *(sky + [None] * 8)[:8],
        *(after.get(name) for name in _AFTER_SKY.split(",")),
    ]
