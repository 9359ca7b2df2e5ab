"""The state of each observation feed between two runs, one JSON file per source.

The feed process writes its runs, the web process an operator's changes; a lock prevents lost updates.
"""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import orjson

from planetwire.collect.bodies_file import file_of, write_atomically
from planetwire.collect.recent_runs import last_hour
from planetwire.log import get_logger
from planetwire.model import Json
from planetwire.private import make_file, make_folders
from planetwire.text import plain_json

log = get_logger()

RUN_KEYS = (
    "enabled",
    "interval_s",
    "next_run_at",
    "last_run_at",
    "last_success_at",
    "last_error_code",
    "last_error",
    "rejects",
    "rejects_last_run",
    "rows_last_run",
    "cooldown_until",
    "floor_s",
    "reject_codes",
    "sample",
)


class FeedStates:
    """Files `<source>.json` in a folder. An unreadable file counts as empty: the feed starts from scratch."""

    def __init__(self, folder: Path, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._folder = folder
        self._now = now

    def read(self, source: str) -> Json:
        """The record of the source; empty at first."""
        path = file_of(self._folder, source, ".json")
        try:
            value = orjson.loads(path.read_bytes())
        except FileNotFoundError:
            return {}
        except (orjson.JSONDecodeError, OSError) as error:
            log.warning("collect.feed_state.unreadable", source=source, error=str(error))
            return {}
        return value if isinstance(value, dict) else {}

    def update(self, source: str, changes: Json) -> Json:
        """Set these keys, keep the others; returns the whole record."""
        path = file_of(self._folder, source, ".json")
        with self._locked():
            record = self.read(source) | changes
            write_atomically(path, orjson.dumps(plain_json.plain(record), option=orjson.OPT_INDENT_2))
        return record

    def runs(self, sources: Sequence[str]) -> list[Json]:
        """A record per source with the keys of `GET /api/v1/sources`; None for values not yet known."""
        return [self._run(source) for source in sources]

    def _run(self, source: str) -> Json:
        record = self.read(source)
        known = {"source": source, **{key: record.get(key) for key in RUN_KEYS}}
        requests, rows = last_hour(record.get("recent"), self._now())
        return known | {"requests_hour": requests, "rows_hour": rows}

    def failures(self, sources: Sequence[str]) -> list[Json]:
        """Per source its consecutive failures, their error, and its last success."""
        return [_failure(source, self.read(source)) for source in sources]

    @contextmanager
    def _locked(self) -> Iterator[None]:
        make_folders(self._folder)
        make_file(self._folder / ".lock")
        with (self._folder / ".lock").open("wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _failure(source: str, record: Json) -> Json:
    failures = record.get("failures")
    return {
        "source": source,
        "failures": failures if isinstance(failures, int) else 0,
        "code": str(record.get("last_error_code") or ""),
        "error": str(record.get("last_error") or ""),
        "last_success_at": record.get("last_success_at"),
    }
