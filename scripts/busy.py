"""Runs a command while every core is kept busy: `python scripts/busy.py make test`. Exits as the command does."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys

LONGEST_S = 7_200


def spin() -> None:
    """Uses a whole core; always ends with its parent."""
    parent = os.getppid()
    while os.getppid() == parent:
        sum(range(100_000))


def main(command: list[str]) -> int:
    if not command:
        print(__doc__, file=sys.stderr)
        return 2
    spinners = [multiprocessing.Process(target=spin, daemon=True) for _ in range(os.cpu_count() or 1)]
    for spinner in spinners:
        spinner.start()
    try:
        return subprocess.run(command, timeout=LONGEST_S, check=False).returncode
    finally:
        for spinner in spinners:
            spinner.kill()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
