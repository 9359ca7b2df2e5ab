"""`planetwire jobs …`: the ledger from a shell, straight from the database, so it works while the page is down."""

from __future__ import annotations

import asyncio
import difflib
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from typer import BadParameter

from planetwire.model import Job, JobRequest, JobStatus, Lane, TaskType
from planetwire.model.acts import AuditQuery
from planetwire.settings import Settings
from planetwire.supervise.commands import jobs_text as text
from planetwire.supervise.commands.command import say
from planetwire.supervise.commands.person import confirm_clears, local_actor
from planetwire.supervise.datadir import DataDir
from planetwire.supervise.roles import database_of
from planetwire.web.access.audit import entry_record
from planetwire.web.earth.job_notes import ACTS_SHOWN, line_record
from planetwire.web.earth.job_record import job_record
from planetwire.wiring.commands import Ledger, canonical, check_request, ledger_source, open_ledger

T = TypeVar("T")


def run(settings: Settings, work: Callable[[Ledger], Awaitable[T]]) -> T:
    """One command's work on the ledger."""

    async def opened() -> T:
        key = DataDir(settings.data_dir).kept_secret("session.key") or ""
        async with open_ledger(settings, database_of(settings), key.encode()) as ledger:
            return await work(ledger)

    return asyncio.run(opened())


def choice(given: str, allowed: Sequence[str], what: str) -> str:
    """`given`, which must be one of those."""
    if given in allowed:
        return given
    near = difflib.get_close_matches(given, allowed, n=1, cutoff=0.0)[0]
    raise BadParameter(f"unknown {what} {given!r}; did you mean {near}? ({', '.join(allowed)})")


def as_text(value: object) -> str:
    """JSON as people like to read it."""
    return json.dumps(value, indent=2, ensure_ascii=False)


# --- reading ------------------------------------------------------------------------------------------


def ls(settings: Settings, *, status: str | None, dead: bool, source: str | None, limit: int, as_json: bool) -> str:
    """Newest first, as a table or JSON."""
    if dead and status not in (None, JobStatus.FAILED):
        raise BadParameter(f"dead jobs are failed ones: leave out --status {status}, or --dead")
    if status is not None:
        choice(status, [s.value for s in JobStatus], "status")
    named = canonical(source) if source else None

    async def work(ledger: Ledger) -> str:
        board = ledger.board
        if dead:
            found, more = await board.dead(source=named, cursor=None, limit=limit)
        else:
            found, more = await board.page(status=status, source=named, cursor=None, limit=limit)
        if as_json:
            return as_text([job_record(job) for job in found])
        now, standing = await board.standing(job.source for job in found if job.status is JobStatus.QUEUED)
        lines = [text.listing(found, now, standing) if found else _none(named, status)]
        if more:
            lines.append(f"older ones exist: --limit {min(limit * 4, 500)}, --status, --source")
        if status is None and named is None and not dead:
            lines.append(text.counted(await board.counts()))
        return "\n".join(lines)

    return run(settings, work)


def _none(source: str | None, status: str | None) -> str:
    return " ".join(["no", *filter(None, [status]), "jobs", *([f"of {source}"] if source else [])])


def dead(settings: Settings, *, source: str | None, limit: int, as_json: bool) -> str:
    """Failed jobs that were not retried, newest first."""
    named = canonical(source) if source else None

    async def work(ledger: Ledger) -> str:
        found, more = await ledger.board.dead(source=named, cursor=None, limit=limit)
        if as_json:
            return as_text([job_record(job) for job in found])
        if not found:
            return f"no dead jobs{f' of {named}' if named else ''}"
        now, _ = await ledger.board.standing([])
        only = f" --source {named}" if named else ""
        tail = [f"older ones exist: --limit {min(limit * 4, 500)}"] if more else []
        tail.append(f"again: `planetwire jobs retry ID…`, all of these: `planetwire jobs retry --dead{only}`")
        return "\n".join([text.dead_listing(found, now), *tail])

    return run(settings, work)


def show(settings: Settings, task_id: int, *, with_log: bool, as_json: bool) -> str:
    """One job, who started, stopped and repeated it, and with its log the last lines of its worker."""

    async def work(ledger: Ledger) -> str:
        job = await ledger.board.get(task_id)
        entries, _ = await ledger.audit.page(AuditQuery(task_id=task_id), None, ACTS_SHOWN)
        lines = await ledger.lines.read(task_id) if with_log else []
        if as_json:
            record = job_record(job) | {"acts": [entry_record(entry) for entry in entries]}
            return as_text(record | ({"log": [line_record(line) for line in lines]} if with_log else {}))
        shown = [text.card(job, *await ledger.board.standing([job.source]))]
        shown += [f"  {'who':<12}{line}" for line in text.acts(entries)]
        if with_log:
            shown += ["", *(text.log_lines(lines) or ["no log: nothing was written, or it is too old"])]
        return "\n".join(shown)

    return run(settings, work)


# --- changing -----------------------------------------------------------------------------------------


def submit(
    settings: Settings,
    task_type: str,
    source: str | None,
    *,
    layer: str | None,
    priority: int,
    key: str | None,
    yes: bool,
    as_json: bool,
) -> str:
    """The job, new or already waiting."""
    kind = TaskType(choice(task_type, [t.value for t in TaskType], "task type"))
    if not source and kind.is_write:
        raise BadParameter(
            f"{kind} needs a source: `planetwire jobs submit {kind} SOURCE`; `planetwire sources` lists them"
        )
    if layer and kind.is_write:
        raise BadParameter(f"--layer is for clear_cache and earth_refresh; {kind} works on a source")
    request = JobRequest(kind, source or None, {"layer": layer} if layer else {}, priority, key)
    request = run(settings, lambda ledger: _checked(ledger, request))
    if kind.lane is Lane.CLEAR and not yes:
        confirm_clears(run(settings, lambda ledger: to_be_cleared(ledger, [request.source or ""])), yes=yes)

    async def work(ledger: Ledger) -> str:
        job, created = await ledger.desk.submit(local_actor(), request)
        if as_json:
            return json.dumps({"task_id": job.id, "status": job.status, "created": created})
        if job.status is not JobStatus.QUEUED:
            return f"job {job.id} did this work for the same key ({job.status})"
        reason = text.waits_for(job, *await ledger.board.standing([job.source]))
        waits = "" if created and reason[0] == "free" else f": {reason[1]}"
        return f"job {job.id} {'queued' if created else 'was already waiting, no second one is made'}{waits}"

    return run(settings, work)


async def to_be_cleared(ledger: Ledger, sources: Iterable[str]) -> list[tuple[str, Mapping[str, int]]]:
    """The number of rows that clearing each of the sources would delete."""
    return [(source, await ledger.rows_of(source)) for source in dict.fromkeys(sources)]


def cancel(settings: Settings, task_id: int, *, as_json: bool) -> str:
    """Cancel a job; returns what is kept and what happens next."""

    async def work(ledger: Ledger) -> Job:
        return await ledger.desk.cancel(local_actor(), task_id)

    job = run(settings, work)
    if as_json:
        return json.dumps(
            {
                "task_id": job.id,
                "status": job.status,
                "batches": job.batches,
                "records_processed": job.records_processed,
            }
        )
    if job.status is JobStatus.CANCELLED:
        stays = f"; {text.kept(job)} of an earlier attempt stay" if job.batches else ""
        return f"job {job.id} cancelled before it ran{stays}"
    stays = f"{text.kept(job)} so far, which stay" if job.batches else "nothing committed so far"
    return (
        f"job {job.id} cancelling: {stays}; the open batch will be rolled back.\n"
        "Its worker sees this within about 2 s and the job ends cancelled; if the worker is gone or does not stop, "
        f"the ledger ends it after a minute.\nFollow: `planetwire jobs watch {job.id}`"
    )


async def _checked(ledger: Ledger, request: JobRequest) -> JobRequest:
    return check_request(request, ledger.catalogue.fact_feeds)


def pause(settings: Settings, source: str, paused: bool, *, as_json: bool) -> str:
    """Pause or resume a source's write jobs."""
    if not source.strip():
        raise BadParameter("name a source; `planetwire sources` lists them")

    async def work(ledger: Ledger) -> str:
        name, warning = ledger_source(source, ledger.catalogue)
        if warning:
            say(f"planetwire: {warning}", err=True)
        now, before = await ledger.board.standing([name])
        await ledger.desk.pause(local_actor(), name, paused)
        if as_json:
            return json.dumps({"source": name, "paused": paused, "changed": (before[name].paused_at is None) == paused})
        goes_on = before[name].running_id
        if not paused:
            was = "goes on: its waiting jobs run in order" if before[name].paused_at else "was not paused"
            return f"{name} {was}"
        since = (
            f"has been paused for {text.since(before[name].paused_at, now)} already"
            if before[name].paused_at
            else "paused"
        )
        runs = f"Job {goes_on} runs and goes on; `planetwire jobs cancel {goes_on}` stops it. " if goes_on else ""
        return (
            f"{name} {since}: no collect or clear_data of it starts, new ones wait.\n"
            f"{runs}To go on: `planetwire jobs resume {name}`"
        )

    return run(settings, work)
