"""The list of sources as a table."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from planetwire.supervise.commands.sources_cli import table

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
RECORD: dict[str, Any] = {
    "source": "usgs_quakes", "enabled": True, "interval_s": 90, "cron": None, "time_zone": "UTC", "paused": False,
    "next_run_at": "2026-05-04T12:01:30Z", "last_success_at": "2026-05-04T09:59:00Z", "rejects": 3,
    "last_error_code": None, "last_error": None,
}  # fmt: skip


def line(**changes: Any) -> str:
    return table([RECORD | changes], NOW).splitlines()[1].rstrip()


@pytest.mark.parametrize(
    ("changes", "cells"),
    [
        ({}, "usgs_quakes on every 90 s in 1 min 2 h ago 3"),
        ({"interval_s": 7200.0}, "usgs_quakes on every 2 h in 1 min 2 h ago 3"),
        ({"paused": True}, "usgs_quakes paused every 90 s in 1 min 2 h ago 3"),
        ({"enabled": False}, "usgs_quakes off every 90 s – 2 h ago 3"),
        (
            {"cron": "0 4 * * 1-5", "time_zone": "Asia/Shanghai", "next_run_at": "2026-05-05T20:00:09Z"},
            "usgs_quakes on 0 4 * * 1-5 (Asia/Shanghai) in 1 d 2 h ago 3",
        ),
        (
            {"last_error_code": "bad_body", "last_error": "HTML [sic]"},
            "usgs_quakes on every 90 s in 1 min 2 h ago 3 [bad_body] HTML [sic]",
        ),
    ],
)
def test_a_source_is_one_line(changes: dict[str, Any], cells: str) -> None:
    assert line(**changes).split() == cells.split()


def test_a_feed_of_which_nothing_is_known_yet_is_listed_too() -> None:
    keys = ("enabled", "interval_s", "next_run_at", "last_success_at", "rejects", "last_error_code", "last_error")
    shown = table([{"source": "awc_metar", **dict.fromkeys(keys)}], NOW).splitlines()[1]
    assert shown.split() == ["awc_metar", "unknown", "–", "–", "–", "0"]
