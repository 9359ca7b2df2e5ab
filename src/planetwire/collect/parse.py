"""Parses one body without network or database, for `planetwire parse` and for tests."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from planetwire.collect.feeds import FactFeed, ObservationFeed, unknown
from planetwire.collect.formats.body import GZIP_MAGIC, gunzip
from planetwire.model import Fact, Json, Parsed, Reject

MAX_FILE_BYTES = 64 * 1024 * 1024  # unpacked; a file may be larger than a feed's body


def parse_body(source: str, body: bytes, at: datetime, feeds: Mapping[str, FactFeed | ObservationFeed]) -> Json:
    """`{rows, rejects: [{code, reason, sample, offset}], complete, notes}` of one body, with or without gzip.

    A row of a fact feed is `{external_key, kind, title, lat, lon, observed_at, data}`. `at` dates partial times.
    Raises NotFound for an unknown source, FeedError for a body that is not this feed's.
    """
    if source not in feeds:
        raise unknown(source, feeds)
    if body.startswith(GZIP_MAGIC):
        body = gunzip(body, MAX_FILE_BYTES)
    parsed: Parsed = feeds[source].parse(body, at)
    return {
        "rows": [_row(row) for row in parsed.rows],
        "rejects": [_reject(one) for one in parsed.rejects],
        "complete": parsed.complete,
        "notes": dict(parsed.notes),
    }


def _row(row: Fact | Json) -> Json:
    if not isinstance(row, Fact):
        return row
    return {
        "external_key": row.external_key,
        "kind": row.kind,
        "title": row.title,
        "lat": row.lat,
        "lon": row.lon,
        "observed_at": _iso(row.observed_at),
        "data": row.data,
    }


def _reject(one: Reject) -> Json:
    return {"code": one.code, "reason": one.reason, "sample": one.sample, "offset": one.offset}


def _iso(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat().replace("+00:00", "Z")
