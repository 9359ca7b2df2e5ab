"""The disk budget at work: measures the data dir, takes the steps of `budget.py` in their order, and says so.

A step adds to the usual pruning and replaces none: it deletes what is older than its floor and gives back the room.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import IO, TypeAlias

from planetwire.database.postgres import Pool
from planetwire.errors import BackendError, PlanetwireError
from planetwire.facts.sqlite.observations_sqlite import SqliteObservationStore
from planetwire.facts.sqlite.room_sqlite import free_bytes
from planetwire.jobs.ledger.joblog_postgres import PostgresJobLog
from planetwire.jobs.ledger.jobs_postgres import PostgresJobQueue
from planetwire.log import get_logger
from planetwire.model import Json
from planetwire.model.finding import Finding, step
from planetwire.outbox.upkeep.prune_postgres import PostgresPruner
from planetwire.outbox.upkeep.room_postgres import give_back
from planetwire.ports import Clock
from planetwire.private import make_file
from planetwire.runtime.clock import SystemClock
from planetwire.settings import Settings
from planetwire.web.metrics import expose_disk
from planetwire.wiring import budget
from planetwire.wiring.budget import DiskState
from planetwire.wiring.observations import readings_file

log = get_logger()

EVERY_S = 60.0
BATCHES_MAX = 500  # of one kind a look
ROUNDS = 25  # of pruning readings a look, 20,000 each
FILES_MAX = 1_000_000  # of the data dir that are measured
GIGABYTE = 10**9
LOW_SHARE, LOW_BYTES = 0.05, 2 * GIGABYTE  # of the file system: less than both is too little
FULL_BYTES = 32 * 1024 * 1024  # PostgreSQL's next segment of 16 MB, and what comes with it
STATE = "disk.json"  # in run/
TITLE = "There is room on the disk"

Todo: TypeAlias = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class DiskStep:
    """`tighten` is called at each look while the step is taken, `ease` once when it is taken back."""

    name: str
    tighten: Todo
    ease: Callable[[], None] = lambda: None


class DiskKeeper:
    """The loop of one data dir. Of several processes on it one looks; `note` gets what it found."""

    def __init__(
        self,
        budget_bytes: int,
        measure: Callable[[], Awaitable[int]],
        steps: Sequence[DiskStep],
        clock: Clock,
        note: Callable[[DiskState], None] = lambda state: None,
        file: Path | None = None,
    ) -> None:
        """`file`: where other processes find the state, its lock beside it."""
        self.state = DiskState(budget_bytes, 0)
        self._measure = measure
        self._steps = steps
        self._clock = clock
        self._note = note
        self.file = file
        self._held: IO[bytes] | None = None

    async def run(self) -> None:
        """Until cancelled; a look that fails is taken again."""
        try:
            while True:
                try:
                    if self._mine():
                        await self.look()
                except (PlanetwireError, OSError) as error:
                    log.warning("storage.budget.failed", error=str(error))
                await self._clock.sleep(EVERY_S)
        finally:
            self.release()

    def release(self) -> None:
        """Let another process look."""
        if self._held is not None:
            self._held.close()
            self._held = None

    def _mine(self) -> bool:
        if self.file is None or self._held is not None:
            return True
        lock = self.file.with_suffix(".lock")
        make_file(lock)
        file = lock.open("rb+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return False
        self._held = file
        return True

    async def look(self) -> DiskState:
        """Keep what is tight tight; go on while it is not enough, or one step back when it is more than enough."""
        level, before = self.state.level, self.state.word
        for taken in self._steps[:level]:
            await taken.tighten()
        await self._found(level)
        while self.state.share >= budget.TIGHTER_FROM and level < len(self._steps):
            level += 1
            log.warning("storage.budget.tightened", step=self._steps[level - 1].name, **self._told())
            await self._steps[level - 1].tighten()
            await self._found(level)
        if self.state.share < budget.EASIER_BELOW and level:
            level -= 1
            self._steps[level].ease()
            log.info("storage.budget.eased", step=self._steps[level].name, **self._told())
            await self._found(level)
        if self.state.word not in (before, None):
            log.warning("storage.budget.neared", state=self.state.word, **self._told())
        if self.file is not None:
            write_state(self.file, self.state)
        self._note(self.state)
        return self.state

    async def _found(self, level: int) -> None:
        self.state = DiskState(self.state.budget_bytes, await self._measure(), level)

    def _told(self) -> dict[str, int]:
        return {"used_bytes": self.state.used_bytes, "budget_bytes": self.state.budget_bytes}


def add_keeper(
    loops: dict[str, Callable[[], Awaitable[None]]], settings: Settings, pool: Pool | None, store: object
) -> Callable[[], str | None]:
    """Run it beside a web process, where there is a budget. What a page is told: `near`, `over` or None."""
    file = store if isinstance(store, SqliteObservationStore) else None
    keeper = keeper_of(settings, SystemClock(), pool, file, expose_disk)
    if keeper is None:
        (settings.data_dir / "run" / STATE).unlink(missing_ok=True)
        return lambda: None
    loops["disk"] = keeper.run
    return lambda: (read_state(keeper.file) or keeper.state).word


def keeper_of(
    settings: Settings,
    clock: Clock,
    pool: Pool | None,
    store: SqliteObservationStore | None,
    note: Callable[[DiskState], None],
) -> DiskKeeper | None:
    """None without a budget. What lies elsewhere – one's own server, a file in another place – is no part of it."""
    if settings.disk_budget_gb is None:
        return None
    home, file = settings.data_dir, _file_inside(settings)
    own = pool if pool is not None and (home / "postgres").exists() else None
    steps = disk_steps(settings, own, store if file is not None else None)

    async def measure() -> int:
        return await asyncio.to_thread(lambda: folder_bytes(home) - (free_bytes(file) if file is not None else 0))

    return DiskKeeper(round(settings.disk_budget_gb * GIGABYTE), measure, steps, clock, note, file=home / "run" / STATE)


def _file_inside(settings: Settings) -> Path | None:
    path = readings_file(settings)
    inside = path is not None and path.absolute().is_relative_to(settings.data_dir.absolute())
    return path if inside else None


def disk_steps(settings: Settings, pool: Pool | None, store: SqliteObservationStore | None) -> list[DiskStep]:
    """In the order of `budget.STEPS`; where there is no database, or no file of readings, with less to do."""
    todo: dict[str, list[Todo]] = {name: [] for name in budget.STEPS}
    ease: dict[str, Callable[[], None]] = {}
    todo["bodies"] = [partial(asyncio.to_thread, drop_files, settings.data_dir / "bodies")]
    if pool is not None:
        for name, by_table in _of_database(settings, pool).items():
            todo[name] += [partial(_prune_table, pool, table, prune) for table, prune in by_table.items()]
    if store is not None:
        events_s = min(settings.patch_event_retention_hours * 3_600, budget.EVENTS_KEPT_S)
        todo["events"].append(partial(_keep, store, events_s, None))
        todo["readings"].append(partial(_keep, store, events_s, budget.READINGS_KEPT_DAYS))
        ease = {"events": store.keep, "readings": partial(store.keep, events_s)}
    return [DiskStep(name, partial(_all, todo[name]), ease.get(name, lambda: None)) for name in budget.STEPS]


def _of_database(settings: Settings, pool: Pool) -> dict[str, Mapping[str, Callable[[], Awaitable[int]]]]:
    jobs = settings.jobs.model_copy(update={"keep_days": min(settings.jobs.keep_days, budget.JOBS_KEPT_DAYS)})
    lines = PostgresJobLog(pool, min(settings.jobs.log_hours * 3_600, budget.JOB_LOGS_KEPT_S))
    kept_s = budget.EVENTS_KEPT_S
    pruner = PostgresPruner(pool, changes_kept_s=kept_s, broadcasts_kept_s=kept_s)
    return {
        "job_logs": {"job_log_lines": lines.prune},
        "jobs": {"collection_tasks": PostgresJobQueue(pool, jobs).prune},
        "events": {"earth_broadcasts": pruner.broadcasts, "earth_data_change_events": pruner.changes},
    }


async def _keep(store: SqliteObservationStore, events_s: float, history_days: float | None) -> None:
    store.keep(events_s, history_days)
    for _ in range(ROUNDS):
        await store.prune()


async def _prune_table(pool: Pool, table: str, prune: Callable[[], Awaitable[int]]) -> None:
    gone = 0
    for _ in range(BATCHES_MAX):
        now_gone = await prune()
        gone += now_gone
        if not now_gone:
            break
    if gone and not await give_back(pool, table, gone):
        log.info("storage.room.kept", table=table, rows=gone)


async def _all(todo: Sequence[Todo]) -> None:
    for each in todo:
        await each()


# --- files --------------------------------------------------------------------------------------------


def folder_bytes(folder: Path) -> int:
    """What its files take on the disk. One that goes meanwhile counts as nothing."""
    total, seen = 0, 0
    for where, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.lstat(os.path.join(where, name)).st_blocks * 512
        seen += len(names)
        if seen > FILES_MAX:
            break
    return total


def drop_files(folder: Path) -> int:
    """Every file right in it; how many there were."""
    files = [file for file in folder.glob("*") if file.is_file()]
    for file in files:
        file.unlink(missing_ok=True)
    return len(files)


def write_state(path: Path, state: DiskState) -> None:
    """For `doctor`, which is another process."""
    building = path.with_name(f".{path.name}-{os.getpid()}")
    make_file(building)
    building.write_text(json.dumps(asdict(state)), encoding="ascii")
    building.replace(path)


def read_state(path: Path | None) -> DiskState | None:
    """What the process that looks after the budget found last; None where none does."""
    if path is None:
        return None
    try:
        return DiskState(**json.loads(path.read_text(encoding="ascii")))
    except (OSError, ValueError, TypeError):
        return None


def disk_step(data_dir: Path) -> Json:
    """For the diagnostic: room on the file system, and what the budget says."""
    state = read_state(data_dir / "run" / STATE)
    try:
        info = os.statvfs(data_dir)
    except OSError as error:
        raise BackendError(f"{data_dir}: {error.strerror}") from error
    free, whole = info.f_bavail * info.f_frsize, info.f_blocks * info.f_frsize
    findings = []
    detail = f"{free / GIGABYTE:.1f} GB free"
    if free < FULL_BYTES:
        findings.append(Finding("disk_full", f"{free:,} bytes are free below {data_dir}"))
    elif free < LOW_BYTES and free < LOW_SHARE * whole:
        findings.append(Finding("disk_low", f"{free / GIGABYTE:.2f} GB are free below {data_dir}"))
    if state is not None:
        told = f"{state.used_bytes / GIGABYTE:.2f} of {state.budget_bytes / GIGABYTE:.2f} GB of the budget"
        detail += f", {told}"
        less = f"; kept for less time: {', '.join(state.tightened)}" if state.level else ""
        if state.word == "over":
            findings.append(Finding("budget_over", f"{told} are used{less}"))
        elif state.word == "near":
            findings.append(Finding("budget_near", f"{told} are used{less}"))
    return step("disk", TITLE, detail, findings)
