"""Profiles of the sources of city observations: how often each reports, when it counts as late, its series.

A series is one curve of a chart. Sources never share one: if two feed the same `series_key`, the pair is the key.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from planetwire.model import Json

DEFAULT_SOURCE = "weather"


class Series(StrEnum):
    """The kind of a reading. `reference` is shown beside the others and never used for the headline."""

    AIRPORT_PRIMARY = "airport_primary"
    SETTLEMENT = "settlement"
    METAR = "metar"
    REFERENCE = "reference"
    RUNWAY = "runway"


# Series whose readings may be the current temperature and the high of the day.
HEADLINE_SERIES = (Series.AIRPORT_PRIMARY, Series.SETTLEMENT, Series.METAR, Series.RUNWAY)
PLATE_PREFIX = "runway:"  # history key of one runway's own curve: `runway:17L/35R`; no headline


def headline(readings: Iterable[Json]) -> Json | None:
    """The city's headline reading: the newest of a headline series; of equally new ones the later revision."""
    candidates = [reading for reading in readings if reading["series_key"] in HEADLINE_SERIES]
    return max(candidates, key=lambda reading: (reading["obs_time"], reading["revision"]), default=None)


class Freshness(StrEnum):
    """The age of the newest reading, relative to its source's profile."""

    FRESH = "fresh"
    EXPECTED_WAIT = "expected_wait"
    DELAYED = "delayed"
    STALE = "stale"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class SourceProfile:
    """`cadence_s`: the source's interval; the others are limits on the age of its newest reading."""

    cadence_s: int
    native_s: int
    fresh_s: int
    grace_s: int
    stale_s: int

    def freshness(self, age_s: float | None) -> Freshness:
        """The freshness at this age; None (no time known) is `unknown`."""
        if age_s is None:
            return Freshness.UNKNOWN
        if age_s <= self.fresh_s:
            return Freshness.FRESH
        if age_s <= self.native_s + self.grace_s:
            return Freshness.EXPECTED_WAIT
        return Freshness.DELAYED if age_s <= self.stale_s else Freshness.STALE


METAR_CADENCE_S = 1_800  # an airport that reports twice an hour
DEFAULT_LIMITS = "default"  # key of the limits of all other sources

ROUTINE = SourceProfile(600, 600, 900, 600, 2700)
QUARTER_HOUR = SourceProfile(900, 900, 900, 900, 3600)
MINUTE = SourceProfile(60, 60, 180, 180, 900)


@dataclass(frozen=True, slots=True)
class ObservedSource:
    """One known source. `profile` None: it reports as often as the city's airport does."""

    name: str
    series: Series = Series.AIRPORT_PRIMARY
    profile: SourceProfile | None = ROUTINE


# Senders that push to us: no feed of ours, and so no declaration, describes them.
PUSHED = (
    ObservedSource("amos", Series.RUNWAY, MINUTE),
    ObservedSource("amsc_awos", Series.RUNWAY, SourceProfile(60, 180, 180, 180, 900)),
    ObservedSource("cowin_obs", Series.REFERENCE, MINUTE),
    ObservedSource("singapore_mss", profile=SourceProfile(60, 600, 900, 600, 2700)),
    ObservedSource("madis_hfmetar", profile=SourceProfile(300, 900, 600, 900, 3600)),
    ObservedSource("mgm", profile=SourceProfile(300, 900, 900, 900, 3600)),
    ObservedSource("ncm", profile=SourceProfile(600, 900, 900, 900, 3600)),
    ObservedSource("aeroweb", profile=QUARTER_HOUR),
    ObservedSource("metar", Series.METAR, None),
    ObservedSource("noaa", profile=None),
)


class Sources:
    """The known sources: those that push, and those that feeds declare. Any other gets the routine profile."""

    def __init__(self, declared: Iterable[ObservedSource] = ()) -> None:
        self.know(declared)

    def know(self, declared: Iterable[ObservedSource]) -> None:
        """From now on these are what feeds declare."""
        self._known = {one.name: one for one in (*PUSHED, *declared)}

    def profile(self, source: str, metar_cadence_s: int = METAR_CADENCE_S) -> SourceProfile:
        """The source's profile in a city whose airport reports that often; unknown sources: a ten-minute station's."""
        known = self._known.get(source)
        if known is not None and known.profile is None:
            return SourceProfile(metar_cadence_s, metar_cadence_s, 600, 900, 2 * metar_cadence_s + 900)
        return ROUTINE if known is None or known.profile is None else known.profile

    def freshness_limits(self, metar_cadence_s: int = METAR_CADENCE_S) -> dict[str, dict[str, int]]:
        """By source, the age in seconds up to which a reading is fresh, awaited, or late; older ones are stale.

        The page advances ages between two snapshots by these limits; it has none of its own.
        """
        profiles = {name: self.profile(name, metar_cadence_s) for name in sorted(self._known)}
        profiles[DEFAULT_LIMITS] = ROUTINE
        return {
            name: {
                "fresh_s": one.fresh_s,
                "wait_s": max(one.fresh_s, one.native_s + one.grace_s),
                "stale_s": one.stale_s,
            }
            for name, one in profiles.items()
        }

    def default_series(self, source: str, settlement_source: str) -> Series:
        """The series of a reading without one, in a city settled by `settlement_source`.

        METAR sources → `metar`; the city's settlement source, or one called `settlement` → `settlement`; runway
        sensors → `runway`; sensors beside the airport → `reference`; anything else → `airport_primary`.
        """
        known = self._known.get(source, ObservedSource(source))
        if known.series is Series.METAR:
            return Series.METAR
        return Series.SETTLEMENT if source in ("settlement", settlement_source) else known.series
