"""`runway_obs`: readings of the sensors beside an airport's runways, pulled as JSON from an address of the operator's.

No public service has this shape, so there is no address to begin with: until one is set the feed is off.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from planetwire.cities import BY_KEY, CITIES, City, by_icao
from planetwire.collect.formats.body import is_html, sample_of, without_bom
from planetwire.collect.formats.runway_records import records_of, rows_of
from planetwire.collect.http.client import FetchRules
from planetwire.collect.push.runway import POINTS_MAX
from planetwire.errors import FeedError
from planetwire.model import Json, Parsed
from planetwire.observing import MINUTE, ObservedSource, Series

LIMIT_BYTES = 8 * 1024 * 1024  # a day of forty runways, each minute; two hours of them are a twelfth
ANSWER_MAX_ROWS = 1_000_000  # more than a body may hold: no answer is taken for one that was cut by its sender


class RunwayObs:
    """Readings of the runways of airports that belong to cities; parsing reads every airport it is given."""

    source = "runway_obs"
    default_url = ""
    interval_s = 60.0
    floor_s = 60.0
    rules = FetchRules(empty_ok=True, limit_bytes=LIMIT_BYTES)
    answer_max_rows = ANSWER_MAX_ROWS
    observed = ObservedSource(source, Series.RUNWAY, MINUTE)

    def url(self, base: str, stations: Sequence[str], hours: int) -> str:
        """Address of one request: the readings of so many hours, of whatever airports there are."""
        return f"{base}{'&' if '?' in base else '?'}hours={hours}"

    def chunks(self, hours: int) -> list[tuple[str, ...]]:
        """One request brings all."""
        return [tuple(city.icao for city in CITIES)]

    def parse(self, body: bytes, at: datetime) -> Parsed:
        """Rows `station, city, runway, obs_time, temp_c, tdz_temp_c, mid_temp_c, end_temp_c, wind, flags, corrected`.

        One a runway and time, the later in the body of two. Raises FeedError `bad_body` for what is no list of records.
        """
        body = without_bom(body)
        if is_html(body):
            raise FeedError(f"expected readings, got HTML: {sample_of(body)!r}", code="bad_body")
        notes: Counter[str] = Counter()
        records = records_of(body)
        rows = rows_of(records, notes)
        return Parsed(
            rows=rows,
            rejects=sorted(records.rejects, key=lambda one: one.offset),
            complete=records.complete,
            notes={name: count for name, count in notes.items() if count},
        )

    def patches(self, rows: Sequence[Json]) -> tuple[list[Json], Counter[str]]:
        """One patch an airport and time, with all its runways; how many rows gave none: `no_city`, `no_temp`,
        `over_runways`.
        """
        skipped: Counter[str] = Counter()
        groups: dict[tuple[str, str, str], list[Json]] = {}
        for row in rows:
            city = BY_KEY.get(row["city"] or "") or by_icao(row["station"])
            if city is None:
                skipped["no_city"] += 1
            elif row["temp_c"] is None:
                skipped["no_temp"] += 1
            else:
                groups.setdefault((row["obs_time"], city.key, row["station"] or city.icao), []).append(row)
        return [_patch(*key, groups[key], skipped) for key in sorted(groups)], skipped


def _patch(obs_time: str, key: str, station: str, rows: Sequence[Json], skipped: Counter[str]) -> Json:
    """`temp` is that of the runway that stands for the city; without it the patch has runways and no headline."""
    city = BY_KEY[key]
    # The one that stands for the city first: it is never what there is no room for.
    rows = sorted(rows, key=lambda row: (not city.is_settlement_runway(row["runway"]), row["runway"]))
    skipped["over_runways"] += len(rows[POINTS_MAX:])
    payload: Json = {
        "station_code": station,
        "series_key": "runway",
        "unit": "celsius",
        "runway_points": [_point(row) for row in rows[:POINTS_MAX]],
    }
    if (temp := _headline(city, rows)) is not None:
        payload["temp"] = temp
    return {
        "type": "city_observation_patch.v1",
        "city": key,
        "source": RunwayObs.source,
        "obs_time": obs_time,
        "payload": payload,
    }


def _headline(city: City, rows: Sequence[Json]) -> float | None:
    return next((row["temp_c"] for row in rows if city.is_settlement_runway(row["runway"])), None)


def _point(row: Json) -> Json:
    return {
        "runway": row["runway"],
        "temp": row["temp_c"],
        **{name: row[f"{name}_c"] for name in ("tdz_temp", "mid_temp", "end_temp")},
    }
