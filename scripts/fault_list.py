"""The planted faults as data: `scripts/faults/*.toml`, with the tests that the coverage page names for their lines."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "scripts" / "faults"
COVERAGE = ROOT / "docs" / "requirements-coverage.md"
ROW = re.compile(r"^\| ([SQC]\d+) \| (.+?) \| (.*?) ?\|$", re.MULTILINE)
TEST = re.compile(r"`([\w./]+\.(?:py|ts|tsx))::(.+?)`")
# Cheap ones first: the cost of a test follows from its folder.
RANKS = ("frontend/", "tests/unit/", "tests/docs/", "tests/test_", "tests/contract/", "tests/integration/")
RANKS += ("tests/property/", "tests/crash/", "tests/e2e/")


@dataclass(frozen=True, order=True)
class Named:
    """A test as named on the coverage page."""

    rank: int
    file: str
    name: str

    def __str__(self) -> str:
        return f"{self.file}::{self.name}"


@dataclass(frozen=True)
class Fault:
    """`replace` instead of `find`, which occurs once in `file`; `lines`: the requirements it breaks."""

    name: str
    file: str
    find: str
    replace: str
    lines: tuple[str, ...]
    what: str
    origin: str
    equivalent: str = ""

    def planted(self, text: str) -> str:
        """The file's text with the fault; ValueError unless `find` occurs exactly once."""
        found = text.count(self.find)
        if found != 1:
            raise ValueError(f"{self.name}: its text occurs {found} times in {self.file}")
        if self.find == self.replace:
            raise ValueError(f"{self.name}: changes nothing")
        return text.replace(self.find, self.replace)


def load() -> list[Fault]:
    """Every fault, file by file, in order; `origin` is the file's name."""
    found = []
    for path in sorted(FOLDER.glob("*.toml")):
        for item in tomllib.loads(path.read_text(encoding="utf-8"))["fault"]:
            found.append(Fault(**item | {"lines": tuple(item["lines"]), "origin": path.stem}))
    return found


@cache
def coverage() -> dict[str, tuple[Named, ...]]:
    """The tests of each line of the page: S… and Q… of the requirements, C… of the contracts' sections."""
    return {
        line: tuple(Named(_rank(file), file, name) for file, name in TEST.findall(held))
        for line, held, _ in ROW.findall(COVERAGE.read_text(encoding="utf-8"))
    }


def _rank(file: str) -> int:
    return next((rank for rank, prefix in enumerate(RANKS) if file.startswith(prefix)), len(RANKS))


def tests_of(fault: Fault) -> list[Named]:
    """The named tests of all its lines, cheap ones first."""
    return sorted({test for line in fault.lines for test in coverage().get(line, ())})


def problems(faults: list[Fault]) -> list[str]:
    """Errors of the list itself."""
    out = []
    for fault in faults:
        path = ROOT / fault.file
        try:
            fault.planted(path.read_text(encoding="utf-8") if path.is_file() else "")
        except ValueError as error:
            out.append(str(error))
        if not fault.lines and not fault.equivalent:
            out.append(f"{fault.name}: breaks no line")
        out += [f"{fault.name}: {line} names no test" for line in fault.lines if not coverage().get(line)]
    names = [fault.name for fault in faults]
    return out + [f"{name}: there are two" for name in sorted({name for name in names if names.count(name) > 1})]
