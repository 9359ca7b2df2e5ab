"""`planetwire jobs …`: the ledger from a shell, straight from the database, so it works while the page is down."""

from __future__ import annotations

import asyncio
import difflib
import json
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from io import StringIO
from typing import TypeVar

from rich.console import Console
from rich.table import Table
from typer import BadParameter

from planetwire.model import Job, JobRequest, JobStatus, TaskType
from planetwire.settings import Settings
from planetwire.supervise.roles import database_of
from planetwire.web.job_record import job_record
from planetwire.wiring import Ledger, check_request, open_ledger

T = TypeVar("T")
WIDTH = 140


def _run(settings: Settings, work: Callable[[Ledger], Awaitable[T]]) -> T:
    async def run() -> T:
        async with open_ledger(settings, database_of(settings)) as ledger:
            return await work(ledger)

    return asyncio.run(run())


def _choice(text: str, allowed: Sequence[str], what: str) -> str:
    if text in allowed:
        return text
    near = difflib.get_close_matches(text, allowed, n=1, cutoff=0.0)[0]
    raise BadParameter(f"unknown {what} {text!r}; did you mean {near}? ({', '.join(allowed)})")


def ls(settings: Settings, *, status: str | None, source: str | None, limit: int, as_json: bool) -> str:
    """Newest first, as a table or JSON."""
    if status is not None:
        _choice(status, [s.value for s in JobStatus], "status")

    async def work(ledger: Ledger) -> Sequence[Job]:
        return (await ledger.board.page(status=status, source=source, cursor=None, limit=limit))[0]

    found = _run(settings, work)
    if as_json:
        return json.dumps([job_record(job) for job in found], indent=2)
    return _table(found) if found else "no jobs"


def _table(found: Sequence[Job]) -> str:
    table = Table(box=None, pad_edge=False)
    for column in ("id", "type", "source", "status", "records", "age", "message"):
        table.add_column(
            column, no_wrap=column != "message", justify="right" if column in ("id", "records") else "left"
        )
    for job in found:
        total = f"/{job.records_total}" if job.records_total else ""
        note = job.error or job.message or ""
        if job.error_code:
            note = f"[{job.error_code}] {note}"
        table.add_row(
            str(job.id),
            job.task_type,
            job.source or "–",
            job.status,
            f"{job.records_processed}{total}",
            _age(job.created_at),
            note.replace("[", "\\["),
        )
    out = StringIO()
    Console(file=out, width=WIDTH, color_system=None).print(table)
    return out.getvalue().rstrip()


def _age(since: datetime) -> str:
    seconds = int((datetime.now(UTC) - since).total_seconds())
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{max(seconds, 0)} s"


def submit(settings: Settings, task_type: str, source: str, *, priority: int, key: str | None, as_json: bool) -> str:
    """The job, new or already waiting."""
    _choice(task_type, [t.value for t in TaskType], "task type")
    request = JobRequest(TaskType(task_type), source, priority=priority, idempotency_key=key)

    async def work(ledger: Ledger) -> tuple[Job, bool]:
        return await ledger.queue.submit(check_request(request))

    job, created = _run(settings, work)
    if as_json:
        return json.dumps({"task_id": job.id, "status": job.status, "created": created})
    return f"job {job.id} {job.status}" if created else f"job {job.id} was already waiting ({job.status})"


def cancel(settings: Settings, task_id: int, *, as_json: bool) -> str:
    """Ask a job to stop."""

    async def work(ledger: Ledger) -> Job:
        return await ledger.queue.cancel(task_id)

    job = _run(settings, work)
    return json.dumps({"task_id": job.id, "status": job.status}) if as_json else f"job {job.id} {job.status}"


def show(settings: Settings, task_id: int) -> str:
    """One job as JSON."""

    async def work(ledger: Ledger) -> Job:
        return await ledger.board.get(task_id)

    return json.dumps(job_record(_run(settings, work)), indent=2)
