"""`planetwire layers`: what the globe can show, how much of it and how old, straight from the database."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from io import StringIO

from rich.console import Console
from rich.table import Table

from planetwire.model import Json
from planetwire.settings import Settings
from planetwire.supervise.commands.jobs_text import since
from planetwire.supervise.roles import database_of
from planetwire.wiring.commands import layer_records
from planetwire.wiring.plugins import with_plugins

WIDTH = 140


def listing(settings: Settings, *, as_json: bool) -> str:
    """Every layer in the registry's order, as a table and what there is of plug-ins, or as JSON."""
    records = asyncio.run(layer_records(settings, database_of(settings)))
    return (
        json.dumps(records, indent=2, ensure_ascii=False, default=asdict)
        if as_json
        else with_plugins(table(records, datetime.now(UTC)))
    )


def table(records: Sequence[Json], now: datetime) -> str:
    """One line a layer. `now` turns times into distances."""
    out = Table(box=None, pad_edge=False)
    for column in ("layer", "state", "objects", "last success", "strategy", "sources"):
        out.add_column(column, no_wrap=column != "sources", justify="right" if column == "objects" else "left")
    for record in records:
        count, at = record["count"], record["last_success_at"]
        out.add_row(
            record["id"],
            record["state"],
            "–" if count is None else f"{count:,}",
            f"{since(datetime.fromisoformat(at), now)} ago" if at else "–",
            record["strategy"],
            ", ".join(record["sources"]) or "all",
        )
    text = StringIO()
    Console(file=text, width=WIDTH, color_system=None).print(out)
    return text.getvalue().rstrip()
