"""What a declaration makes of one body, for its writer: rows, rejects, keys, ranges, and where the points lie."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from planetwire.collect.formats.body import GZIP_MAGIC, gunzip
from planetwire.collect.parse import MAX_FILE_BYTES
from planetwire.declared.feed import BodyReader
from planetwire.declared.model import spec_of, type_of
from planetwire.declared.read import Declared
from planetwire.declared.rows import iso as _iso
from planetwire.declared.rows import key_text
from planetwire.declared.units import named, ours
from planetwire.errors import FeedError
from planetwire.model import Fact, Json, Parsed

ROWS_SHOWN = 5
REJECTS_SHOWN = 10
COLLISIONS_SHOWN = 5
VALUE_CHARS = 60
MAP_COLUMNS, MAP_ROWS = 72, 18  # five degrees by ten
DENSITY = ".:+*#"  # 1, 2, 3 …, 10 …, 100 … points


def examine(declared: Declared, body: bytes, at: datetime) -> Json:
    """`{source, records, rows, shown, rejects, codes, complete, notes, collisions, fields, skipped, map}`.

    Raises FeedError `bad_body` for a body that is none of this source's.
    """
    if body.startswith(GZIP_MAGIC):
        body = gunzip(body, MAX_FILE_BYTES)
    limit = declared.declaration.max_bytes
    if len(body) > limit:
        raise FeedError(f"{len(body)} bytes, and a body has at most {limit}: `max_bytes`", code="bad_body")
    dataset = declared.dataset
    parsed = declared.feed.parse(body, at)
    facts = [row for row in parsed.rows if isinstance(row, Fact)]
    readings = [row for row in parsed.rows if not isinstance(row, Fact)]
    return {
        "source": declared.source,
        "layer": dataset.layer.id,
        "records": len(parsed.rows) + len(parsed.rejects) + sum(_passed_over(parsed)),
        "rows": len(parsed.rows),
        "shown": [_row(one) for one in facts[:ROWS_SHOWN]] + readings[:ROWS_SHOWN],
        "rejects": [_reject(one) for one in parsed.rejects[:REJECTS_SHOWN]],
        "codes": dict(Counter(one.code for one in parsed.rejects)),
        "complete": parsed.complete,
        "notes": dict(parsed.notes),
        "collisions": _collisions(declared, body, at),
        "fields": _fields(declared, [one.data for one in facts] or readings, facts),
        "skipped": dict(dataset.observation_feeds[0].patches(readings)[1]) if dataset.observation_feeds else {},
        "map": _map([(one.lat, one.lon) for one in facts if one.lat is not None and one.lon is not None]),
    }


def _passed_over(parsed: Parsed) -> Iterable[int]:
    return (parsed.notes.get(name, 0) for name in ("duplicates", "left_out"))


def _row(fact: Fact) -> Json:
    return {
        "external_key": fact.external_key,
        "kind": fact.kind,
        "title": fact.title,
        "lat": fact.lat,
        "lon": fact.lon,
        "observed_at": None if fact.observed_at is None else _iso(fact.observed_at),
        "data": fact.data,
    }


def _reject(one: Any) -> Json:
    return {"code": one.code, "reason": one.reason, "sample": one.sample, "offset": one.offset}


def _collisions(declared: Declared, body: bytes, at: datetime) -> Json:
    """Keys that several records have: that many too few fields are in `key`, or the publisher repeats itself."""
    reader = BodyReader(declared.declaration)
    names = declared.declaration.key
    keys = Counter(key_text([row[name] for name in names]) for _, _, row in reader.rows(reader.begin(body), at))
    several = [(key, count) for key, count in keys.most_common() if count > 1]
    return {"keys": len(several), "shown": {key[:VALUE_CHARS]: count for key, count in several[:COLLISIONS_SHOWN]}}


def _fields(declared: Declared, rows: Sequence[Mapping[str, Any]], facts: Sequence[Fact]) -> list[Json]:
    """Of each field how often it has a value, and its least and greatest."""
    out: list[Json] = []
    for name, given in declared.declaration.fields.items():
        spec = spec_of(given)
        stored = [value for row in rows if (value := row.get(name)) is not None]
        numbers = [value for value in stored if isinstance(value, int | float) and not isinstance(value, bool)]
        if not any(name in row for row in rows):
            continue
        out.append(
            {
                "name": name,
                "type": type_of(spec),
                "unit": _unit(spec.unit, spec.to),
                "values": len(stored),
                "of": len(rows),
                "min": min(numbers, default=None),
                "max": max(numbers, default=None),
                "example": str(stored[0])[:VALUE_CHARS] if stored else None,
            }
        )
    for name, values in (("lat", [one.lat for one in facts]), ("lon", [one.lon for one in facts])):
        there = [value for value in values if value is not None]
        if there:
            out.append(_place(name, there, len(facts)))
    times = sorted(_iso(one.observed_at) for one in facts if one.observed_at is not None)
    if times:
        spread = times[0] if times[0] == times[-1] else f"{times[0]} … {times[-1]}"
        name = str(declared.declaration.time)
        out.append(
            {**_place(name, [], len(facts)), "type": "time", "unit": None, "values": len(times), "example": spread}
        )
    if not facts and any("temp_c" in row for row in rows):
        temps = [row["temp_c"] for row in rows if row["temp_c"] is not None]
        out.append({**_place("temp_c", temps, len(rows)), "unit": "degC"})
    return out


def _place(name: str, values: Sequence[float], of: int) -> Json:
    return {
        "name": name,
        "type": "number",
        "unit": "deg",
        "values": len(values),
        "of": of,
        "min": min(values, default=None),
        "max": max(values, default=None),
        "example": str(values[0]) if values else None,
    }


def _unit(given: str | None, to: str | None) -> str | None:
    if given is None:
        return None
    return named(to) if to is not None else ours(named(given) or given)


def _map(points: Sequence[tuple[float, float]]) -> list[str]:
    """Lines from north to south, each from 180° W to 180° E; empty without points."""
    if not points:
        return []
    counts: Counter[tuple[int, int]] = Counter()
    for lat, lon in points:
        row = min(int((90.0 - lat) / 180.0 * MAP_ROWS), MAP_ROWS - 1)
        counts[row, min(int((lon + 180.0) / 360.0 * MAP_COLUMNS), MAP_COLUMNS - 1)] += 1
    return ["".join(_dot(counts[row, column]) for column in range(MAP_COLUMNS)) for row in range(MAP_ROWS)]


def _dot(count: int) -> str:
    return " " if not count else DENSITY[(count > 1) + (count > 2) + (count >= 10) + (count >= 100)]


def render(report: Json) -> str:
    """The same for people."""
    whole = "" if report["complete"] else "; the body is not whole"
    lines = [f"{report['source']}: {report['rows']} rows of {report['records']} records{whole}"]
    lines += [f"  {count} {name.replace('_', ' ')}" for name, count in sorted(report["notes"].items())]
    lines += [f"  {count} {name.replace('_', ' ')}, not delivered" for name, count in report["skipped"].items()]
    lines += _rejects_text(report)
    collisions = report["collisions"]
    if collisions["keys"]:
        shown = ", ".join(f"{key} ({count})" for key, count in collisions["shown"].items())
        lines.append(f"  {collisions['keys']} keys that several records have, the newest counts: {shown}")
    lines += ["", *_fields_text(report["fields"])]
    for row in report["shown"][:1]:
        lines += ["", f"  first: {row.get('external_key', row.get('station'))} – {row.get('title', row.get('city'))}"]
    if report["map"]:
        edge = f"  +{'-' * MAP_COLUMNS}+"
        lines += ["", edge, *(f"  |{one}|" for one in report["map"]), edge]
    return "\n".join(lines)


def _rejects_text(report: Json) -> list[str]:
    codes = ", ".join(f"{count} {code}" for code, count in sorted(report["codes"].items()))
    lines = [f"  rejects: {codes}"] if codes else ["  no rejects"]
    return lines + [f"    record {one['offset']}: {one['reason']}  {one['sample'][:80]}" for one in report["rejects"]]


def _fields_text(fields: Sequence[Json]) -> list[str]:
    width = max((len(one["name"]) for one in fields), default=0)
    lines = []
    for one in fields:
        values = (
            one["example"] if one["min"] is None else f"{one['min']:g} … {one['max']:g} {one['unit'] or ''}".strip()
        )
        told = f"{one['values']} of {one['of']}"
        lines.append(f"  {one['name']:<{width}}  {one['type']:<8}  {told:>14}  {values or '–'}")
    return lines
