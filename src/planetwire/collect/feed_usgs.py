"""`usgs_quakes`: earthquakes of the last day, as GeoJSON.

The body is a window on the catalogue, not the catalogue: a quake that left it is old, not gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from planetwire.collect.http import FetchRules
from planetwire.collect.pieces import Piece, in_pieces
from planetwire.collect.records import Records, cleaned, number, read_records, reject
from planetwire.model import Fact, Json, Parsed, Reject

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST_MS, _LATEST_MS = -2_208_988_800_000.0, 4_102_444_800_000.0  # 1900 … 2100
MAX_IDS = 50


class BadQuake(ValueError):
    """Why a feature is refused."""


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
        records = read_records(body, "features")
        notes: Counter[str] = Counter()
        quakes, rejects = _quakes(records)
        rows, gone = _one_per_event(quakes, notes)
        return Parsed(
            rows=rows,
            rejects=sorted((*records.rejects, *rejects), key=lambda one: one.offset),
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
    return count is None or count == len(records.items) + len(records.rejects)


def _quakes(records: Records) -> tuple[list[_Quake], list[Reject]]:
    quakes: list[_Quake] = []
    rejects: list[Reject] = []
    for index, item in records.items:
        try:
            quakes.append(_quake(item))
        except BadQuake as bad:
            rejects.append(reject(str(bad), item, index))
    return quakes, rejects


def _one_per_event(quakes: Sequence[_Quake], notes: Counter[str]) -> tuple[list[Fact], frozenset[str]]:
    """The newest feature of every event, and the keys that no fact may have any more."""
    newest: dict[str, _Quake] = {}
    for quake in quakes:
        known = {id(newest[key]): newest[key] for key in quake.ids if key in newest}
        notes["duplicates"] += len(known)
        best = max((*known.values(), quake), key=lambda one: one.updated_ms)
        every = dict.fromkeys((*best.ids, *quake.ids, *(key for one in known.values() for key in one.ids)))
        newest.update(dict.fromkeys(every, _Quake(tuple(every), best.updated_ms, best.fact)))
    events = list({id(quake): quake for quake in newest.values()}.values())
    rows = [quake.fact for quake in events if quake.fact is not None]
    return rows, frozenset(newest) - {fact.external_key for fact in rows}


def _quake(feature: Any) -> _Quake:
    if not isinstance(feature, dict) or not isinstance(feature.get("properties"), dict):
        raise BadQuake("not a feature with properties")
    key = feature.get("id")
    if not isinstance(key, str) or not key.strip():
        raise BadQuake("the feature has no id")
    properties = feature["properties"]
    ids = tuple(dict.fromkeys((key.strip(), *_aliases(properties))))[:MAX_IDS]
    updated_ms = number(properties.get("updated")) or number(properties.get("time")) or 0.0
    if properties.get("status") == "deleted":
        return _Quake(ids, updated_ms, None)
    return _Quake(ids, updated_ms, _fact(feature, properties, ids))


def _aliases(properties: Mapping[str, Any]) -> list[str]:
    """`,us7000abcd,ci40123456,` as a list."""
    return cleaned(str(properties.get("ids") or "").split(","))


def _time(value: object) -> datetime | None:
    ms = number(value)
    return None if ms is None or not _EARLIEST_MS <= ms <= _LATEST_MS else _EPOCH + timedelta(milliseconds=ms)


def _iso(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _place(feature: Mapping[str, Any]) -> tuple[float | None, float | None, float | None]:
    """lat, lon, depth (km, positive down); all None without a geometry. Raises BadQuake off the globe."""
    geometry = feature.get("geometry")
    coordinates = geometry.get("coordinates") if isinstance(geometry, dict) else None
    if not isinstance(coordinates, list):
        return None, None, None
    lon, lat, depth_km = (number(value) for value in (*coordinates[:3], *(None,) * (3 - len(coordinates[:3]))))
    if lon is None or lat is None:
        return None, None, depth_km
    if not (-90.0 <= lat <= 90.0 and -360.0 <= lon <= 360.0):
        raise BadQuake(f"no place on Earth: lat {lat}, lon {lon}")
    return lat, (lon + 540.0) % 360.0 - 180.0 if abs(lon) > 180.0 else lon, depth_km


def _fact(feature: Mapping[str, Any], properties: Mapping[str, Any], ids: tuple[str, ...]) -> Fact:
    observed_at = _time(properties.get("time"))
    if observed_at is None:
        raise BadQuake(f"no time: {properties.get('time')!r}")
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
        "mag": number(properties.get("mag")),
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
    value = properties.get(name)
    return value.strip() or None if isinstance(value, str) else None
