"""One body read without network or database, for `planetwire parse` and for tests."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from planetwire.collect.feeds import fact_feeds, observation_feeds, unknown
from planetwire.collect.formats.body import GZIP_MAGIC, gunzip
from planetwire.model import Fact, Json, Parsed, Reject

MAX_FILE_BYTES = 64 * 1024 * 1024  # unpacked; a file may be larger than what a feed may send


def parse_body(source: str, body: bytes, at: datetime) -> Json:
    """`{rows, rejects: [{code, reason, sample, offset}], complete, notes}` of one body, packed by gzip or not.

    A row of a fact feed is `{external_key, kind, title, lat, lon, observed_at, data}`. `at` dates partial times.
    Raises NotFound for an unknown source, FeedError for a body that is none of this feed's.
    """
    facts, observations = fact_feeds(), observation_feeds()
    feed: Any = facts.get(source) or observations.get(source)
    if feed is None:
        raise unknown(source, [*facts, *observations])
    if body.startswith(GZIP_MAGIC):
        body = gunzip(body, MAX_FILE_BYTES)
    parsed: Parsed = feed.parse(body, at)
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
