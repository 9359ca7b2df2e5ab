"""`awc_metar`: airport weather reports, as the Aviation Weather Center's JSON, its CSV cache, or raw bulletins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from urllib.parse import urlencode

from planetwire.cities import CITIES
from planetwire.collect.formats.body import is_html, sample_of, without_bom
from planetwire.collect.formats.metar_records import records_of, rows_of
from planetwire.collect.http.client import FetchRules
from planetwire.errors import FeedError
from planetwire.model import Json, Parsed
from planetwire.observing import ObservedSource, Series

ANSWER_MAX_ROWS = 400  # the provider gives no more reports in one answer
STATIONS_PER_REQUEST = 60
STATIONS_PER_DAY_REQUEST = 8  # of 24 h, about 25–50 reports a station
MAX_HOURS = 24
LIMIT_BYTES = 4 * 1024 * 1024  # 400 reports are a tenth of that, the provider's file of all stations two thirds


class AwcMetar:
    """Reports of the airports that belong to cities; parsing reads every station it is given."""

    source = "awc_metar"
    default_url = "https://aviationweather.gov/api/data/metar"
    interval_s = 60.0
    floor_s = 60.0
    rules = FetchRules(empty_ok=True, limit_bytes=LIMIT_BYTES)
    answer_max_rows = ANSWER_MAX_ROWS
    observed = ObservedSource(source, Series.METAR, profile=None)

    def __init__(self) -> None:
        self._city_of = {city.icao: city.key for city in CITIES if city.icao}

    @property
    def stations(self) -> tuple[str, ...]:
        """The stations asked for, each once."""
        return tuple(self._city_of)

    def url(self, base: str, stations: Sequence[str], hours: int) -> str:
        """Address of one request."""
        query = urlencode({"ids": ",".join(stations), "format": "json", "hours": hours}, safe=",")
        return f"{base}{'&' if '?' in base else '?'}{query}"

    def chunks(self, hours: int) -> list[tuple[str, ...]]:
        """The stations, in the groups in which they are asked for."""
        size = STATIONS_PER_REQUEST if hours <= 2 else STATIONS_PER_DAY_REQUEST
        return [self.stations[at : at + size] for at in range(0, len(self.stations), size)]

    def parse(self, body: bytes, at: datetime) -> Parsed:
        """Rows `station, obs_time, temp_c, dewpoint_c, precision, kind, corrected, auto, wind, raw, flags`.

        `at` dates reports that give only day and hour. Raises FeedError `bad_body` for a web page or an error text.
        """
        body = without_bom(body)
        if is_html(body):
            raise FeedError(f"expected reports, got HTML: {sample_of(body)!r}", code="bad_body")
        notes: Counter[str] = Counter()
        records = records_of(body)
        rows = rows_of(records, at, notes)
        return Parsed(
            rows=rows,
            rejects=sorted(records.rejects, key=lambda one: one.offset),
            complete=records.complete,
            notes={name: count for name, count in notes.items() if count},
        )

    def patches(self, rows: Sequence[Json]) -> tuple[list[Json], Counter[str]]:
        """Ingest patches in time order, and how many rows gave none: `no_city`, `no_temp`, `superseded`.

        One patch a station and time: a correction wins over what it corrects, a routine report over a special.
        """
        skipped: Counter[str] = Counter()
        best: dict[tuple[str, str], Json] = {}
        for row in rows:
            if row["station"] not in self._city_of:
                skipped["no_city"] += 1
            elif row["temp_c"] is None:
                skipped["no_temp"] += 1
            else:
                key = (row["station"], row["obs_time"])
                skipped["superseded"] += key in best
                best[key] = max(best.get(key, row), row, key=lambda one: (one["corrected"], one["kind"] == "METAR"))
        rows_in_time = sorted(best.values(), key=lambda row: (row["obs_time"], row["station"]))
        return [self._patch(row) for row in rows_in_time], skipped

    def _patch(self, row: Json) -> Json:
        return {
            "type": "city_observation_patch.v1",
            "city": self._city_of[row["station"]],
            "source": self.source,
            "obs_time": row["obs_time"],
            "payload": {
                "temp": row["temp_c"],
                "station_code": row["station"],
                "series_key": "metar",
                "unit": "celsius",
            },
        }
