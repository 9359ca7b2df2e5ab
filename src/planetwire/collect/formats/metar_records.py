"""Rows of airport weather reports from the Weather Center's JSON, its CSV cache, or raw text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from planetwire.collect.formats.body import sample_of
from planetwire.collect.formats.json_records import json_records
from planetwire.collect.formats.lines import csv_row, lines_of
from planetwire.collect.formats.metar_text import (
    AHEAD,
    MAX_RAW_CHARS,
    MAX_TEMP_C,
    MIN_TEMP_C,
    BadReport,
    NilReport,
    RawReport,
    iso,
    read,
    reports_in,
)
from planetwire.collect.formats.obs_time import reported_at
from planetwire.collect.formats.records import MAX_RECORD_BYTES, Broken, Records, number_in, reject
from planetwire.errors import FeedError
from planetwire.model import Json

_JSON_NAMES = {"station": ("icaoId", "icao_id", "station_id"), "raw": ("rawOb", "raw_text")}
_TIME_NAMES = ("obsTime", "observation_time", "reportTime")
_TEMP_NAMES = {"temp_c": ("temp", "temp_c"), "dewpoint_c": ("dewp", "dewpoint_c")}
_KIND_NAMES = ("metarType", "metar_type")
_RECEIPT_NAMES = ("receiptTime", "receipt_time")
MAX_REPORTS = 50_000  # per body; the world has about 10,000 per hour
_STATION = re.compile(r"[A-Z0-9]{3,8}")


def records_of(body: bytes) -> Records:
    """JSON objects, named CSV rows, or RawReports, detected from the body. Raises FeedError `bad_body`."""
    if body[:200].lstrip()[:1] == b"[":
        return json_records(body, most=MAX_REPORTS)
    if body[:200].lstrip()[:1] == b"{":
        raise FeedError(f"expected a JSON list of records, got {sample_of(body)!r}", code="bad_body")
    if any(line.startswith(b"raw_text,") for line in body[:2_000].splitlines()):
        return _csv_records(body)
    out = Records(body, most=MAX_REPORTS, made=lambda report: report)
    for report in reports_in(body):
        out.add(report)
    return out


def _csv_records(body: bytes) -> Records:
    """Rows below the `raw_text,…` line. The lines above it announce the number of rows."""
    header: list[str] = []
    out = Records(body, lambda raw: _named(header, csv_row(raw)), MAX_REPORTS)
    announced = None
    for start, end in lines_of(body):
        if header:
            _take_row(out, header, start, end)
        elif body[start : start + 9] == b"raw_text,":
            header += csv_row(body[start:end])
        else:
            announced = _announced(body[start:end][:80].decode("ascii", "replace").split(), announced)
    out.complete = body.endswith(b"\n") and announced in (None, out.count) and out.complete
    return out


def _announced(words: Sequence[str], before: int | None) -> int | None:
    counts = len(words) == 2 and words[1] == "results" and words[0].isdecimal() and len(words[0]) < 10
    return int(words[0]) if counts else before


def _take_row(out: Records, header: Sequence[str], start: int, end: int) -> None:
    try:
        columns = len(csv_row(out.body[start : min(end, start + MAX_RECORD_BYTES + 1)]))
    except Broken as broken:
        out.refuse_place(broken.code, broken.reason, start, end)
        return
    if columns == len(header):
        out.add((start, end))
    else:
        out.refuse_place("broken", f"{columns} columns instead of {len(header)}", start, end)


def _named(header: Sequence[str], row: Sequence[str]) -> Json:
    named: Json = {}
    for name, value in zip(header, row, strict=True):
        named.setdefault(name, value)  # cloud columns repeat their names
    return named


def rows_of(records: Records, at: datetime, notes: Counter[str]) -> list[Json]:
    """One row per station, time and kind; `at` dates raw texts; counts `nil` and `duplicates` in `notes`.

    Refused records are added to the rejects.
    """
    rows: dict[tuple[str, str, str], Json] = {}
    for index, item in records.items():
        try:
            row = read(item, at) if isinstance(item, RawReport) else _decoded(item, at)
        except NilReport:
            notes["nil"] += 1
            continue
        except BadReport as bad:
            sample = item.text if isinstance(item, RawReport) else item
            records.rejects.append(reject(str(bad), sample, index, "no_report"))
            continue
        key = (row["station"], row["obs_time"], row["kind"])
        notes["duplicates"] += key in rows
        rows[key] = _better(rows.get(key), row)
    for row in rows.values():
        row.pop("received", None)
    return list(rows.values())


def _better(before: Json | None, row: Json) -> Json:
    """A correction wins, then the later receipt, then a report with a temperature, then the later in the body."""
    if before is None:
        return row

    def rank(one: Json) -> tuple[bool, str, bool]:
        return one["corrected"], one.get("received") or "", one["temp_c"] is not None

    return row if rank(row) >= rank(before) else before


def _decoded(record: Any, at: datetime) -> Json:
    """A row of the JSON or CSV form: time and station as decoded, temperatures from its raw text."""
    if not isinstance(record, dict):
        raise BadReport("not an object")
    observed = next((time for name in _TIME_NAMES if (time := reported_at(record.get(name)))), None)
    raw = _text(record, _JSON_NAMES["raw"])
    row = _from_raw(raw, observed or at)
    station = _text(record, _JSON_NAMES["station"]).upper() or (row["station"] if row else "")
    if not _STATION.fullmatch(station) or (observed is None and row is None):
        raise BadReport("no station and time")
    row = row or _bare_row(record, station, raw)
    row["station"] = station
    if observed is not None:
        row["obs_time"] = iso(observed)
    row["received"] = _text(record, _RECEIPT_NAMES) or None
    row["kind"] = kind if (kind := _text(record, _KIND_NAMES)) in ("METAR", "SPECI") else row["kind"]
    _fill_from_decoded(row, record)
    if observed is not None and observed > at + AHEAD:
        row["flags"].append("future")
    return row


def _from_raw(raw: str, at: datetime) -> Json | None:
    """The row from the raw text alone; None if it is unreadable."""
    report = next(reports_in(raw.encode("utf-8", "replace")), None) if raw else None
    try:
        return read(report, at) if report else None
    except BadReport:
        return None


def _bare_row(record: Mapping[str, Any], station: str, raw: str) -> Json:
    return {
        "station": station,
        "obs_time": "",
        "temp_c": None,
        "dewpoint_c": None,
        "precision": None,
        "flags": [],
        "kind": "METAR",
        "corrected": False,
        "auto": False,
        "wind": None,
        "raw": raw[:MAX_RAW_CHARS],
    }


def _fill_from_decoded(row: Json, record: Mapping[str, Any]) -> None:
    """Take the decoded value where the raw text has none; null stays null."""
    for name, keys in _TEMP_NAMES.items():
        value = next((found for key in keys if (found := number_in(record.get(key))) is not None), None)
        if row[name] is not None or value is None or "temp_malformed" in row["flags"]:
            continue
        if not MIN_TEMP_C <= value <= MAX_TEMP_C:
            row["flags"].append(f"{name.partition('_')[0]}_out_of_range")
            continue
        row[name] = round(value, 1) + 0.0
        if name == "temp_c":
            row["flags"] = [flag for flag in row["flags"] if flag != "temp_missing"]
            row["precision"] = 1.0 if float(row[name]).is_integer() else 0.1


def _text(record: Mapping[str, Any], names: Sequence[str]) -> str:
    return next((value.strip() for name in names if isinstance(value := record.get(name), str)), "")
