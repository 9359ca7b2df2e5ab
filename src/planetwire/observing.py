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

ROUTINE = SourceProfile(600, 600, 900, 600, 2700)
QUARTER_HOUR = SourceProfile(900, 900, 900, 900, 3600)
MINUTE = SourceProfile(60, 60, 180, 180, 900)


@dataclass(frozen=True, slots=True)
class ObservedSource:
    """What is known of one source. `profile` None: it reports as often as the city's airport does."""

    name: str
    series: Series = Series.AIRPORT_PRIMARY
    profile: SourceProfile | None = ROUTINE


# Senders that push to us: they belong to no feed of ours, so there is no declaration that could say it of them.
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
    """Those that are known: what others push, and what feeds declare of themselves. Any other counts as routine."""

    def __init__(self, declared: Iterable[ObservedSource] = ()) -> None:
        self.know(declared)

    def know(self, declared: Iterable[ObservedSource]) -> None:
        """From now on these are what feeds declare."""
        self._known = {one.name: one for one in (*PUSHED, *declared)}

    def profile(self, source: str, metar_cadence_s: int = METAR_CADENCE_S) -> SourceProfile:
        """The source's profile in a city whose airport reports that often; a ten-minute station's if not known."""
        known = self._known.get(source)
        if known is not None and known.profile is None:
            return SourceProfile(metar_cadence_s, metar_cadence_s, 600, 900, 2 * metar_cadence_s + 900)
        return ROUTINE if known is None or known.profile is None else known.profile

    def freshness_limits(self, metar_cadence_s: int = METAR_CADENCE_S) -> dict[str, dict[str, int]]:
        """By source, up to which age in seconds a reading is fresh, awaited, or late; older ones are stale.

        The page counts ages on between two snapshots, by these limits and no own.
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
        """The series of a reading that names none, in a city settled by `settlement_source`.

        METAR sources → `metar`; the city's settlement source, or one called `settlement` → `settlement`; runway
        sensors → `runway`; sensors beside the airport → `reference`; anything else → `airport_primary`.
        """
        known = self._known.get(source, ObservedSource(source))
        if known.series is Series.METAR:
            return Series.METAR
        return Series.SETTLEMENT if source in ("settlement", settlement_source) else known.series
