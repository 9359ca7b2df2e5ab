"""A stored patch as the bytes on the wire, and the key that identifies a repeated patch. Pure."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from operator import itemgetter

import orjson

from planetwire.model import Json, ObservationPatch

TYPE = "city_observation_patch.v1"
SCHEMA_TYPE = "city_observation_patch"
SCHEMA_VERSION = 1

# The sender's content. The other payload keys depend on the time of arrival, so a retry would differ in them.
CONTENT_KEYS = ("temp", "max_so_far", "station_code", "station_label", "series_key", "unit", "runway_points")
_content = itemgetter(*CONTENT_KEYS)
# Payload keys copied to the top level of an event.
TIME_KEYS = (
    "observed_at_utc",
    "observed_at_local",
    "city_local_date",
    "city_timezone",
    "city_utc_offset_seconds",
    "source_cadence_sec",
    "received_at_utc",
    "latency_sec",
)


def content_hash(patch: ObservationPatch) -> bytes:
    """16 bytes over the sender's content; city, source and observation time are compared separately."""
    return hashlib.blake2b(orjson.dumps(_content(patch.payload)), digest_size=16).digest()


Key = tuple[str, str, str, int, bytes]


def key_of(patch: ObservationPatch) -> Key:
    """City, source, series, observation time (0 when the sender gave none) and content."""
    obs_ms = 0 if patch.obs_time is None else ms_of(patch.obs_time)
    return patch.city, patch.source, patch.payload["series_key"], obs_ms, content_hash(patch)


def ms_of(at: datetime) -> int:
    """Milliseconds since 1970."""
    return round(at.timestamp() * 1000)


def time_of(ms: int) -> datetime:
    """The aware UTC time of so many milliseconds since 1970."""
    return datetime.fromtimestamp(ms / 1000, UTC)


def stamp(at: datetime) -> str:
    """The text of `created_at`: of fixed width, so that texts sort as times do."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def obs_time_text(patch: ObservationPatch) -> str | None:
    """`2026-05-26T10:02:00Z`, or None when the sender gave no time."""
    return None if patch.obs_time is None else patch.payload["observed_at_utc"]


def wire_body(patch: ObservationPatch, revision: int, prev_revision: int, epoch: str, *, is_latest: bool) -> bytes:
    """The event as JSON. `is_latest`: no headline reading of the city stored so far is newer."""
    event: Json = {
        "type": TYPE,
        "schema_type": SCHEMA_TYPE,
        "schema_version": SCHEMA_VERSION,
        "revision": revision,
        "prev_revision": prev_revision,
        "epoch": epoch,
        "city": patch.city,
        "source": patch.source,
        "obs_time": obs_time_text(patch),
        "ts": patch.ts_ms,
        "payload": {**patch.payload, "is_latest": is_latest},
    }
    for key in TIME_KEYS:
        if key in patch.payload:
            event[key] = patch.payload[key]
    return orjson.dumps(event)
