"""`planetwire sources`: what runs when and how the last run ended, straight from the stores."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from io import StringIO

from rich.console import Console
from rich.table import Table

from planetwire.model import Json
from planetwire.settings import Settings
from planetwire.supervise.commands.jobs_text import clean
from planetwire.supervise.roles import database_of
from planetwire.wiring.commands import source_records
from planetwire.wiring.plugins import left_out_lines, with_plugins

__all__ = ["left_out_lines", "listing", "table"]

WIDTH = 140
UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def listing(settings: Settings, *, as_json: bool) -> str:
    """Every source in name order, as a table and what there is of plug-ins, or as JSON."""
    records = asyncio.run(source_records(settings, database_of(settings) if settings.earth else None))
    return json.dumps(records, indent=2) if as_json else with_plugins(table(records, datetime.now(UTC)))


def table(records: Sequence[Json], now: datetime) -> str:
    """One line a source. `now` turns times into distances."""
    out = Table(box=None, pad_edge=False)
    for column in ("source", "state", "runs", "next", "last success", "rejects", "last error"):
        out.add_column(column, no_wrap=column != "last error", justify="right" if column == "rejects" else "left")
    for record in records:
        out.add_row(
            record["source"],
            _state(record),
            _runs(record),
            _away(record["next_run_at"], now) if record["enabled"] is not False else "–",
            _away(record["last_success_at"], now),
            str(record["rejects"] or 0),
            _error(record),
        )
    text = StringIO()
    Console(file=text, width=WIDTH, color_system=None).print(out)
    return text.getvalue().rstrip()


def _state(record: Json) -> str:
    if record["enabled"] is None:
        return "unknown"
    if not record["enabled"]:
        return "off"
    return "paused" if record.get("paused") else "on"


def _runs(record: Json) -> str:
    if record.get("cron"):
        return f"{record['cron']} ({record['time_zone']})"
    return f"every {_span(record['interval_s'])}" if record["interval_s"] else "–"


def _span(seconds: float) -> str:
    for size, unit in UNITS:
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s"


def _away(text: str | None, now: datetime) -> str:
    if text is None:
        return "–"
    seconds = (datetime.fromisoformat(text) - now).total_seconds()
    size, unit = next(((size, unit) for size, unit in UNITS if abs(seconds) >= size), (1, "s"))
    count = int(abs(seconds) / size)
    return f"in {count} {unit}" if seconds >= 0 else f"{count} {unit} ago"


def _error(record: Json) -> str:
    code, text = record["last_error_code"], record["last_error"]
    return clean(f"[{code}] {text}" if code else text).replace("[", "\\[")
