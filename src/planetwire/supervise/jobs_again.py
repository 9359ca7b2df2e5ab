"""`planetwire jobs retry`: work that ended, asked for once more, by id or all that is dead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from planetwire.commanding import Ledger, canonical
from planetwire.errors import NotFound, PlanetwireError, StateError
from planetwire.model import Job, Json
from planetwire.settings import Settings
from planetwire.supervise.jobs_cli import as_text, run

REDRIVEN_MAX = 1_000  # dead jobs one call tries again
DEAD_PAGE = 500


@dataclass(frozen=True, slots=True)
class Again:
    """What became of trying one job again."""

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
        job, created = await ledger.board.retry(task_id)
    except StateError as error:
        hint = f"{error.message} and not over; `planetwire jobs watch {task_id}` follows it"
        return Again(task_id, error=StateError(hint, code=error.code))
    except NotFound as error:
        return Again(task_id, error=error)
    return Again(task_id, job, created)


def retry(settings: Settings, task_ids: Sequence[int], *, as_json: bool) -> tuple[str, bool]:
    """Each of the jobs once more; False if one of them could not be."""

    async def work(ledger: Ledger) -> list[Again]:
        return [await _again(ledger, task_id) for task_id in dict.fromkeys(task_ids)]

    done = run(settings, work)
    shown = as_text([one.record() for one in done]) if as_json else "\n".join(one.line() for one in done)
    return shown, all(one.job for one in done)


def redrive(settings: Settings, *, source: str | None, as_json: bool) -> str:
    """Every dead job once more, up to a bound."""
    named = canonical(source) if source else None

    async def work(ledger: Ledger) -> tuple[list[Again], bool]:
        found, more = await _dead_jobs(ledger, named)
        return [one for alike in _by_work(found) for one in await _all_again(ledger, alike)], more

    done, more = run(settings, work)
    if as_json:
        return as_text({"retried": [one.record() for one in done], "more": more})
    return _redriven(done, more, named)


async def _dead_jobs(ledger: Ledger, source: str | None) -> tuple[list[Job], bool]:
    """All of them before the first is tried again: what dies again meanwhile is for another day."""
    jobs: list[Job] = []
    cursor: int | None = None
    while len(jobs) < REDRIVEN_MAX:
        found, cursor = await ledger.board.dead(source=source, cursor=cursor, limit=DEAD_PAGE)
        jobs += found
        if cursor is None:
            return jobs, False
    return jobs, True


def _by_work(jobs: Sequence[Job]) -> list[list[Job]]:
    """Those that would be one queued job stand together."""
    alike: dict[object, list[Job]] = {}
    for job in jobs:
        alike.setdefault((job.task_type, job.source, repr(job.payload.get("layer"))), []).append(job)
    return list(alike.values())


async def _all_again(ledger: Ledger, alike: Sequence[Job]) -> list[Again]:
    job, created = await ledger.board.retry_alike(alike)
    return [Again(one.id, job, created and one is alike[0]) for one in alike]


def _redriven(done: Sequence[Again], more: bool, source: str | None) -> str:
    of_source = f" of {source}" if source else ""
    if not done:
        return f"no dead jobs{of_source}"
    new = _unique(one.job.id for one in done if one.job)
    lines = [f"{len(done):,} dead job{'' if len(done) == 1 else 's'}{of_source} tried again as {_ids(new)}"]
    if len(new) < len(done):
        lines.append("the same work waits once: dead jobs of one type and source share a job")
    if more:
        lines.append("more are dead: run this again")
    return "\n".join(lines)


def _unique(ids: Iterable[int]) -> list[int]:
    return sorted(set(ids))


def _ids(ids: Sequence[int]) -> str:
    few = ", ".join(map(str, ids[:10]))
    return f"job {few}" if len(ids) == 1 else f"{len(ids):,} jobs ({few}{', …' if len(ids) > 10 else ''})"
