"""A control group (version 1 or 2) with limits of cores and memory; removed afterwards, with all its processes.

Where none may be created, `unlimited` reads the same figures of a process tree from /proc.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

ROOT = Path("/sys/fs/cgroup")
PERIOD_US = 100_000
REMOVE_S = 10.0
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes: private to processes, shared (such as PostgreSQL's buffers), and of the kernel's page cache."""

    anonymous: int
    shared: int
    files: int

    @property
    def held(self) -> int:
        """Memory that cannot be reclaimed: without the page cache."""
        return self.anonymous + self.shared


class Account(Protocol):
    """The resources that a group of processes used. `enter`: prefix of a command that runs in the group."""

    enter: Sequence[str]

    def cpu_s(self) -> float: ...

    def memory(self) -> Memory: ...

    def notes(self) -> str: ...


class Group:
    """A created group, by its folders: one per controller in version 1, one for all in version 2."""

    def __init__(self, name: str, cores: float, memory_bytes: int, *, weight: float = 1.0) -> None:
        """Raises OSError if it may not be created. `weight`: share of CPU time under contention."""
        self._unified = (ROOT / "cgroup.controllers").exists()
        self._folders: dict[str, Path] = {}
        try:
            for controller in ("unified",) if self._unified else ("cpu", "cpuacct", "memory"):
                folder = (ROOT if self._unified else (ROOT / controller).resolve(strict=True)) / name
                folder.mkdir(exist_ok=folder in self._folders.values())  # cpu and cpuacct are often one
                self._folders[controller] = folder
            self._limit(cores, memory_bytes, weight)
        except OSError:
            self.remove()
            raise
        procs = " ".join(f"'{folder / 'cgroup.procs'}'" for folder in dict.fromkeys(self._folders.values()))
        self.enter = ("sh", "-c", f'for procs in {procs}; do echo $$ >"$procs"; done; exec "$@"', "sh")

    def _limit(self, cores: float, memory_bytes: int, weight: float) -> None:
        if self._unified:
            with contextlib.suppress(OSError):  # already enabled, or creating the folder below fails with the reason
                (ROOT / "cgroup.subtree_control").write_text("+cpu +memory")
            self._write("unified", "cpu.max", f"{int(cores * PERIOD_US)} {PERIOD_US}")
            self._write("unified", "memory.max", str(memory_bytes))
            self._write("unified", "cpu.weight", str(max(1, int(100 * weight))))
            return
        self._write("cpu", "cpu.cfs_period_us", str(PERIOD_US))
        self._write("cpu", "cpu.cfs_quota_us", str(int(cores * PERIOD_US)))
        self._write("cpu", "cpu.shares", str(max(2, int(1024 * weight))))
        self._write("memory", "memory.limit_in_bytes", str(memory_bytes))

    def _write(self, controller: str, name: str, text: str) -> None:
        (self._folders[controller] / name).write_text(text)

    def _read(self, controller: str, name: str) -> dict[str, int]:
        lines = (self._folders[controller] / name).read_text().splitlines()
        return {key: int(value) for key, value in (line.split() for line in lines)}

    def cpu_s(self) -> float:
        """CPU time so far, including ended processes."""
        if self._unified:
            return self._read("unified", "cpu.stat")["usage_usec"] / 1e6
        return int((self._folders["cpuacct"] / "cpuacct.usage").read_text()) / 1e9

    def memory(self) -> Memory:
        """Memory now."""
        if self._unified:
            found = self._read("unified", "memory.stat")
            return Memory(found["anon"], found["shmem"], found["file"] - found["shmem"])
        found = self._read("memory", "memory.stat")
        shared = found.get("total_shmem", 0)
        return Memory(found["total_rss"], shared, found["total_cache"] - shared)

    def notes(self) -> str:
        """How often it hit its limits."""
        found = self._read("unified" if self._unified else "cpu", "cpu.stat")
        if self._unified:
            killed = self._read("unified", "memory.events")["oom_kill"]
        else:
            killed = self._read("memory", "memory.oom_control").get("oom_kill", 0)
        return f"held back in {found['nr_throttled']} of {found['nr_periods']} periods, {killed} killed for memory"

    def remove(self) -> None:
        """Kill its processes, and remove the group."""
        deadline = time.monotonic() + REMOVE_S
        for folder in dict.fromkeys(self._folders.values()):
            while folder.exists() and time.monotonic() < deadline:
                for pid in (folder / "cgroup.procs").read_text().split():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(pid), signal.SIGKILL)
                with contextlib.suppress(OSError):  # busy until the last process has ended
                    folder.rmdir()
                    break
                time.sleep(0.02)


class Tree:
    """A process and its descendants, without limits. Ended ones count once their parent has waited for them."""

    enter: Sequence[str] = ()

    def __init__(self, pid: Callable[[], int]) -> None:
        self._pid = pid

    def _pids(self) -> list[int]:
        pids, left = [], [self._pid()]
        while left:
            pids.append(pid := left.pop())
            with contextlib.suppress(OSError):
                left += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        return pids

    def cpu_s(self) -> float:
        total = 0
        for pid in self._pids():
            with contextlib.suppress(OSError):
                total += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:15]))
        return total * TICK_S

    def memory(self) -> Memory:
        """Shared memory: the largest of any process."""
        anonymous, shared = 0, 0
        for pid in self._pids():
            with contextlib.suppress(OSError):
                found = status_kb(pid)
                anonymous += found["RssAnon"] * 1024
                shared = max(shared, found["RssShmem"] * 1024)
        return Memory(anonymous, shared, 0)

    def notes(self) -> str:
        return "no limits"


def status_kb(pid: int) -> dict[str, int]:
    """The lines of /proc/PID/status in kB. Raises OSError."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {line.split(":")[0]: int(line.split()[1]) for line in lines if line.endswith(" kB")}


@contextlib.contextmanager
def group(name: str, cores: float, memory_bytes: int, *, weight: float = 1.0) -> Iterator[Group | None]:
    """A group, or None and a printed line if none may be created."""
    try:
        made = Group(name, cores, memory_bytes, weight=weight)
    except OSError as error:
        print(f"  no control group ({error}): measured without limits", flush=True)
        yield None
        return
    try:
        yield made
    finally:
        made.remove()
