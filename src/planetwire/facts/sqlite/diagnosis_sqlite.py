"""Checks the integrity of the observation file: SQLite reads all of it, for some seconds."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from time import monotonic

from planetwire.database.pool_sqlite import connect, damage_of
from planetwire.model import Json
from planetwire.model.finding import Finding, step

CHECK_S = 5.0
STEPS_PER_CHECK = 10_000  # SQLite VM instructions between two checks of the time
TITLE = "The observation file is whole"


def examine_file(path: Path) -> Json:
    """The step. Reads only."""
    if not path.exists():
        return step("observations", TITLE, f"{path} is not there yet")
    ends_s = monotonic() + CHECK_S
    try:
        with closing(connect(path, read_only=True)) as connection:
            connection.set_progress_handler(lambda: monotonic() > ends_s, STEPS_PER_CHECK)
            found = str(connection.execute("pragma quick_check(1)").fetchone()[0])
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
            return step("observations", TITLE, f"{path}: nothing found in the first {CHECK_S:g} s")
        code = "store_damaged" if damage_of(error) else "store_unreadable"
        return step("observations", TITLE, str(path), [Finding(code, str(error))])
    if found != "ok":
        return step("observations", TITLE, str(path), [Finding("store_damaged", " ".join(found.split()))])
    return step("observations", TITLE, str(path))
