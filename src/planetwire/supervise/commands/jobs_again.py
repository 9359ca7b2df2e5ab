"""`planetwire jobs retry`: submits ended jobs again, by id or all dead ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from planetwire.errors import NotFound, PlanetwireError, StateError
from planetwire.model import Job, Json, Lane
from planetwire.settings import Settings
from planetwire.supervise.commands.jobs_cli import as_text, run, to_be_cleared
from planetwire.supervise.commands.person import confirm_clears, local_actor
from planetwire.wiring.commands import Ledger, canonical

REDRIVEN_MAX = 1_000  # dead jobs one call tries again
DEAD_PAGE = 500


@dataclass(frozen=True, slots=True)
class Again:
    """The result of retrying one job."""

    job_id: int
    job: Job | None = None
    created: bool = False
    error: PlanetwireError | None = None

    def record(self) -> Json:
        """As JSON."""
        if self.job is None:
            error = self.error or NotFound("")
            return {"retried": self.job_id, "code": error.code, "error": error.message}
        return {"retried": self.job_id, "task_id": self.job.id, "status": self.job.status, "created": self.created}

    def line(self) -> str:
        """For people."""
        if self.job is None:
            return self.error.message if self.error else ""
        how = "" if self.created else ", which was already waiting for the same work"
        return f"job {self.job_id} is tried again as job {self.job.id}{how}"


async def _again(ledger: Ledger, task_id: int) -> Again:
    try:
        job, created = await ledger.desk.retry(local_actor(), [await ledger.board.get(task_id)])
    except StateError as error:
        hint = f"{error.message} and not over; `planetwire jobs watch {task_id}` follows it"
        return Again(task_id, error=StateError(hint, code=error.code))
    except NotFound as error:
        return Again(task_id, error=error)
    return Again(task_id, job, created)


async def _clears(ledger: Ledger, task_ids: Iterable[int]) -> list[tuple[str, Mapping[str, int]]]:
    sources = []
    for task_id in task_ids:
        with suppress(NotFound):
            job = await ledger.board.get(task_id)
            if job.task_type.lane is Lane.CLEAR and job.status.is_final:
                sources.append(job.source or "")
    return await to_be_cleared(ledger, sources)


def retry(settings: Settings, task_ids: Sequence[int], *, yes: bool, as_json: bool) -> tuple[str, bool]:
    """Retry each of the jobs; False if one could not be retried. Asks before a clear."""
    if not yes:
        confirm_clears(run(settings, lambda ledger: _clears(ledger, task_ids)), yes=yes)

    async def work(ledger: Ledger) -> list[Again]:
        return [await _again(ledger, task_id) for task_id in dict.fromkeys(task_ids)]

    done = run(settings, work)
    shown = as_text([one.record() for one in done]) if as_json else "\n".join(one.line() for one in done)
    return shown, all(one.job for one in done)


def redrive(settings: Settings, *, source: str | None, as_json: bool) -> str:
    """Retry every dead job except clears, up to a bound."""
    named = canonical(source) if source else None

    async def work(ledger: Ledger) -> tuple[list[Again], list[int], bool]:
        found, clears, more = await _dead_jobs(ledger, named)
        return [one for alike in _by_work(found) for one in await _all_again(ledger, alike)], clears, more

    done, clears, more = run(settings, work)
    if as_json:
        return as_text({"retried": [one.record() for one in done], "skipped": clears, "more": more})
    return _redriven(done, clears, more, named)


async def _dead_jobs(ledger: Ledger, source: str | None) -> tuple[list[Job], list[int], bool]:
    """All dead jobs, read before the first retry, so that one that fails again is not retried twice. Separately the ids
    of clears, which are never repeated in bulk.
    """
    jobs: list[Job] = []
    clears: list[int] = []
    cursor: int | None = None
    while len(jobs) < REDRIVEN_MAX and len(clears) < REDRIVEN_MAX:
        found, cursor = await ledger.board.dead(source=source, cursor=cursor, limit=DEAD_PAGE)
        jobs += [job for job in found if job.task_type.lane is not Lane.CLEAR]
        clears += [job.id for job in found if job.task_type.lane is Lane.CLEAR]
        if cursor is None:
            return jobs, clears, False
    return jobs, clears, True


def _by_work(jobs: Sequence[Job]) -> list[list[Job]]:
    """Grouped by the queued job that they would share."""
    alike: dict[object, list[Job]] = {}
    for job in jobs:
        alike.setdefault((job.task_type, job.source, repr(job.payload.get("layer"))), []).append(job)
    return list(alike.values())


async def _all_again(ledger: Ledger, alike: Sequence[Job]) -> list[Again]:
    job, created = await ledger.desk.retry(local_actor(), alike)
    return [Again(one.id, job, created and one is alike[0]) for one in alike]


def _redriven(done: Sequence[Again], clears: Sequence[int], more: bool, source: str | None) -> str:
    of_source = f" of {source}" if source else ""
    skipped = []
    if clears:
        which = f"job {clears[0]}" if len(clears) == 1 else f"{len(clears):,} jobs"
        skipped = [f"{which} would delete data: skipped; `planetwire jobs retry {clears[0]}` asks first"]
    if not done:
        return "\n".join(skipped or [f"no dead jobs{of_source}"])
    new = _unique(one.job.id for one in done if one.job)
    lines = [f"{len(done):,} dead job{'' if len(done) == 1 else 's'}{of_source} tried again as {_ids(new)}"]
    if len(new) < len(done):
        lines.append("the same work waits once: dead jobs of one type and source share a job")
    if more:
        lines.append("more are dead: run this again")
    return "\n".join(lines + skipped)


def _unique(ids: Iterable[int]) -> list[int]:
    return sorted(set(ids))


def _ids(ids: Sequence[int]) -> str:
    few = ", ".join(map(str, ids[:10]))
    return f"job {few}" if len(ids) == 1 else f"{len(ids):,} jobs ({few}{', …' if len(ids) > 10 else ''})"
