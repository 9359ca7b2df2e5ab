"""The simulated runway sensors: `/runways/readings.json`, in the format that `runway_obs` parses.

From half an hour before the server's start each runway reports every cadence, before that every ten minutes. A reading
depends only on seed, runway and time: the airport's weather, a few tenths warmer or colder along the runway.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache

import orjson

from planetwire.demo.providers.answer import JSON, Answer, Query, text
from planetwire.demo.providers.noise import bits, smooth, spread
from planetwire.demo.providers.weather import Station, Weather, stations, weather

HOURS_MAX = 24.0
BEFORE_S = 600
DENSE_BEFORE_S = 1_800  # so that no sensor counts as late when the demo begins
LATE_S = 4  # from a reading to its publication
KNOT_MPS = 0.514444

# Airports of cities with sensors beside their runways, and the designators of these.
RUNWAYS = {
    "RKSI": ("15L/33R", "15R/33L", "16L/34R", "16R/34L"),
    "RKPK": ("18L/36R", "18R/36L"),
    "ZBAA": ("18L/36R", "18R/36L", "19/01"),
    "ZSPD": ("16L/34R", "16R/34L", "17L/35R", "17R/35L"),
    "ZGGG": ("01/19", "02L/20R", "02R/20L"),
    "ZUUU": ("02L/20R", "02R/20L"),
    "ZUCK": ("02L/20R", "20R/02L"),
    "ZHHH": ("04/22", "05L/23R"),
    "ZSQD": ("16/34", "17/35"),
}


class Runways:
    """Answers the readings of the last hours. Thread-safe."""

    def __init__(self, seed: int, start_s: float, cadence_s: int = 60) -> None:
        self._seed = seed
        self._dense_s = math.ceil((start_s - DENSE_BEFORE_S) / cadence_s) * cadence_s
        self._cadence_s = cadence_s

    def answer(self, query: Query, now_s: float) -> Answer:
        """All runways of all airports, oldest first."""
        try:
            hours = float(query.get("hours") or 1)
        except ValueError:
            hours = -1.0
        if not 0 < hours <= HOURS_MAX:
            return text(400, f"hours: more than 0, at most {HOURS_MAX:g}")
        times = list(self._times(now_s - hours * 3_600, now_s - LATE_S))
        parts = [_readings(self._seed, stations()[icao], at_s) for at_s in reversed(times) for icao in RUNWAYS]
        body = b'{"readings":[' + b",".join(parts) + b"]}"
        return Answer(body, JSON, modified_s=times[0] if times else None)

    def _times(self, since_s: float, until_s: float) -> Iterator[int]:
        """The times of readings, newest first."""
        at_s = int(until_s // self._cadence_s) * self._cadence_s
        while at_s >= max(self._dense_s, since_s):
            yield at_s
            at_s -= self._cadence_s
        at_s = int(min(until_s, self._dense_s - 1) // BEFORE_S) * BEFORE_S
        while at_s >= since_s:
            yield at_s
            at_s -= BEFORE_S


@lru_cache(maxsize=4_096)
def _readings(seed: int, station: Station, at_s: int) -> bytes:
    """One airport's runways at one time, as JSON list members."""
    air = weather(seed, station, at_s)
    rows = [_reading(seed, station, number, name, at_s, air) for number, name in enumerate(RUNWAYS[station.icao])]
    return orjson.dumps(rows)[1:-1]


def _reading(seed: int, station: Station, number: int, name: str, at_s: int, air: Weather) -> dict[str, object]:
    keys = (seed, station.key, number)
    base = air.temp_c + spread(-0.5, 0.5, *keys, 71) + 0.25 * smooth(at_s, 900, *keys, 72)
    places: list[float | None] = [
        round(base + spread(-0.3, 0.3, *keys, 73, place) + 0.1 * smooth(at_s, 240, *keys, 74, place), 1)
        for place in range(3)
    ]
    if bits(*keys, at_s, 75) % 200 == 0:  # a sensor is out of order for this minute
        places[bits(*keys, at_s, 76) % 3] = None
    return {
        "airport": station.icao,
        "runway": name,
        "time": _iso(at_s),
        "tdz_temp_c": places[0],
        "mid_temp_c": places[1],
        "end_temp_c": places[2],
        "wind_dir_deg": air.wind_deg,
        "wind_speed_mps": round(max(0.0, air.wind_kt + smooth(at_s, 120, *keys, 77)) * KNOT_MPS, 1),
    }


def _iso(at_s: int) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
