"""Simulated weather at airports: a smooth function of station and time, with a diurnal cycle by the sun."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from planetwire.demo.providers.noise import smooth

_DAY_S = 86_400
_YEAR_S = 365.2425 * _DAY_S
_WARMEST_S = 201 * _DAY_S
"""Within the year, north of the equator; half a year later south of it."""

_PEAK_HOUR = 14.6
"""Local solar hour of the day's highest temperature."""


@dataclass(frozen=True, slots=True)
class Station:
    """An airport. `season_c`: half the annual range; `day_c`: the range of a clear day.

    `style`, how it reports: `us` (hourly, tenths), `hour`, `half` (hourly) or `mps` (half-hourly, wind in m/s).
    """

    icao: str
    name: str
    lat: float
    lon: float
    elev_m: int
    mean_c: float
    season_c: float
    day_c: float
    style: str

    @property
    def key(self) -> int:
        """A distinct number, as a key of the noise."""
        return int.from_bytes(self.icao.encode(), "big")


@dataclass(frozen=True, slots=True)
class Weather:
    """The air at one place and time; `cloud` is a share 0..1, wind direction 0 means calm."""

    temp_c: float
    dew_c: float
    wind_deg: int
    wind_kt: float
    gust_kt: float | None
    pressure_hpa: float
    cloud: float


@cache
def stations() -> dict[str, Station]:
    """The packaged stations by ICAO id."""
    table = (files("planetwire.demo") / "samples" / "stations.csv").read_text(encoding="utf-8")
    rows = [
        Station(
            row["icao"],
            row["name"],
            float(row["lat"]),
            float(row["lon"]),
            int(row["elev_m"]),
            float(row["mean_c"]),
            float(row["season_c"]),
            float(row["day_c"]),
            row["style"],
        )
        for row in csv.DictReader(table.splitlines())
    ]
    return {station.icao: station for station in rows}


def sun_swing(station: Station, at_s: float) -> float:
    """The clear-sky diurnal curve, from about -0.5 before sunrise to 0.5 in the afternoon."""
    hour = (at_s / 3_600 + station.lon / 15) % 24
    angle = 2 * math.pi * (hour - _PEAK_HOUR) / 24
    return 0.45 * math.cos(angle) + 0.08 * math.cos(2 * angle)


def climate_c(station: Station, at_s: float) -> float:
    """The temperature of the season, by the calendar alone."""
    warmest_s = _WARMEST_S if station.lat >= 0 else _WARMEST_S + _YEAR_S / 2
    return station.mean_c + station.season_c * math.cos(2 * math.pi * (at_s % _YEAR_S - warmest_s) / _YEAR_S)


def weather(seed: int, station: Station, at_s: float) -> Weather:
    """The weather at a time; consecutive minutes differ by tenths."""
    keys = (seed, station.key)

    def drift(period_s: float, which: int) -> float:
        return smooth(at_s, period_s, *keys, which)

    cloud = min(1.0, max(0.0, 0.45 + 0.65 * drift(30_000, 1) + 0.12 * drift(2_400, 2)))
    fronts = min(1.0, 0.25 + abs(station.lat) / 55)
    temp = (
        climate_c(station, at_s)
        + sun_swing(station, at_s) * station.day_c * (1 - 0.55 * cloud)
        + 4.0 * fronts * drift(150_000, 3)
        + 0.8 * drift(25_000, 4)
        + 0.3 * drift(900, 5)
        + 0.15 * drift(150, 6)
    )
    gap = max(0.3, 2.5 + 7.5 * (1 - cloud) * (0.8 + sun_swing(station, at_s)) + 2.0 * drift(40_000, 7))
    wind_kt = max(0.0, 8.5 + 6.5 * drift(28_000, 8) + 2.5 * drift(500, 9))
    heading = round((200 + 170 * drift(90_000, 10) + 25 * drift(1_500, 11)) / 10) * 10 % 360 or 360
    gust = wind_kt + 8 + 4 * drift(700, 12) if wind_kt > 13.5 and drift(700, 12) > -0.5 else None
    return Weather(temp, temp - gap, heading, wind_kt, gust, 1_013 + 13 * drift(200_000, 13), cloud)
