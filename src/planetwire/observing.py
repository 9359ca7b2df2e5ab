"""What is known of each source of city observations: how often it reports, when it counts as late, its series.

A series is one curve of a chart. Sources never share one: where two feed the same `series_key`, the pair is the key.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from planetwire.model import Json

DEFAULT_SOURCE = "weather"


class Series(StrEnum):
    """What a reading stands for. `reference` is shown beside the others and never counts for the headline."""

    AIRPORT_PRIMARY = "airport_primary"
    SETTLEMENT = "settlement"
    METAR = "metar"
    REFERENCE = "reference"
    RUNWAY = "runway"


# Series whose readings may be the current temperature and the high of the day.
HEADLINE_SERIES = (Series.AIRPORT_PRIMARY, Series.SETTLEMENT, Series.METAR, Series.RUNWAY)
PLATE_PREFIX = "runway:"  # history key of one runway's own curve: `runway:17L/35R`; no headline


def headline(readings: Iterable[Json]) -> Json | None:
    """The reading that stands for the city: the newest of a headline series, the later revision of two equally new."""
    candidates = [reading for reading in readings if reading["series_key"] in HEADLINE_SERIES]
    return max(candidates, key=lambda reading: (reading["obs_time"], reading["revision"]), default=None)


class Freshness(StrEnum):
    """How old the newest reading is, in the terms of its source."""

    FRESH = "fresh"
    EXPECTED_WAIT = "expected_wait"
    DELAYED = "delayed"
    STALE = "stale"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class SourceProfile:
    """`cadence_s` is how often the source sends; the others are bounds on the age of its newest reading."""

    cadence_s: int
    native_s: int
    fresh_s: int
    grace_s: int
    stale_s: int

    def freshness(self, age_s: float | None) -> Freshness:
        """State of a reading of this age; None (no time known) is `unknown`."""
        if age_s is None:
            return Freshness.UNKNOWN
        if age_s <= self.fresh_s:
            return Freshness.FRESH
        if age_s <= self.native_s + self.grace_s:
            return Freshness.EXPECTED_WAIT
        return Freshness.DELAYED if age_s <= self.stale_s else Freshness.STALE


METAR_CADENCE_S = 1_800  # of an airport that reports twice an hour
DEFAULT_LIMITS = "default"  # key of the limits of every source that is not named

_ROUTINE = SourceProfile(600, 600, 900, 600, 2700)
_QUARTER_HOUR = SourceProfile(900, 900, 900, 900, 3600)
_MINUTE = SourceProfile(60, 60, 180, 180, 900)

_PROFILES = {
    "amos": _MINUTE,
    "runway_obs": _MINUTE,
    "amsc_awos": SourceProfile(60, 180, 180, 180, 900),
    "cowin_obs": _MINUTE,
    "singapore_mss": SourceProfile(60, 600, 900, 600, 2700),
    "madis_hfmetar": SourceProfile(300, 900, 600, 900, 3600),
    "mgm": SourceProfile(300, 900, 900, 900, 3600),
    "ncm": SourceProfile(600, 900, 900, 900, 3600),
    "aeroweb": _QUARTER_HOUR,
}

_METAR_SOURCES = frozenset({"metar", "awc_metar"})
_STATION_PACED = _METAR_SOURCES | {"noaa"}  # report as often as the city's airport does
_RUNWAY_SOURCES = frozenset({"amos", "amsc_awos", "runway_obs"})
_REFERENCE_SOURCES = frozenset({"cowin_obs"})


def profile(source: str, metar_cadence_s: int = METAR_CADENCE_S) -> SourceProfile:
    """The source's profile in a city whose airport reports that often; a ten-minute station's when it is not known."""
    if source in _STATION_PACED:
        return SourceProfile(metar_cadence_s, metar_cadence_s, 600, 900, 2 * metar_cadence_s + 900)
    return _PROFILES.get(source, _ROUTINE)


def freshness_limits(metar_cadence_s: int = METAR_CADENCE_S) -> dict[str, dict[str, int]]:
    """By source, up to which age in seconds a reading is fresh, awaited, or late; older ones are stale.

    The page counts ages on between two snapshots, by these limits and no own.
    """
    profiles = {name: profile(name, metar_cadence_s) for name in sorted({*_PROFILES, *_STATION_PACED})}
    profiles[DEFAULT_LIMITS] = _ROUTINE
    return {
        name: {"fresh_s": one.fresh_s, "wait_s": max(one.fresh_s, one.native_s + one.grace_s), "stale_s": one.stale_s}
        for name, one in profiles.items()
    }


def default_series(source: str, settlement_source: str) -> Series:
    """The series of a reading that names none, in a city settled by `settlement_source`.

    METAR sources → `metar`; the city's settlement source, or one called `settlement` → `settlement`; runway
    sensors → `runway`; sensors beside the airport → `reference`; anything else → `airport_primary`.
    """
    if source in _METAR_SOURCES:
        return Series.METAR
    if source in ("settlement", settlement_source):
        return Series.SETTLEMENT
    if source in _RUNWAY_SOURCES:
        return Series.RUNWAY
    return Series.REFERENCE if source in _REFERENCE_SOURCES else Series.AIRPORT_PRIMARY
