"""Jobs as text for a shell. Pure; `now` is the ledger's clock.

Errors and samples come from outside feeds, so their control characters must not reach the terminal.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from io import StringIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from planetwire.jobs.ledger.board_postgres import Standing
from planetwire.model import Job, JobLine, JobStatus
from planetwire.model.acts import AuditEntry

UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))
NARROWEST, USUAL = 80, 140
FREE = Standing()
COUNTED_MAX = 10_000
WIDEST = {"sample": 48, "source": 28, "code": 28}  # so that a long name leaves room for the last column


def span(seconds: float) -> str:
    """A length of time in its largest unit."""
    size, unit = next(((size, unit) for size, unit in UNITS if seconds >= size), (1, "s"))
    return f"{max(int(seconds / size), 0)} {unit}"


def since(at: datetime | None, now: datetime) -> str:
    """How long ago."""
    return span((now - at).total_seconds()) if at else "–"


def clean(text: str | None) -> str:
    """On one line, without control characters."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in " ".join((text or "").split()))


def fault(job: Job) -> str:
    """Code and text of the last failure, or nothing."""
    return f"[{job.error_code}] {clean(job.error)}" if job.error_code else clean(job.error)


def records(job: Job) -> str:
    """Records done, of how many, in percent."""
    done = f"{job.records_processed:,}"
    return f"{done}/{job.records_total:,} ({job.progress:.0%})" if job.records_total else done


def kept(job: Job) -> str:
    """How much is committed, as text."""
    batches = f"{job.batches} batch{'' if job.batches == 1 else 'es'}"
    return f"{batches} with {job.records_processed:,} record{'' if job.records_processed == 1 else 's'}"


def waits_for(job: Job, now: datetime, standing: Mapping[str, Standing]) -> tuple[str, str]:
    """Why a queued job does not run: a key that changes only with the reason, and the text for people."""
    if job.scheduled_at is not None and job.scheduled_at > now:
        away = f"in {span((job.scheduled_at - now).total_seconds())}"
        if job.attempts:
            return "backoff", f"attempt {job.attempts} of {job.max_attempts} failed, again {away}: {fault(job)}"
        return "scheduled", f"scheduled {away}"
    if job.task_type.is_write and job.source is not None:
        stands = standing.get(job.source, FREE)
        if stands.paused_at is not None:
            return "paused", f"its source has been paused for {since(stands.paused_at, now)}"
        if stands.running_id not in (None, job.id):  # its own id: it was claimed between the two queries
            return f"behind {stands.running_id}", f"behind job {stands.running_id}, which runs"
        if stands.head_id is not None and stands.head_id != job.id:
            return f"behind {stands.head_id}", f"behind job {stands.head_id}"
    return "free", "may run; no worker has taken it yet"


def note(job: Job, now: datetime, standing: Mapping[str, Standing]) -> str:
    """The last column: the details that matter for a job in this state."""
    if job.status is JobStatus.QUEUED:
        return waits_for(job, now, standing)[1]
    words = [fault(job) or clean(job.message)]
    if job.rejects:
        words.append(f"{job.rejects:,} rejects")
    if job.retried_as is not None:
        words.append(f"tried again as {job.retried_as}")
    return "; ".join(filter(None, words))


def state(job: Job) -> str:
    """The status; of a running job also its phase."""
    return f"{job.status} {job.phase}" if job.status is JobStatus.RUNNING and job.phase else job.status.value


def when(job: Job, now: datetime) -> str:
    """How long it has been waiting, running, being cancelled, or finished."""
    if job.status.is_final:
        return f"{since(job.finished_at, now)} ago"
    word, at = {
        JobStatus.RUNNING: ("runs", job.started_at),
        JobStatus.CANCELLING: ("stopping", job.cancel_requested_at),
    }.get(job.status, ("waits", job.created_at))
    return f"{word} {since(at, now)}"


def listing(jobs: Sequence[Job], now: datetime, standing: Mapping[str, Standing]) -> str:
    """One line a job."""
    rows = [
        (
            str(job.id),
            job.task_type,
            clean(job.source) or "–",
            state(job),
            records(job),
            when(job, now),
            note(job, now, standing),
        )
        for job in jobs
    ]
    return table(("id", "type", "source", "status", "records", "when", "note"), rows)


def dead_listing(jobs: Sequence[Job], now: datetime) -> str:
    """One line a failed job, with what was at fault."""
    rows = [
        (
            str(job.id),
            job.task_type,
            clean(job.source) or "–",
            since(job.finished_at, now),
            f"{job.attempts}/{job.max_attempts}",
            job.error_code or "–",
            clean(job.error),
            clean(job.sample),
        )
        for job in jobs
    ]
    return table(("id", "type", "source", "age", "attempts", "code", "error", "sample"), rows)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as the terminal permits."""
    out_table = Table(box=None, pad_edge=False)
    for column in columns:
        wide = column in ("note", "error", "sample", "details")
        out_table.add_column(
            column,
            no_wrap=not wide,
            overflow="fold" if wide else "ellipsis",
            max_width=WIDEST.get(column),
            justify="right" if column in ("id", "records", "attempts") else "left",
        )
    for row in rows:
        out_table.add_row(*map(Text, row))
    out = StringIO()
    width = max(shutil.get_terminal_size((USUAL, 24)).columns, NARROWEST)
    Console(file=out, width=width, color_system=None).print(out_table)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def counted(counts: Mapping[str, int]) -> str:
    """The number of jobs of each kind; the ledger counts up to a bound."""
    return ", ".join(f"{count:,}{'+' if count >= COUNTED_MAX else ''} {kind}" for kind, count in counts.items())


def ending(job: Job) -> str:
    """The result of a job, in one line."""
    took = span((job.finished_at - job.started_at).total_seconds()) if job.finished_at and job.started_at else ""
    if job.status is JobStatus.COMPLETED:
        words = [f"completed{f' in {took}' if took else ''}: {job.records_processed:,} records"]
    elif job.status is JobStatus.CANCELLED:
        words = [f"cancelled{f' after {took}' if took else ''}: kept {kept(job)}"]
    else:
        words = [f"failed at attempt {job.attempts} of {job.max_attempts}: {fault(job)}"]
    words += [f"{job.rejects:,} rejects"] if job.rejects else []
    words += [clean(job.message)] if job.message and not job.message.startswith(f"{job.records_processed} ") else []
    return "; ".join(words)


def acts(entries: Sequence[AuditEntry]) -> list[str]:
    """Who started, stopped and repeated a job, oldest first."""
    return [_act(entry) for entry in reversed(entries)]


def _act(entry: AuditEntry) -> str:
    act = entry.act
    words = {"job.submitted": "submitted", "job.cancelled": "cancelled", "job.retried": "retried"}
    what = words.get(act.what, act.what)
    if act.what == "data.cleared":
        what = f"{act.rows_deleted or 0:,} records deleted, asked for"
    place = f" from {clean(act.by.address)}" if act.by.address else ""
    return f"{what} by {clean(act.by.who)} ({act.by.role}){place}, {entry.at.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"


def log_lines(lines: Sequence[JobLine]) -> list[str]:
    """The last lines of a job's log."""
    return [f"{line.at.astimezone(UTC):%H:%M:%S}Z  {line.event:<10} {clean(line.text)}".rstrip() for line in lines]


def card(job: Job, now: datetime, standing: Mapping[str, Standing]) -> str:
    """One job in full, and the commands that apply to it."""
    facts = {
        "waits": waits_for(job, now, standing)[1] if job.status is JobStatus.QUEUED else "",
        "error": fault(job),
        "sample": clean(job.sample),
        "message": clean(job.message),
        "phase": "" if job.status.is_final else clean(job.phase),
        "records": records(job) if job.records_processed or job.records_total else "",
        "committed": kept(job) if job.batches else "",
        "rejects": f"{job.rejects:,}" if job.rejects else "",
        "attempts": f"{job.attempts} of {job.max_attempts}",
        "priority": str(job.priority),
        "payload": clean(json.dumps(job.payload, ensure_ascii=False)) if job.payload else "",
        "key": clean(job.idempotency_key),
        "worker": clean(job.worker_id),
        "retried as": str(job.retried_as or ""),
    }
    times = {
        "created": job.created_at,
        "scheduled": job.scheduled_at,
        "started": job.started_at,
        "stop asked": job.cancel_requested_at,
        "heartbeat": None if job.status.is_final else job.heartbeat_at,
        "lease until": job.lease_until,
        "deadline": job.deadline_at,
        "finished": job.finished_at,
    }
    facts |= {name: _at(at, now) for name, at in times.items()}
    facts["next"] = _next(job)
    lines = [f"job {job.id}: {job.task_type} {clean(job.source) or '–'}, {state(job)}"]
    return "\n".join(lines + [f"  {name:<12}{value}" for name, value in facts.items() if value])


def _at(at: datetime | None, now: datetime) -> str:
    if at is None:
        return ""
    away = (at - now).total_seconds()
    distance = f"in {span(away)}" if away > 0 else f"{span(-away)} ago"
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z ({distance})"


def _next(job: Job) -> str:
    if job.status is JobStatus.CANCELLING:
        return "its worker stops it; `planetwire jobs watch` says when"
    if not job.status.is_final:
        return f"`planetwire jobs watch {job.id}` follows it, `planetwire jobs cancel {job.id}` stops it"
    if job.retried_as is not None:
        return f"`planetwire jobs show {job.retried_as}` is the same work again"
    return "" if job.status is JobStatus.COMPLETED else f"`planetwire jobs retry {job.id}` does the same work again"
