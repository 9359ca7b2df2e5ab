"""The runs of a feed in the last hour, as its record keeps them: how much it asked and got in that time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

HOUR = timedelta(hours=1)
KEPT_MAX = 120  # runs; a feed runs every 30 s at most

Run = tuple[str, int, int]  # when (ISO), requests, rows


def with_run(kept: object, at: datetime, requests: int, rows: int) -> list[Run]:
    """What was kept and is not too old, and this run."""
    runs = [run for run, began in _read(kept) if at - began < HOUR]
    return [*runs, (at.astimezone(UTC).isoformat(), requests, rows)][-KEPT_MAX:]


def last_hour(kept: object, now: datetime) -> tuple[int, int]:
    """Requests and rows of the hour before `now`."""
    runs = [run for run, began in _read(kept) if now - began < HOUR]
    return sum(requests for _, requests, _ in runs), sum(rows for _, _, rows in runs)


def _read(kept: object) -> list[tuple[Run, datetime]]:
    """A file that somebody edited may hold anything: what is no run is left out."""
    found: list[tuple[Run, datetime]] = []
    for entry in kept if isinstance(kept, list) else []:
        try:
            at, requests, rows = entry
            began = datetime.fromisoformat(at)
            if began.tzinfo is not None and min(int(requests), int(rows)) >= 0:
                found.append(((at, int(requests), int(rows)), began))
        except (TypeError, ValueError):
            continue
    return found
