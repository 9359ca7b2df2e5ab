"""`planetwire outbox …`: what waits on its way to the map, straight from the database."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from io import StringIO
from typing import TypeVar

from rich.console import Console
from rich.table import Table
from rich.text import Text

from planetwire.diagnosis.path import open_outbox
from planetwire.model import Json
from planetwire.outbox.upkeep.desk_postgres import OutboxDesk, Which
from planetwire.settings import Settings
from planetwire.supervise.commands.person import local_actor
from planetwire.supervise.roles import database_of

T = TypeVar("T")

WIDTH = 140


def lag(settings: Settings, *, as_json: bool) -> str:
    """How far behind."""
    found = _run(settings, lambda desk: desk.lag())
    return json.dumps(found, indent=2) if as_json else _lag_text(found)


def peek(settings: Settings, which: str, limit: int, *, as_json: bool) -> str:
    """`which`: pending, quarantined or unmapped."""
    rows = _run(settings, lambda desk: desk.peek(Which(which), limit))
    return json.dumps(rows, indent=2) if as_json else _rows_text(rows, which)


def retry(settings: Settings, ids: Sequence[int] | None, *, as_json: bool) -> tuple[str, list[int]]:
    """The text to print, and the given ids that were not deferred. `ids` None: all."""
    done = _run(settings, lambda desk: desk.retry(local_actor(), ids or None))
    missed = sorted(set(ids or ()) - set(done))
    if as_json:
        return json.dumps({"retried": done, "not_put_off": missed}, indent=2), missed
    return f"rows tried again: {len(done)}", missed


def _run(settings: Settings, work: Callable[[OutboxDesk], Awaitable[T]]) -> T:
    async def run() -> T:
        async with open_outbox(database_of(settings)) as desk:
            return await work(desk)

    return asyncio.run(run())


def _lag_text(found: Json) -> str:
    """For people."""
    leader = found["leader"]
    lines = [
        f"pending      {found['pending']}",
        f"oldest       {found['oldest_age_s']:.1f} s",
        f"quarantined  {found['quarantined']}",
        f"leader       {leader['holder'] if leader['held'] else 'none'} (term {leader['term']})",
        f"revision     {leader['epoch']}-{leader['revision']}",
    ]
    for pair in found["unmapped"]:
        lines.append(f"unmapped     {pair['table']}/{pair['source']}: {pair['changes']} changes")
    return "\n".join(lines)


def _rows_text(rows: Sequence[Json], which: str) -> str:
    """A table, or that there is nothing."""
    if not rows:
        return f"no {which} rows"
    table = Table(box=None, pad_edge=False)
    for column in ("id", "table", "operation", "source", "records", "age", "state", "attempts", "error"):
        table.add_column(column, no_wrap=column != "error", justify="right" if column in ("id", "records") else "left")
    for row in rows:
        shown = [row["id"], row["table"], row["operation"], row["source"] or "all", row["records"]]
        shown += [f"{row['age_s']:.0f} s", row["state"], row["attempts"], row["error"] or ""]
        table.add_row(*(Text(str(value)) for value in shown))
    out = StringIO()
    Console(file=out, width=WIDTH, color_system=None).print(table)
    return out.getvalue().rstrip()
