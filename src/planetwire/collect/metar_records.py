"""Rows of airport weather reports out of the Weather Center's JSON, its CSV cache, or raw text."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from planetwire.collect.metar_text import (
    AHEAD,
    MAX_TEMP_C,
    MIN_TEMP_C,
    BadReport,
    NilReport,
    RawReport,
    iso,
    read,
    reports_in,
)
from planetwire.collect.records import Records, number, read_records, reject
from planetwire.model import Json, Reject

_JSON_NAMES = {"station": ("icaoId", "icao_id", "station_id"), "raw": ("rawOb", "raw_text")}
_TIME_NAMES = ("obsTime", "observation_time", "reportTime")
_TEMP_NAMES = {"temp_c": ("temp", "temp_c"), "dewpoint_c": ("dewp", "dewpoint_c")}
_KIND_NAMES = ("metarType", "metar_type")
_RECEIPT_NAMES = ("receiptTime", "receipt_time")


def records_of(body: bytes) -> Records:
    """JSON objects, named CSV rows, or RawReports, told by the body itself. Raises FeedError `bad_body`."""
    if body.lstrip()[:1] in (b"[", b"{"):
        return read_records(body)
    if any(line.startswith(b"raw_text,") for line in body[:2_000].splitlines()):
        return _csv_records(body.decode("utf-8", "replace"))
    items: list[tuple[int, Any]] = list(enumerate(reports_in(body)))
    return Records(items=items)


def _csv_records(text: str) -> Records:
    """Rows below the `raw_text,…` line. The lines above it say how many rows there are."""
    out = Records(complete=text.endswith("\n"))
    reader = csv.reader(io.StringIO(text, newline=""))
    announced = None
    header: list[str] = []
    for row in reader:
        if not header and row[:1] == ["raw_text"]:
            header = row
        elif not header:
            announced = _announced(row, announced)
        elif row:
            _take_row(row, header, out)
    count = len(out.items) + len(out.rejects)
    out.complete = out.complete and announced in (None, count)
    return out


def _announced(row: Sequence[str], before: int | None) -> int | None:
    words = " ".join(row).split()
    return int(words[0]) if len(words) == 2 and words[1] == "results" and words[0].isdigit() else before


def _take_row(row: Sequence[str], header: Sequence[str], out: Records) -> None:
    index = len(out.items) + len(out.rejects)
    if len(row) == len(header):
        named: dict[str, Any] = {}
        for name, value in zip(header, row, strict=True):
            named.setdefault(name, value)  # cloud columns repeat their names
        out.items.append((index, named))
    else:
        out.rejects.append(reject(f"{len(row)} columns instead of {len(header)}", ",".join(row), index))


def rows_of(records: Records, at: datetime, notes: Counter[str]) -> tuple[list[Json], list[Reject]]:
    """One row a station, time and kind; `at` dates raw texts; counts `nil` and `duplicates` in `notes`."""
    rows: dict[tuple[str, str, str], Json] = {}
    rejects: list[Reject] = []
    for index, item in records.items:
        try:
            row = read(item, at) if isinstance(item, RawReport) else _decoded(item, at)
        except NilReport:
            notes["nil"] += 1
            continue
        except BadReport as bad:
            rejects.append(reject(str(bad), item.text if isinstance(item, RawReport) else item, index))
            continue
        key = (row["station"], row["obs_time"], row["kind"])
        notes["duplicates"] += key in rows
        rows[key] = _better(rows.get(key), row)
    for row in rows.values():
        row.pop("received", None)
    return list(rows.values()), rejects


def _better(before: Json | None, row: Json) -> Json:
    """A correction wins, then the later receipt, then what has a temperature, then what came later."""
    if before is None:
        return row

    def rank(one: Json) -> tuple[bool, str, bool]:
        return one["corrected"], one.get("received") or "", one["temp_c"] is not None

    return row if rank(row) >= rank(before) else before


def _decoded(record: Any, at: datetime) -> Json:
    """A row of the JSON or CSV form: time and station as decoded, temperatures from the raw text it carries."""
    if not isinstance(record, dict):
        raise BadReport("not an object")
    observed = next((time for name in _TIME_NAMES if (time := _time(record.get(name)))), None)
    raw = _text(record, _JSON_NAMES["raw"])
    row = _from_raw(raw, observed or at)
    station = _text(record, _JSON_NAMES["station"]).upper() or (row["station"] if row else "")
    if not station or (observed is None and row is None):
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
    """The raw text read by itself; None when it is no report that can be read."""
    report = next(iter(reports_in(raw.encode())), None) if raw else None
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
        "raw": raw,
    }


def _fill_from_decoded(row: Json, record: Mapping[str, Any]) -> None:
    """Where the raw text gives no value, the decoded one is taken; null stays null."""
    for name, keys in _TEMP_NAMES.items():
        value = next((found for key in keys if (found := _number(record.get(key))) is not None), None)
        if row[name] is not None or value is None or "temp_malformed" in row["flags"]:
            continue
        if not MIN_TEMP_C <= value <= MAX_TEMP_C:
            row["flags"].append(f"{name.partition('_')[0]}_out_of_range")
            continue
        row[name] = round(value, 1) + 0.0
        if name == "temp_c":
            row["flags"] = [flag for flag in row["flags"] if flag != "temp_missing"]
            row["precision"] = 1.0 if float(row[name]).is_integer() else 0.1


def _number(value: object) -> float | None:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    return number(value)


def _text(record: Mapping[str, Any], names: Sequence[str]) -> str:
    return next((value.strip() for name in names if isinstance(value := record.get(name), str)), "")


def _time(value: object) -> datetime | None:
    """Epoch seconds, or ISO text; text without a zone is UTC here."""
    seconds = number(value)
    try:
        if seconds is not None:
            return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
        at = datetime.fromisoformat(value) if isinstance(value, str) and value.strip() else None
    except (ValueError, OverflowError):
        return None
    if at is None:
        return None
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
