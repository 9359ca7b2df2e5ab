"""Event logs, and the patches pushed into them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from planetwire.errors import InputError
from planetwire.model.common import Json

EPOCH_PATTERN = r"[a-z0-9]{12}"
_CURSOR = re.compile(rf"(?:(?P<epoch>{EPOCH_PATTERN})-)?(?P<revision>\d{{1,18}})")


@dataclass(frozen=True, slots=True)
class Cursor:
    """A position in one log: the id of the log (`epoch`) and a revision in it. Written `<epoch>-<revision>`."""

    epoch: str
    revision: int

    def __str__(self) -> str:
        return f"{self.epoch}-{self.revision}"


def parse_cursor(text: str) -> tuple[str | None, int]:
    """Epoch (None when only a number was given) and revision. Raises InputError `bad_cursor`."""
    match = _CURSOR.fullmatch(text.strip())
    if match is None:
        raise InputError(f"not a revision or <epoch>-<revision>: {text[:40]!r}", code="bad_cursor")
    return match["epoch"], int(match["revision"])


@dataclass(frozen=True, slots=True)
class LogEvent:
    """One event of a log. `body` is the JSON object as stored: the bytes that go on the wire."""

    topic: str
    revision: int
    prev_revision: int
    body: bytes


@dataclass(frozen=True, slots=True)
class BusMessage:
    """A message to another service. `id` stays the same when it is sent again; order is kept within a `key`."""

    id: str
    key: str
    kind: str
    body: bytes


class ResyncReason(StrEnum):
    """Why a cursor cannot be served; the client fetches a snapshot."""

    REPLAY_WINDOW_EXCEEDED = "replay_window_exceeded"
    REPLAY_FAILED = "replay_failed"
    REVISION_AHEAD = "revision_ahead"
    EPOCH_CHANGED = "epoch_changed"
    SLOW_CONSUMER = "slow_consumer"


@dataclass(frozen=True, slots=True)
class ObservationPatch:
    """One normalised reading, ready to be stored: the content of a `city_observation_patch.v1`.

    `obs_time` is aware UTC or None when the sender gave none; `payload` holds the v1 payload keys,
    temperatures in °C; `points` are (series_key, °C) pairs for the intraday history.
    """

    city: str
    source: str
    obs_time: datetime | None
    ts_ms: int
    payload: Json
    points: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Appended:
    """The result of storing a patch. A duplicate gives the old revision and `duplicate` True; no event then."""

    revision: int
    duplicate: bool
    event: LogEvent | None
