"""`planetwire audit`: who did what, newest first."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import typer

from planetwire.errors import BackendError, SetupError
from planetwire.model.acts import Act, AuditEntry, AuditQuery
from planetwire.settings import Settings
from planetwire.supervise.commands.jobs_text import clean, table
from planetwire.supervise.commands.person import local_actor
from planetwire.supervise.roles import database_of
from planetwire.web.access.audit import entry_record
from planetwire.wiring.commands import open_audit

_SPAN = re.compile(r"(\d{1,6})\s*(s|min|h|d)")
_SECONDS = {"s": 1, "min": 60, "h": 3_600, "d": 86_400}


def listing(settings: Settings, asked: AuditQuery, limit: int, *, as_json: bool) -> str:
    """As a table or JSON."""

    async def read() -> tuple[Sequence[AuditEntry], int | None]:
        dsn = database_of(settings) if settings.earth else None
        async with open_audit(settings, dsn) as audit:
            return await audit.page(asked, None, limit)

    entries, more = asyncio.run(read())
    if as_json:
        return json.dumps([entry_record(entry) for entry in entries], indent=2, ensure_ascii=False)
    if not entries:
        return "nobody did anything" if asked == AuditQuery() else "no such entry"
    lines = [table(("when", "who", "from", "what", "job", "source", "details"), [_row(entry) for entry in entries])]
    return "\n".join(
        lines + [f"older ones exist: --limit {min(limit * 4, 500)}, --since, --who, --source"] * bool(more)
    )


def note(settings: Settings, what: str, **details: Any) -> None:
    """Record an act of the person at this shell: in the ledger's database, or in the data dir while it is unreachable.

    Raises BackendError if neither works; then the act must not be done.
    """
    act = Act(local_actor(), what, details=details)

    async def keep(dsn: str | None) -> None:
        async with open_audit(settings, dsn) as audit:
            await audit.note(act)

    try:
        asyncio.run(keep(database_of(settings) if settings.earth else None))
    except (SetupError, BackendError):
        asyncio.run(keep(None))


def _row(entry: AuditEntry) -> tuple[str, ...]:
    act = entry.act
    return (
        f"{entry.at.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z",
        f"{clean(act.by.who)} ({act.by.role})",
        clean(act.by.address) or "–",
        clean(act.what),
        str(act.task_id or "–"),
        clean(act.source) or "–",
        details_text(entry),
    )


def details_text(entry: AuditEntry) -> str:
    """What else is known, in a few words."""
    act = entry.act
    words = [] if act.rows_deleted is None else [f"{act.rows_deleted:,} rows deleted"]
    words += [
        f"{name} {clean(value if isinstance(value, str) else json.dumps(value))}" for name, value in act.details.items()
    ]
    return ", ".join(words)


def since_of(text: str | None, now: datetime) -> datetime | None:
    """An ISO 8601 time, or how long ago: `90 min`, `7d`. Raises BadParameter."""
    if text is None:
        return None
    ago = _SPAN.fullmatch(text.strip())
    if ago is not None:
        return now - timedelta(seconds=int(ago[1]) * _SECONDS[ago[2]])
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise typer.BadParameter(
            f"neither a time nor a span like 7d or 90min: {text!r}", param_hint="--since"
        ) from error
    return at if at.tzinfo else at.replace(tzinfo=UTC)
