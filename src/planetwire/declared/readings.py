"""`DeclaredReadings`: a declaration that brings temperatures of the Terminal's cities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from hashlib import blake2b

from planetwire.cities import City, resolve
from planetwire.collect.formats.metar_text import iso
from planetwire.collect.formats.records import Broken
from planetwire.collect.formats.temperature import GREATEST_C, LEAST_C
from planetwire.declared.feed import BodyReader, fetch_rules
from planetwire.declared.model import Declaration, Readings
from planetwire.declared.rows import Row, plain_text
from planetwire.model import Json, Parsed
from planetwire.observing import ObservedSource, Series, SourceProfile

ANSWER_MAX_ROWS = 1_000_000  # more than a body may hold: no answer counts as cut by its sender
STATION_CHARS, LABEL_CHARS = 16, 80  # as the ingest has them
SUM_CHARS = 6


class DeclaredReadings:
    """One request brings all stations there are; those of no city of the Terminal are counted and left."""

    answer_max_rows = ANSWER_MAX_ROWS

    def __init__(self, declaration: Declaration, series: Readings, *, private: bool = False) -> None:
        self.source = declaration.source
        self.default_url = declaration.url
        self.interval_s = declaration.interval
        self.floor_s = declaration.floor
        self.rules = fetch_rules(declaration, private=private)
        fresh = series.freshness
        profile = SourceProfile(
            *(int(limit) for limit in (fresh.cadence, fresh.cadence, fresh.fresh, fresh.grace, fresh.stale))
        )
        self.observed = ObservedSource(self.source, Series(series.series), profile)
        self._series = series
        self._time = declaration.time or ""
        self._reader = BodyReader(declaration)
        self._cities = {station: resolve(name) for station, name in (series.cities or {}).items()}

    def url(self, base: str, stations: Sequence[str], hours: int) -> str:
        """The address as it is: it names no stations."""
        return base

    def chunks(self, hours: int) -> list[tuple[str, ...]]:
        """One request brings all."""
        return [(self.source,)]

    def parse(self, body: bytes, at: datetime) -> Parsed:
        """Rows `station, label, city, obs_time, temp_c, corrected`, the last of each station and time."""
        reading = self._reader.begin(body)
        rows: dict[tuple[str, str], Json] = {}
        for index, record, row in self._reader.rows(reading, at):
            try:
                made = self._made(row)
            except Broken as broken:
                self._reader.refuse(reading, index, record, broken)
                continue
            key = (made["station"], made["obs_time"])
            reading.notes["duplicates"] += key in rows
            rows[key] = made
        return Parsed(
            rows=list(rows.values()),
            rejects=sorted(reading.records.rejects, key=lambda one: one.offset),
            complete=reading.records.complete,
            notes={name: count for name, count in reading.notes.items() if count},
        )

    def _made(self, row: Row) -> Json:
        """A reading without a temperature is one all the same: a station that is silent is not broken."""
        station, at, temp = row[self._series.station], row[self._time], row[self._series.temperature]
        if station is None:
            raise Broken("no station", "no_reading")
        if at is None:
            raise Broken("no time", "bad_time")
        if temp is not None and not LEAST_C <= temp <= GREATEST_C:
            raise Broken(f"no temperature between {LEAST_C:g} and {GREATEST_C:g} °C", "out_of_range")
        name = plain_text(station)
        city = self._city(row, name)
        label = name if self._series.label is None else row[self._series.label]
        return {
            "station": _code(name),
            "label": None if label is None else plain_text(label)[:LABEL_CHARS],
            "city": None if city is None else city.key,
            "obs_time": iso(at),
            "temp_c": temp,
            "corrected": False,
        }

    def _city(self, row: Row, station: str) -> City | None:
        if self._series.city is None:
            return self._cities.get(station)
        name = row[self._series.city]
        return resolve(name) if isinstance(name, str) else None

    def patches(self, rows: Sequence[Json]) -> tuple[list[Json], Counter[str]]:
        """One patch a reading, in time order; how many rows gave none: `no_city`, `no_temp`."""
        skipped: Counter[str] = Counter()
        patches: list[Json] = []
        for row in sorted(rows, key=lambda one: (one["obs_time"], one["station"])):
            if row["city"] is None or row["temp_c"] is None:
                skipped["no_city" if row["city"] is None else "no_temp"] += 1
                continue
            patches.append(self._patch(row))
        return patches, skipped

    def _patch(self, row: Json) -> Json:
        payload = {
            "temp": row["temp_c"],
            "station_code": row["station"],
            "series_key": self._series.series,
            "unit": "celsius",
        }
        if row["label"] is not None:
            payload["station_label"] = row["label"]
        return {
            "type": "city_observation_patch.v1",
            "city": row["city"],
            "source": self.source,
            "obs_time": row["obs_time"],
            "payload": payload,
        }


def _code(name: str) -> str:
    """The station's code, which has a bound: of a longer name the beginning and a sum, so that two stay two."""
    if len(name) <= STATION_CHARS:
        return name
    return f"{name[: STATION_CHARS - SUM_CHARS - 1]}-{blake2b(name.encode(), digest_size=SUM_CHARS // 2).hexdigest()}"
