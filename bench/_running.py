"""A running installation for the benchmarks, and their output: one figure per script, as a ratio."""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from fix_installation import NO_FEEDS as NO_FEEDS
from fix_installation import Installation
from missing import PATH

SMALL = bool(os.environ.get("PLANETWIRE_BENCH_SMALL"))  # a tenth, to try a script


@contextmanager
def running(*command: str, **environment: str) -> Iterator[Installation]:
    """An installation on its own data dir, removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="pw-bench-"))
    folder.chmod(0o755)
    made = Installation(folder / "data", command or ("up",), environment)
    try:
        yield made.start()
    finally:
        made.stop()
        shutil.rmtree(folder, ignore_errors=True)


def browser_program() -> str | None:
    """The path of Chromium."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next(filter(None, (shutil.which(name, path=PATH) for name in names)), None)


def milliseconds(samples_s: Sequence[float]) -> str:
    """Median and 99th percentile."""
    ordered = sorted(samples_s)
    p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    return f"p50 {statistics.median(ordered) * 1000:.2f} ms, p99 {p99 * 1000:.2f} ms, n={len(ordered)}"


def line(name: str, figure: float, bound: float, detail: str, *, at_most: bool = True) -> bool:
    """Prints one figure and its goal; returns whether it was met. For scripts with several: exit once, at the end."""
    met = figure <= bound if at_most else figure >= bound
    goal = f"goal {'≤' if at_most else '≥'} {bound:g}"
    print(f"{name}: {figure:.2f} ({goal}) {'met' if met else 'MISSED'} – {detail}", flush=True)
    return met


def verdict(name: str, figure: float, bound: float, detail: str, *, at_most: bool = True) -> None:
    """The one line of a benchmark. Exits with status 1 if the goal is missed."""
    sys.exit(0 if line(name, figure, bound, detail, at_most=at_most) else 1)
