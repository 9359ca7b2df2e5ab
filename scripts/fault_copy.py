"""A copy of the tree in which faults are planted and tests run. The checkout itself is never touched."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from xml.etree import ElementTree

from fault_list import ROOT, Fault, Named

STATIC = Path("src/planetwire/web/static")
MODULES = Path("frontend/node_modules")
RUN_S = 600.0  # per run of one kind of a fault's tests; each test has its own timeout
BASELINE_S = 1_800.0
BUILD_S = 180.0
HUNG = re.compile(r"\+{3,} Timeout \+{3,}|Failed: Timeout|Test timed out in")
_seconds = count(1)
_running: set[int] = set()


@dataclass(frozen=True)
class Ran:
    """The result of a test run: `red` failed, `green` passed; `hung`: the time limit ended it."""

    green: frozenset[str]
    red: tuple[str, ...]
    hung: bool
    output: str


def is_whole(test: Named) -> bool:
    """Whether it starts an installation, and so serves the built page."""
    return test.file.startswith(("tests/e2e/", "tests/crash/"))


class Copy:
    """A private copy for one fault at a time."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="planted-"))
        try:
            self._fill()
        except BaseException:
            self.remove()
            raise

    def _fill(self) -> None:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT, capture_output=True, text=True, check=True,
        )  # fmt: skip
        for name in listed.stdout.split("\0"):
            if name and (ROOT / name).is_file():
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.root / name)
        (self.root / MODULES).symlink_to(ROOT / MODULES)
        self._take_static()

    def remove(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)

    def _take_static(self) -> None:
        shutil.rmtree(self.root / STATIC, ignore_errors=True)
        shutil.copytree(ROOT / STATIC, self.root / STATIC)

    @contextmanager
    def planted(self, fault: Fault, tests: Iterable[Named]) -> Iterator[None]:
        """With the fault applied; the page is rebuilt if one of the tests uses it."""
        path = self.root / fault.file
        before, state = path.read_text(encoding="utf-8"), path.stat()
        path.write_text(fault.planted(before), encoding="utf-8")
        # Python compares compiled files by size and whole seconds.
        os.utime(path, (state.st_mtime + next(_seconds),) * 2)
        rebuilt = fault.file.startswith("frontend/") and any(is_whole(test) for test in tests)
        try:
            if rebuilt:
                _run(["npm", "run", "-s", "build"], self.root / "frontend", BUILD_S)
            yield
        finally:
            path.write_text(before, encoding="utf-8")
            os.utime(path, (state.st_atime, state.st_mtime))
            if rebuilt:
                self._take_static()

    def run(self, tests: list[Named], *, first_red_ends: bool, workers: int = 0) -> Ran:
        """Run the tests, vitest before pytest; with a fault one red test is enough."""
        front = [test for test in tests if test.file.startswith("frontend/")]
        back = [test for test in tests if not test.file.startswith("frontend/")]
        whole_s = RUN_S if first_red_ends else BASELINE_S
        ran = self._vitest(front, whole_s) if front else Ran(frozenset(), (), False, "")
        if not back or (first_red_ends and (ran.red or ran.hung)):
            return ran
        more = self._pytest(back, whole_s, first_red_ends=first_red_ends, workers=workers)
        return Ran(ran.green | more.green, ran.red + more.red, ran.hung or more.hung, ran.output + more.output)

    def _vitest(self, tests: list[Named], within_s: float) -> Ran:
        report = self.root / "vitest.json"
        report.unlink(missing_ok=True)
        names = "|".join(re.sub(r"([.*+?^${}()|\[\]\\/])", r"\\\1", test.name) for test in tests)
        files = sorted({test.file.removeprefix("frontend/") for test in tests})
        command = ["node_modules/.bin/vitest", "run", "--reporter=json", f"--outputFile={report}", "-t", f"({names})$"]
        output, code = _run([*command, *files], self.root / "frontend", within_s)
        green, red = _vitest_report(report, tests) if report.exists() else ([], [])
        output += report.read_text() if report.exists() else ""
        return _outcome(tests, output, code, green, red)

    def _pytest(self, tests: list[Named], within_s: float, *, first_red_ends: bool, workers: int) -> Ran:
        report = self.root / "pytest.xml"
        report.unlink(missing_ok=True)
        options = ["-q", "-n", str(workers), "-p", "no:cacheprovider", f"--junitxml={report}"]
        command = [sys.executable, "-m", "pytest", *options, *(["-x"] if first_red_ends else []), *map(str, tests)]
        output, code = _run(command, self.root, within_s, PYTHONPATH=str(self.root / "src"))
        return _outcome(tests, output, code, *(_pytest_report(report, tests) if report.exists() else ((), ())))


def _outcome(tests: list[Named], output: str, code: int | None, green: Iterable[str], red: Iterable[str]) -> Ran:
    """A failure before any test began is reported as the first test's."""
    hung = code is None or bool(HUNG.search(output))
    failed = tuple(dict.fromkeys(red)) or (() if code == 0 or hung else (str(tests[0]),))
    return Ran(frozenset(green) - set(failed), failed, hung, output)


def _vitest_report(report: Path, tests: list[Named]) -> tuple[list[str], list[str]]:
    """Green and red tests."""
    outcomes: dict[str, set[str]] = {}
    for file in json.loads(report.read_text())["testResults"]:
        for one in file["assertionResults"]:
            for test in tests:
                if file["name"].endswith(test.file) and one["title"] == test.name:
                    outcomes.setdefault(str(test), set()).add(one["status"])
    green = [name for name, states in outcomes.items() if states == {"passed"}]
    return green, [name for name, states in outcomes.items() if "failed" in states]


def _pytest_report(report: Path, tests: list[Named]) -> tuple[list[str], list[str]]:
    """Green ones and red ones; a parametrized test is red if any case is. Skipped is neither."""
    green, red = [], []
    names = {(test.file.removesuffix(".py").replace("/", "."), test.name): str(test) for test in tests}
    for case in ElementTree.parse(report).iter("testcase"):
        title = case.get("name", "").partition("[")[0]
        name = names.get((case.get("classname", ""), title), str(tests[0]))
        kinds = {child.tag for child in case}
        if kinds & {"failure", "error"}:
            red.append(name)
        elif "skipped" not in kinds:
            green.append(name)
    return green, red


def _run(command: list[str], folder: Path, within_s: float, **more: str) -> tuple[str, int | None]:
    """Its output and exit status; None after a timeout, when all its processes are killed."""
    process = subprocess.Popen(
        command, cwd=folder, env=os.environ | more, text=True, errors="replace", start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    _running.add(process.pid)
    try:
        output, _ = process.communicate(timeout=within_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return output, None
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    finally:
        _running.discard(process.pid)
    return output, process.returncode


def end_running() -> None:
    """Kill the processes of an interrupted run."""
    for pid in tuple(_running):
        os.killpg(pid, signal.SIGKILL)
