"""`usgs_quakes`: earthquakes of the last day, as GeoJSON.

The body is a window on the catalogue, not the catalogue: a quake that left it is old, not gone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from planetwire.collect.formats.body import without_bom
from planetwire.collect.formats.json_records import json_records
from planetwire.collect.formats.pieces import Piece, in_pieces
from planetwire.collect.formats.records import Records, cleaned, number, reject
from planetwire.collect.formats.shown import shown
from planetwire.collect.http.client import FetchRules
from planetwire.model import Fact, Json, Parsed
from planetwire.model.coordinates import wrapped

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST_MS, _LATEST_MS = -2_208_988_800_000.0, 4_102_444_800_000.0  # 1900 … 2100
_SECONDS_UNTIL = 4_102_444_800.0  # as milliseconds a day of the first weeks of 1970
MAX_QUAKES = 50_000  # the provider gives 20,000 at most
MAX_IDS = 50
MAX_ID_CHARS = 64
MAX_TEXT_CHARS = 500
MIN_MAGNITUDE, MAX_MAGNITUDE = -5.0, 10.0
MIN_DEPTH_KM, MAX_DEPTH_KM = -100.0, 1_000.0
_ID = re.compile(r"[!-~]{1,64}")


class BadQuake(ValueError):
    """Why a feature is refused."""

    def __init__(self, reason: str, code: str) -> None:
        super().__init__(reason)
        self.code = code


@dataclass(frozen=True, slots=True)
class _Quake:
    """One feature: all its ids, its own first, and the fact, or None when the publisher deleted it."""

    ids: tuple[str, ...]
    updated_ms: float
    fact: Fact | None


class UsgsQuakes:
    """One row per event, whatever ids it had; what left the window stays."""

    source = "usgs_quakes"
    kind = "earthquake"
    default_url = "https://earthquake.usgs.gov/earthquakes/feed/v1.0/summary/all_day.geojson"
    interval_s = 60.0
    floor_s = 60.0
    sweeps = False
    rules = FetchRules(first_bytes=b"{")

    def parse(self, body: bytes, at: datetime) -> Parsed:
        """Quakes of one GeoJSON body; `at` is not needed, times are absolute."""
        records = json_records(without_bom(body), "features", most=MAX_QUAKES)
        notes: Counter[str] = Counter()
        quakes = _quakes(records)
        rows, gone = _one_per_event(quakes, notes)
        return Parsed(
            rows=rows,
            rejects=sorted(records.rejects, key=lambda one: one.offset),
            complete=records.complete and _count_agrees(records),
            notes=dict(notes),
            tombstones=gone,
        )

    def pieces(self, body: bytes, at: datetime, rows: int) -> Iterator[Piece | None]:
        """The same piece by piece. All of it is made at first: any record may rename one before it."""
        parsed = self.parse(body, at)
        facts = cast("Sequence[Fact]", parsed.rows)
        yield from in_pieces(
            facts, rows, whole=parsed.complete, total=facts.__len__, end=lambda rest: replace(parsed, rows=rest)
        )


def _count_agrees(records: Records) -> bool:
    metadata = records.around.get("metadata")
    count = number(metadata.get("count")) if isinstance(metadata, dict) else None
    return count is None or count == records.count


def _quakes(records: Records) -> list[_Quake]:
    quakes: list[_Quake] = []
    for index, item in records.items():
        try:
            quakes.append(_quake(item))
        except BadQuake as bad:
            records.rejects.append(reject(str(bad), item, index, bad.code))
    return quakes


class _Events:
    """Features joined by the ids they share, each looked at a few times, however long the chain."""

    def __init__(self) -> None:
        self._groups: dict[str, int] = {}  # of each id, in the order in which they came
        self._joined: list[int] = []  # of each group, the one that it became part of: itself at first
        self._best: list[_Quake] = []
        self.steps = 0  # ids and links that were followed: the measure of what a body costs

    def add(self, quake: _Quake) -> int:
        """How many events it joined: 0 for a new one. The newest of all gives the fact, the first of equally new."""
        self.steps += len(quake.ids)
        known = list(dict.fromkeys(self._root(self._groups[key]) for key in quake.ids if key in self._groups))
        root = known[0] if known else len(self._best)
        if not known:
            self._joined.append(root)
            self._best.append(quake)
        self._best[root] = max((*(self._best[one] for one in known), quake), key=lambda one: one.updated_ms)
        for one in known:
            self._joined[one] = root
        for key in quake.ids:
            self._groups.setdefault(key, root)
        return len(known)

    def _root(self, group: int) -> int:
        while self._joined[group] != group:
            self._joined[group] = group = self._joined[self._joined[group]]
            self.steps += 1
        return group

    def facts(self) -> list[Fact]:
        """One an event that the publisher did not delete, in the order in which events came."""
        roots = dict.fromkeys(map(self._root, self._groups.values()))
        return [fact for root in roots if (fact := self._best[root].fact) is not None]

    def ids(self) -> frozenset[str]:
        """All that any feature had."""
        return frozenset(self._groups)


def _one_per_event(quakes: Sequence[_Quake], notes: Counter[str]) -> tuple[list[Fact], frozenset[str]]:
    """The newest feature of every event, and the keys that no fact may have any more."""
    events = _Events()
    for quake in quakes:
        notes["duplicates"] += events.add(quake)
    rows = events.facts()
    return rows, events.ids() - {fact.external_key for fact in rows}


def _quake(feature: Any) -> _Quake:
    if not isinstance(feature, dict) or not isinstance(feature.get("properties"), dict):
        raise BadQuake("not a feature with properties", "no_record")
    properties = feature["properties"]
    ids = tuple(dict.fromkeys((_id(feature.get("id")), *_aliases(properties))))[:MAX_IDS]
    updated_at = _time(properties.get("updated")) or _time(properties.get("time"))
    updated_ms = 0.0 if updated_at is None else (updated_at - _EPOCH) / timedelta(milliseconds=1)
    if (_text(properties, "status") or "").lower() == "deleted":
        return _Quake(ids, updated_ms, None)
    return _Quake(ids, updated_ms, _fact(feature, properties, ids))


def _id(value: object) -> str:
    key = value.strip() if isinstance(value, str) else ""
    if not _ID.fullmatch(key):
        raise BadQuake(f"no id of 1 to {MAX_ID_CHARS} plain characters: {shown(value)}", "bad_key")
    return key


def _aliases(properties: Mapping[str, Any]) -> list[str]:
    """`,us7000abcd,ci40123456,` as a list; what cannot be an id is none."""
    listed = properties.get("ids")
    return [key for key in cleaned(listed.split(",")) if _ID.fullmatch(key)] if isinstance(listed, str) else []


def _time(value: object) -> datetime | None:
    """None for what is no time of a quake. Seconds where milliseconds belong would be early in 1970."""
    ms = number(value)
    if ms is None or not _EARLIEST_MS <= ms <= _LATEST_MS or 0.0 <= ms < _SECONDS_UNTIL:
        return None
    return _EPOCH + timedelta(milliseconds=ms)


def _iso(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _place(feature: Mapping[str, Any]) -> tuple[float | None, float | None, float | None]:
    """lat, lon, depth (km, positive down); all None without a geometry. Raises BadQuake off the globe."""
    geometry = feature.get("geometry")
    coordinates = geometry.get("coordinates") if isinstance(geometry, dict) else None
    if not isinstance(coordinates, list):
        return None, None, None
    lon, lat, depth_km = (number(value) for value in (*coordinates[:3], *(None,) * (3 - len(coordinates[:3]))))
    depth_km = _within("depth", depth_km, MIN_DEPTH_KM, MAX_DEPTH_KM)
    if lon is None or lat is None:
        return None, None, depth_km
    _within("lat", lat, -90.0, 90.0)
    _within("lon", lon, -360.0, 360.0)
    return lat, wrapped(lon), depth_km


def _within(name: str, value: float | None, least: float, most: float) -> float | None:
    if value is not None and not least <= value <= most:
        raise BadQuake(f"{name} is not in {least:g} … {most:g}: {shown(value)}", "out_of_range")
    return value


def _fact(feature: Mapping[str, Any], properties: Mapping[str, Any], ids: tuple[str, ...]) -> Fact:
    observed_at = _time(properties.get("time"))
    if observed_at is None:
        raise BadQuake(f"no time in milliseconds: {shown(properties.get('time'))}", "bad_time")
    lat, lon, depth_km = _place(feature)
    place = _text(properties, "place")
    return Fact(
        external_key=ids[0],
        kind=_text(properties, "type") or UsgsQuakes.kind,
        title=place or _text(properties, "title") or ids[0],
        data=_data(properties, place, depth_km, ids),
        lat=lat,
        lon=lon,
        observed_at=observed_at,
    )


def _data(properties: Mapping[str, Any], place: str | None, depth_km: float | None, ids: tuple[str, ...]) -> Json:
    return {
        "mag": _within("mag", number(properties.get("mag")), MIN_MAGNITUDE, MAX_MAGNITUDE),
        "mag_type": _text(properties, "magType"),
        "depth_km": depth_km,
        "place": place,
        "type": _text(properties, "type"),
        "status": _text(properties, "status"),
        "tsunami": bool(number(properties.get("tsunami"))),
        "url": _text(properties, "url"),
        "ids": list(ids),
        "updated_at": _iso(_time(properties.get("updated"))),
    }


def _text(properties: Mapping[str, Any], name: str) -> str | None:
    """None for what is no text; raises BadQuake for one that is longer than any place's name."""
    value = properties.get(name)
    text = value.strip() if isinstance(value, str) else ""
    if len(text) > MAX_TEXT_CHARS:
        raise BadQuake(f"{name} has more than {MAX_TEXT_CHARS} characters", "too_large")
    return text or None
