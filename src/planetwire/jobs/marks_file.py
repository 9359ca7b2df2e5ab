"""Detects dead workers of this installation: each holds a kernel lock on a file of its own while it lives.

A `flock` is released when its process ends, however it ends, and never before: not while it is stopped, slow or
disconnected. So a process that gets the lock of a mark knows that its worker will not run another line. A mark is valid
only where it was made: on this host since its last boot, and as the very file that was locked, not as a copy of it.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from planetwire.log import get_logger

log = get_logger()

SUFFIX = ".worker"
DEAD_MAX = 1_000  # marks checked at one start
FOREIGN_KEPT_S = 86_400.0  # marks of another host or boot cannot be checked here; their leases expire by themselves
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Dead:
    """A dead worker and its mark, which stays locked until it is deleted."""

    worker_id: str
    path: Path


def boot_id() -> str:
    """Identifies the host's last boot; empty where the kernel gives none, which matches no mark."""
    try:
        return BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""


class WorkerMarks:
    """The marks in one folder of a data dir."""

    def __init__(self, folder: Path, *, boot: str | None = None) -> None:
        self._folder = folder
        self._boot = boot_id() if boot is None else boot

    @contextmanager
    def living(self, worker_id: str) -> Iterator[None]:
        """Hold the worker's mark during the block; enter before the first claim. It is locked before it is visible."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self._folder / f"{worker_id}{SUFFIX}"
        hidden = self._folder / f".{worker_id}"
        handle = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(json.dumps({"worker": worker_id, "boot": self._boot, "file": _identity(file)}))
            file.flush()
            hidden.rename(path)
            yield  # the mark stays: jobs that could not be released now are taken back at the next start

    @contextmanager
    def dead(self) -> Iterator[Sequence[Dead]]:
        """Workers whose marks could be locked; no other process can lock these while the block lasts."""
        held: list[IO[str]] = []
        try:
            paths = sorted(self._folder.glob(f"*{SUFFIX}"))[:DEAD_MAX]
            yield [found for path in paths if (found := self._lock_if_dead(path, held))]
        finally:
            for file in held:
                file.close()

    def _lock_if_dead(self, path: Path, held: list[IO[str]]) -> Dead | None:
        try:
            file = path.open("r", encoding="utf-8")
        except OSError:  # deleted by another process, or not readable by us
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            mark = json.load(file)
            if self._boot and (mark["boot"], mark["file"]) == (self._boot, _identity(file)):
                held.append(file)
                return Dead(str(mark["worker"]), path)
        except BlockingIOError:  # it lives
            file.close()
            return None
        except (ValueError, TypeError, KeyError):
            log.warning("data_job.mark.unreadable", path=str(path))
        if time.time() - os.fstat(file.fileno()).st_mtime > FOREIGN_KEPT_S:
            path.unlink(missing_ok=True)
        file.close()
        return None


def _identity(file: IO[str]) -> str:
    info = os.fstat(file.fileno())
    return f"{info.st_dev}:{info.st_ino}"


async def take_over(marks: WorkerMarks, take_back: Callable[[Sequence[str]], Awaitable[int]]) -> int:
    """Requeue the jobs of dead workers; returns how many. Raises BackendError, and then keeps all marks."""
    with marks.dead() as dead:
        taken = await take_back([one.worker_id for one in dead]) if dead else 0
        for one in dead:
            one.path.unlink(missing_ok=True)
    log.info("data_job.worker.took_over", dead=[one.worker_id for one in dead], jobs=taken)
    return taken
